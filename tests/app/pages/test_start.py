"""Starting a run from New run: the plan is waited for, and a warning that it has is asked about first."""

from typing import Any

import msgspec
import pytest
from PySide6.QtWidgets import QPushButton

from app.pages.new_run.page import Page
from backend.contract.rpc.plan import DiskPart, DiskPlan, DiskVolume

PROBLEM = "The disk will be full: the run writes about 211 MB to /runs, where 190 MB is free"
FULL = DiskPlan(parts=[DiskPart("Checkpoints", 158)], volumes=[DiskVolume("/runs", 211, 190, 1000)], problem=PROBLEM)


@pytest.fixture
def demo(qtbot, new_run):
    new_run.demo.click()
    qtbot.waitUntil(lambda: new_run.checks.plan is not None and not new_run.reason())
    return new_run


@pytest.fixture
def started(context, monkeypatch) -> list[dict[str, Any]]:
    """The options of what was started."""
    runs: list[dict[str, Any]] = []
    monkeypatch.setattr(context.jobs, "start", lambda *given, **options: runs.append(options))
    return runs


def answer(page: Page, words: str) -> None:
    assert page.starter.question is not None
    next(one for one in page.starter.question.findChildren(QPushButton) if one.text() == words).click()


def test_a_run_that_fits_starts_at_once(demo, started):
    demo.start_bar.start.click()
    assert started == [{"queue": False}]
    assert demo.starter.question is None


def test_a_run_for_which_the_disk_is_too_small_is_asked_about(demo, started):
    demo.checks._on_plan(msgspec.structs.replace(demo.checks.plan, disk=FULL))
    demo.start_bar.start.click()
    assert started == []
    assert demo.starter.question.informativeText() == f"{PROBLEM}."
    answer(demo, "Cancel")
    assert started == []
    demo.start(queue=True)
    answer(demo, "Start anyway")
    assert started == [{"queue": True}]


def test_from_that_question_a_click_leads_to_what_needs_less(demo, started):
    demo.sections.open("data")
    demo.checks._on_plan(msgspec.structs.replace(demo.checks.plan, disk=FULL))
    demo.start_bar.start.click()
    answer(demo, "Show the plan")
    assert demo.sections.opened == "settings"
    assert started == []


def test_a_start_waits_for_the_plan(qtbot, demo, started):
    demo.controller.change("training.seed", 7)
    demo.start_bar.start.click()
    assert started == []
    assert demo.start_bar.start.text() == "Starting…"
    qtbot.waitUntil(lambda: started == [{"queue": False}])


def test_a_change_takes_back_a_start_that_waits(qtbot, demo, started):
    demo.controller.change("training.seed", 7)
    demo.start_bar.start.click()
    demo.controller.change("training.seed", 8)
    assert demo.start_bar.start.text() == "Start training"
    qtbot.waitUntil(lambda: demo.checks.plan is not None)
    assert started == []
