"""The New run page measures how long a run will take, and says why where it cannot."""

import re

import pytest

from app.pages.new_run.page import Page
from tests.app.pages.small_helper import DEMO


@pytest.fixture
def page(qtbot, context):
    """The page with the demo in it, and the answers about it."""
    made = Page(context)
    qtbot.addWidget(made)
    made.resize(1068, 800)
    made.show()
    qtbot.waitUntil(lambda: made.catalog is not None, timeout=60_000)
    assert not made.start_bar.measure.isEnabled()
    made.load_spec(DEMO, "Demo")
    qtbot.waitUntil(lambda: made.checks.plan is not None and not made.reason())
    return made


def changed(qtbot, page: Page, key: str, value: object) -> None:
    """Change a setting and wait for the plan of it."""
    page.change(key, value)
    qtbot.waitUntil(lambda: page.checks.plan is not None and not page.reason())


def test_time_is_measured_and_then_scales_with_the_settings(qtbot, page):
    bar = page.start_bar
    bar.measure.click()
    qtbot.waitUntil(lambda: page.checks.plan is not None and page.checks.plan.measured is not None)
    assert bar.time.value.text() == "about 4 to 6 min"
    assert bar.time.value.toolTip() == "measured 3 minutes ago · cpu, float32"
    assert bar.memory.value.text() == "1.2 GB"
    assert re.match(r"estimated \S+ \S+ · of 6.0 GB free\n", bar.memory.value.toolTip())
    changed(qtbot, page, "training.epochs", 8)
    assert bar.time.value.text() == "about 8 to 12 min"
    assert ("Training", "8 to 12 min") in page.sections.plan.rows


def test_a_measurement_tells_how_far_it_is_and_stops_at_a_click(qtbot, page):
    changed(qtbot, page, "training.epochs", 7)
    bar = page.start_bar
    bar.measure.click()
    qtbot.waitUntil(lambda: bar.reason.text() == "Measuring: training…")
    assert bar.time.bar.isVisible()
    assert bar.measure.text() == "Stop measuring"
    bar.measure.click()
    assert not page.checks.is_measuring
    assert not bar.time.bar.isVisible()
    assert bar.measure.text() == "Measure time"


def test_what_cannot_be_measured_says_why_and_what_needs_less(qtbot, page):
    changed(qtbot, page, "training.batch_size", 48)
    bar = page.start_bar
    bar.measure.click()
    qtbot.waitUntil(lambda: bool(bar.reason.text()) and not page.checks.is_measuring)
    assert bar.reason.text() == "The computer ran out of memory, although the estimate said it would fit."
    assert page.sections.plan.remedies.buttons[0].text() == "LoRA adapter · 470 MB"
    changed(qtbot, page, "training.batch_size", 96)
    with qtbot.waitSignal(page.message) as said:
        bar.measure.click()
    assert not bar.reason.text()
    assert said.args == ["error", "The file has gone"]
    page.change("training.learning_rate", 2)
    qtbot.waitUntil(lambda: "is too large" in bar.measure.toolTip())
    assert not bar.measure.isEnabled()
