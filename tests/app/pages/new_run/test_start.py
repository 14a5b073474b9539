"""Starting a run from New run: the plan is waited for, and a warning that it has is asked about first."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from PySide6.QtWidgets import QPushButton

from app.pages.new_run.draft_checks import CODE
from app.pages.new_run.page import Page
from app.services.job import Jobs
from backend.contract.rpc.machines import MachineConsent
from backend.contract.rpc.protocol import Progress
from backend.contract.run.cost import MeasuredTime
from tests.app.pages.small_helper import FULL_DISK

TOO_MANY, NEVER_MEASURED = 90, 7
"""Epochs that fill the disk, and those whose measurement never ends."""
ABSURD = 960
"""Rows per batch that do not fit into the memory."""


@pytest.fixture
def demo(demo) -> Iterator[Page]:
    """The page with the demo in it; what a test has started there never answers."""
    yield demo
    demo.starter._set_busy(False)


@pytest.fixture
def jobs(page) -> Jobs:
    """What starts the runs of the page."""
    return page._context.jobs


@pytest.fixture
def started(jobs, monkeypatch) -> list[dict[str, Any]]:
    """The options of what was started."""
    runs: list[dict[str, Any]] = []
    monkeypatch.setattr(jobs, "start", lambda *given, on_progress, **options: runs.append(options))
    return runs


@pytest.fixture
def submitted(jobs, monkeypatch) -> list[tuple[dict[str, Any], bool]]:
    """The specs of what was started, and whether in the queue."""
    runs: list[tuple[dict[str, Any], bool]] = []
    monkeypatch.setattr(jobs, "start", lambda spec, *given, queue, machine, on_progress: runs.append((spec, queue)))
    return runs


def planned(qtbot, page: Page, key: str, value: int) -> None:
    page.controller.change(key, value)
    qtbot.waitUntil(lambda: page.checks.plan is not None)


def answer(page: Page, words: str) -> None:
    assert page.starter.question is not None
    next(one for one in page.starter.question.findChildren(QPushButton) if one.text() == words).click()


def test_a_run_that_fits_starts_at_once(demo, started):
    demo.start_bar.start.click()
    assert started == [{"queue": False, "machine": ""}]
    assert demo.starter.question is None


def test_a_run_starts_on_another_machine_whatever_the_plan_says_of_this_one(qtbot, demo, started):
    planned(qtbot, demo, "training.epochs", TOO_MANY)
    demo.start_bar.show_machines(["lab", "cluster"])
    assert [action.text() for action in demo.start_bar.machines] == ["Start on lab", "Start on cluster"]
    demo.start_bar.machines[0].trigger()
    assert started == [{"queue": False, "machine": "lab"}]


def test_the_trials_of_a_search_start_on_another_machine(qtbot, demo, started):
    space = {"training.learning_rate": [1e-4, 1e-3]}
    demo.controller.apply(
        {"search": {"space": space, "metric": "accuracy", "trials": 2, "sampler": "random"}}, "search"
    )
    qtbot.waitUntil(lambda: not demo.reason())
    demo.start_bar.show_machines(["lab"])
    assert demo.start_bar.machines[0].isEnabled()
    demo.start_bar.machines[0].trigger()
    assert started == [{"queue": False, "machine": "lab"}]


def test_a_run_that_does_not_fit_here_starts_on_another_machine(qtbot, demo, started):
    demo.start_bar.show_machines(["lab"])
    planned(qtbot, demo, "training.batch_size", 2000)
    assert not demo.start_bar.start.isEnabled()
    assert demo.start_bar.machines[0].isEnabled()
    demo.start_bar.machines[0].trigger()
    assert started == [{"queue": False, "machine": "lab"}]


def test_code_of_a_model_is_asked_about_for_each_machine(qtbot, demo, started, jobs, monkeypatch):
    consents: list[bool] = []
    monkeypatch.setattr(jobs, "start", lambda *given, **options: consents.append(given[3].code_there))
    monkeypatch.setattr(
        demo._context.client,
        "ask",
        lambda query, about, on_answer, on_mistake: on_answer(MachineConsent(["model.py"], about["name"] == "lab")),
    )
    model = msgspec.structs.replace(demo.checks.model, needs_remote_code=True)
    monkeypatch.setattr(demo.checks, "model", model)
    monkeypatch.setitem(demo.checks.problems, "model", CODE)  # not approved here, which says nothing of a machine
    demo.start_bar.show_machines(["lab", "cluster"])
    for action in demo.start_bar.machines:
        demo.starter._set_busy(False)
        action.setEnabled(True)
        action.trigger()
    assert consents == [True]
    assert demo.starter.question is not None
    assert "model.py" in demo.starter.question.informativeText()
    answer(demo, "Allow on cluster")
    assert consents == [True, True]


def test_copy_to_a_machine_shows_how_far_it_is_and_can_be_cancelled(demo, jobs, monkeypatch):
    calls: dict[str, Any] = {}

    def start(spec, on_started, on_error, consent, **options: Any) -> Callable[[], None]:
        calls.update(options, on_error=on_error)
        return lambda: calls.update(cancelled=True)

    monkeypatch.setattr(jobs, "start", start)
    demo.start(machine="lab")
    calls["on_progress"](Progress(120e6, 300e6, "bytes", part="send"))
    bar = demo.start_bar
    bar.resize(bar.width() - 20, bar.height())
    assert (bar.reason.text(), bar.start.text()) == ("Sending data: 120 of 300 MB", "Cancel")
    bar.start.click()
    assert calls["cancelled"]
    calls["on_error"]("")
    assert bar.start.text() == "Start training"


def test_what_blocks_the_start_blocks_it_on_every_machine(demo, started):
    demo.start_bar.show_machines(["lab"])
    demo.controller.change("data.train", "")
    assert not demo.start_bar.machines[0].isEnabled()


def test_a_run_for_which_the_disk_is_too_small_is_asked_about(qtbot, demo, started):
    planned(qtbot, demo, "training.epochs", TOO_MANY)
    demo.start_bar.start.click()
    assert started == []
    assert demo.starter.question.informativeText() == f"{FULL_DISK.problem}."
    answer(demo, "Cancel")
    assert started == []
    demo.start(queue=True)
    assert demo.starter.question.windowTitle() == "Add to queue"
    answer(demo, "Add anyway")
    assert started == [{"queue": True, "machine": ""}]


def test_from_that_question_a_click_leads_to_what_needs_less(qtbot, demo, started):
    demo.sections.open("data")
    planned(qtbot, demo, "training.epochs", TOO_MANY)
    demo.start_bar.start.click()
    answer(demo, "Show the plan")
    assert demo.sections.opened == "settings"
    assert demo.starter.question is None
    assert started == []


def test_a_start_waits_for_the_plan(qtbot, demo, started):
    demo.controller.change("training.seed", 7)
    demo.start_bar.start.click()
    assert started == []
    assert demo.start_bar.start.text() == "Starting…"
    qtbot.waitUntil(lambda: started == [{"queue": False, "machine": ""}])


def test_a_start_that_waits_keeps_its_settings_when_the_draft_changes(qtbot, demo, submitted):
    demo.controller.change("training.seed", 7)
    demo.start_bar.start.click()
    demo.controller.change("training.seed", 8)
    assert demo.start_bar.start.text() == "Starting…"
    qtbot.waitUntil(lambda: [(one["training"]["seed"], queue) for one, queue in submitted] == [(7, False)])
    assert demo.draft.get("training.seed") == 8


def test_a_run_that_waits_to_be_queued_keeps_its_settings_through_several_changes(qtbot, demo, submitted):
    demo.controller.change("training.seed", 7)
    demo.starter.start(queue=True)
    assert (demo.start_bar.queue.text(), demo.start_bar.start.text()) == ("Adding…", "Start training")
    demo.controller.change("training.seed", 8)
    demo.controller.start_over()
    qtbot.waitUntil(lambda: [(one["training"]["seed"], queue) for one, queue in submitted] == [(7, True)])


def test_what_blocks_settings_that_were_left_behind_is_said(qtbot, demo, submitted):
    demo.controller.change("training.batch_size", ABSURD)
    demo.start(queue=True)
    with qtbot.waitSignal(demo.message) as said:
        demo.controller.change("training.batch_size", 8)
    assert said.args[1].startswith("“sentiment” was not added to the queue. ")
    assert "does not fit" in said.args[1]
    assert demo.start_bar.queue.text() == "Add to queue"
    demo.controller.undo()
    assert demo.draft.get("training.batch_size") == ABSURD
    assert submitted == []


def test_a_warning_about_settings_that_were_left_behind_is_asked_about(qtbot, demo, submitted):
    demo.controller.change("training.epochs", TOO_MANY)
    demo.start_bar.start.click()
    demo.controller.change("training.epochs", 1)
    qtbot.waitUntil(lambda: demo.starter.question is not None)
    demo.controller.change("training.seed", 8)
    assert "Show the plan" not in [one.text() for one in demo.starter.question.findChildren(QPushButton)]
    answer(demo, "Start anyway")
    assert [one["training"]["epochs"] for one, _ in submitted] == [TOO_MANY]


def test_a_refusal_of_a_draft_that_has_changed_since_marks_nothing_in_the_new_one(qtbot, demo, jobs, monkeypatch):
    refusals = []
    monkeypatch.setattr(jobs, "start", lambda spec, on_started, on_error, *_, **options: refusals.append(on_error))
    demo.start_bar.start.click()
    demo.controller.change("training.seed", 8)
    with qtbot.waitSignal(demo.message) as said:
        refusals[0]("training.seed: it is taken")
    assert said.args[1].startswith("“sentiment” was not started. ")
    qtbot.waitUntil(lambda: demo.checks.plan is not None)
    assert demo.reason() == ""


@pytest.mark.parametrize("edited", [False, True])
def test_a_start_says_whether_the_draft_was_edited_since(demo, jobs, monkeypatch, tmp_path, edited: bool):
    asked, said = [], []
    monkeypatch.setattr(jobs, "start", lambda *given, **_: asked.append(given))
    demo.run_started.connect(lambda *given: said.append(given))
    demo.start_bar.start.click()
    if edited:
        demo.controller.change("training.seed", 8)
    asked[0][1](str(tmp_path / "run"))
    assert said == [(str(tmp_path / "run"), not edited)]


def test_a_start_that_waits_asks_if_its_plan_warns(qtbot, demo, started):
    demo.controller.change("training.epochs", TOO_MANY)
    demo.start_bar.start.click()
    qtbot.waitUntil(lambda: demo.starter.question is not None)
    assert started == []
    answer(demo, "Start anyway")
    assert started == [{"queue": False, "machine": ""}]


def test_a_start_that_waits_says_what_blocks_it_meanwhile(qtbot, demo, started):
    demo.controller.change("training.batch_size", ABSURD)
    with qtbot.waitSignal(demo.message) as said:
        demo.start_bar.start.click()
    assert said.args == ["warning", demo.reason()]
    assert "does not fit" in demo.reason()
    assert started == []
    assert demo.start_bar.start.text() == "Start training"


def test_a_change_of_the_draft_closes_the_question_about_it(qtbot, demo, started):
    planned(qtbot, demo, "training.epochs", TOO_MANY)
    demo.start_bar.start.click()
    assert demo.starter.question is not None
    demo.controller.change("data.max_rows", 100)
    assert demo.starter.question is None
    assert started == []


def test_who_starts_anyway_is_asked_again_if_the_plan_warns_of_something_else(qtbot, demo, started):
    planned(qtbot, demo, "training.epochs", TOO_MANY)
    demo.start_bar.start.click()
    demo.start_bar.show_shortage(MeasuredTime(shortage="the computer ran out of memory"))
    answer(demo, "Start anyway")
    assert started == []
    assert "ran out of memory" in demo.starter.question.informativeText()
    answer(demo, "Start anyway")
    assert started == [{"queue": False, "machine": ""}]


def test_only_a_run_that_is_submitted_stops_a_measurement(qtbot, demo, started):
    planned(qtbot, demo, "training.epochs", NEVER_MEASURED)
    demo.measure()
    demo.controller.change("training.seed", 7)
    demo.start_bar.start.click()
    assert demo.checks.is_measuring
    qtbot.waitUntil(lambda: started == [{"queue": False, "machine": ""}])
    assert not demo.checks.is_measuring
