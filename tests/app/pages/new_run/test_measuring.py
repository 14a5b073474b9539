"""The New run page measures how long a run will take, and says why where it cannot."""

import re

import pytest
from PySide6.QtWidgets import QApplication

from app.pages.new_run.cost_details import CostDetails
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
    assert not made.cards.cost.measure.button.isEnabled()
    made.load_spec(DEMO, "Demo")
    qtbot.waitUntil(lambda: made.checks.plan is not None and not made.reason())
    return made


def changed(qtbot, page: Page, key: str, value: object) -> None:
    """Change a setting and wait for the plan of it."""
    page.change(key, value)
    qtbot.waitUntil(lambda: page.checks.plan is not None and not page.reason())


def test_time_is_measured_and_then_scales_with_the_settings(qtbot, page):
    cost = page.cards.cost
    cost.measure.button.click()
    qtbot.waitUntil(lambda: page.checks.plan is not None and page.checks.plan.measured is not None)
    assert cost.values["Time"].text() == "about 4 to 6 min"
    assert cost.subs["Time"].text() == "measured 3 minutes ago"
    assert cost.subs["Time"].toolTip() == "measured 3 minutes ago · cpu, float32"
    assert cost.values["Memory"].text() == "1.2 GB"
    assert cost.subs["Memory"].text() == "measured"
    assert re.fullmatch(r"estimated \S+ \S+ · of 6.0 GB free", cost.subs["Memory"].toolTip())
    changed(qtbot, page, "training.epochs", 8)
    assert cost.values["Time"].text() == "about 8 to 12 min"
    cost.details.click()
    sheet = next(one for one in QApplication.topLevelWidgets() if isinstance(one, CostDetails))
    assert ("Training", "8 to 12 min") in sheet.rows
    sheet.close()


def test_a_measurement_tells_how_far_it_is_and_stops_by_a_click_or_for_a_run(qtbot, page):
    changed(qtbot, page, "training.epochs", 7)
    cost = page.cards.cost
    cost.measure.button.click()
    qtbot.waitUntil(lambda: cost.measure.words.text() == "Training a few steps…")
    assert cost.measure.row.isVisible()
    assert cost.measure.button.text() == "Stop measuring"
    cost.measure.button.click()
    assert not page.checks.is_measuring
    assert not cost.measure.row.isVisible()
    assert cost.measure.button.text() == "Measure time"
    cost.measure.button.click()
    page.starter.changed.emit(True)  # a run needs what it takes
    assert not page.checks.is_measuring


def test_what_cannot_be_measured_says_why_and_what_needs_less(qtbot, page):
    changed(qtbot, page, "training.batch_size", 48)
    cost = page.cards.cost
    cost.measure.button.click()
    qtbot.waitUntil(lambda: bool(cost.reason.text()))
    assert cost.reason.text() == "The computer ran out of memory, although the estimate said it would fit."
    assert cost.remedies.buttons[0].text() == "LoRA adapter · 470 MB"
    changed(qtbot, page, "training.batch_size", 96)
    with qtbot.waitSignal(page.message) as said:
        cost.measure.button.click()
    assert not cost.reason.text()
    assert said.args == ["error", "The file has gone"]
    page.change("training.learning_rate", 2)
    qtbot.waitUntil(lambda: "is too large" in cost.measure.button.toolTip())
    assert not cost.measure.button.isEnabled()
