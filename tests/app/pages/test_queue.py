"""The queue in the window: New run adds to it, Run says what a run waits for, Runs lists it, Try does not mind it."""

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app import theme
from app.pages.new_run import page as new_run_page
from app.pages.predictions import page as predictions_page
from app.pages.run import page as run_page
from app.pages.runs import page as runs_page
from app.services.context import AppContext
from app.services.library_watcher import EngineStatus
from backend.contract.resources import resource
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder, boot_id, host_id
from backend.contract.run.job import JobRecord
from backend.contract.run.lock import take_lock
from tests.app.gone import gone
from tests.app.pages.small_helper import DEMO
from tests.app.pages.try_steps import choose_task

SPEC = (
    "name: {name}\ntask: {{type: text_classification}}\nmodel: {{name_or_path: bert-tiny}}\ndata: {{train: some.csv}}\n"
)


@pytest.fixture
def context(shared_context: AppContext) -> AppContext:
    """The services of all tests here, with the runs of this one."""
    return shared_context


@pytest.fixture
def let_go() -> Iterator[dict[Path, int]]:
    """Run → the lock that this process holds on it."""
    held: dict[Path, int] = {}
    yield held
    for descriptor in held.values():
        os.close(descriptor)


@pytest.fixture
def carry(let_go: dict[Path, int]) -> Callable[[RunFolder], RunFolder]:
    """Lets this process carry a run."""

    def hold(folder: RunFolder) -> RunFolder:
        folder.write_process_record(ProcessRecord(2, host_id(), boot_id(), os.getpid(), 0, time.time()))
        let_go[folder.path] = take_lock(folder.lock)
        return folder

    return hold


@pytest.fixture
def going(runs: Path, carry) -> RunFolder:
    """A recorded run that goes on."""
    return carry(RunFolder(runs / "sentiment-lost"))


@pytest.fixture
def waiting(runs: Path, carry, going: RunFolder) -> list[RunFolder]:
    """Two that wait for it, in their order."""
    made = []
    for place, name in enumerate(("first", "second")):
        folder = RunFolder(runs / f"2026-11-22-1800-{name}")
        folder.path.mkdir()
        folder.spec.write_text(SPEC.format(name=name))
        folder.queued.write_text(json.dumps({"joined": 100.0 + place}))
        made.append(carry(folder))
    return made


@pytest.fixture
def listed(context, waiting) -> list[RunFolder]:
    """The same, which the list of runs has read."""
    context.library.refresh()
    return waiting


@pytest.fixture(scope="module")
def shared_page(qapp: QApplication, services: AppContext) -> Iterator[run_page.Page]:
    """One Run page for all tests here, each of which shows it a run of its own."""
    theme.apply(qapp, "light")
    made = run_page.Page(services)
    made.resize(1068, 800)
    made.show()
    yield made
    gone(made)


@pytest.fixture
def page(qtbot, shared_page: run_page.Page, listed):
    """The Run page with the second of those that wait."""
    shared_page.show_run(str(listed[1].path))
    qtbot.waitUntil(lambda: shared_page.watcher.is_caught_up and shared_page.watcher.outcome.waits)
    return shared_page


@pytest.fixture
def table(qtbot, context, listed):
    made = runs_page.Page(context)
    qtbot.addWidget(made)
    made.resize(1068, 800)
    made.show()
    return made


# Run


def test_a_run_that_waits_says_for_what_and_offers_to_start_or_to_stop(page):
    assert page.controls.pill.text() == "Queued"
    assert page.progress.stage.text() == "Starts after “sentiment” finishes; 2 of 2 in the queue"
    assert page.progress.bar.fraction() == 0.0
    assert page.header.title.text() == "second"
    assert page.header.subtitle.text() == "bert-tiny on some.csv"
    buttons = {**page.controls.buttons, **page.requests.buttons}
    assert [key for key, button in buttons.items() if button.isVisible() and button.isEnabled()] == [
        "start_now",
        "stop",
    ]


def test_a_run_whose_job_is_pending_says_so_and_is_not_started_here(qtbot, page, waiting):
    run = waiting[1]
    run.remote.write_text(json.dumps({"machine": "cluster", "run": "/far/second"}))
    run.write_job_record(JobRecord("12", "pending", "Resources"))
    run.leave_queue()
    page.watcher.refresh_now()
    qtbot.waitUntil(lambda: page.progress.stage.text() == "Waits in Slurm (job 12): no free resources yet")
    assert page.controls.pill.text() == "Queued"
    assert not page.controls.buttons["start_now"].isVisible()


def test_a_run_that_was_removed_from_the_queue_keeps_its_heading(qtbot, page, waiting, let_go):
    second = waiting[1]
    second.write_exit_record(ExitRecord(2, 0, time.time(), state="stopped"))
    second.leave_queue()
    os.close(let_go.pop(second.path))
    page.watcher.refresh_now()
    qtbot.waitUntil(lambda: page.controls.pill.text() == "Stopped")
    assert page.header.subtitle.text() == "bert-tiny on some.csv"


@pytest.mark.usefixtures("watched")
def test_what_it_waits_for_is_told_anew_when_another_leaves(qtbot, page, waiting, let_go):
    first = waiting[0]
    first.write_exit_record(ExitRecord(2, 0, time.time(), state="stopped"))
    first.leave_queue()
    os.close(let_go.pop(first.path))
    qtbot.waitUntil(lambda: page.progress.stage.text() == "Starts after “sentiment” finishes")


def test_start_now_lets_it_begin(qtbot, page, waiting):
    page.controls.buttons["start_now"].click()
    assert not waiting[1].queued.exists()
    qtbot.waitUntil(lambda: page.controls.pill.text() == "Starting")
    assert not page.controls.buttons["start_now"].isVisible()
    assert page.requests.buttons["pause"].isVisible()


def test_a_run_that_the_list_does_not_know_yet_says_what_it_waits_for(qtbot, context, waiting):
    made = run_page.Page(context)
    qtbot.addWidget(made)
    made.show_run(str(waiting[0].path))
    qtbot.waitUntil(lambda: made.watcher.outcome.waits)
    assert context.library.find(waiting[0].path) is None
    assert made.progress.stage.text() == "Starts after “sentiment” finishes"


def test_without_a_run_that_goes_on_it_waits_for_the_one_before_it(context, waiting, let_go, going):
    os.close(let_go.pop(going.path))
    assert [one.name for one in context.jobs.find_awaited_runs(waiting[1].path)] == [waiting[0].name]
    assert context.jobs.find_awaited_runs(waiting[0].path) == []


def test_the_page_goes_over_to_the_curves_without_a_click(qtbot, page, waiting, runs):
    waiting[1].leave_queue()
    waiting[1].events.write_bytes((runs / "sentiment-lost" / "events.jsonl").read_bytes())
    qtbot.waitUntil(lambda: page.controls.pill.text() == "Training" and page.is_drawn)
    assert len(page.plots.loss.series["loss"]) > 100
    assert page.progress.stage.text().startswith("Training · step")


def test_stop_asks_the_run_that_waits(page, waiting):
    page.requests.buttons["stop"].click()
    assert waiting[1].open_request() == "stop"
    assert not page.controls.buttons["start_now"].isEnabled()


def test_start_now_stands_in_the_palette_while_the_run_waits(qtbot, page, waiting):
    action = next(one for one in page.offered_actions() if one.title == "Start the queued run now")
    assert action.is_possible()
    action.do()
    qtbot.waitUntil(lambda: page.controls.pill.text() == "Starting")
    assert not action.is_possible()


# Runs


def test_the_list_counts_them_and_says_what_each_waits_for(table, waiting):
    assert "1 running · 2 queued" in table.header.subtitle.text()
    states = {one.title: one.state for one in table.table.runs}
    assert (states["first"], states["second"]) == ("queued", "queued")
    table.table.choose(waiting[0].path)
    assert table.detail.text().startswith("Starts after “sentiment” finishes; 1 of 2 in the queue · ")
    assert not table.buttons["delete"].isEnabled()
    assert not table.buttons["resume"].isEnabled()


def test_stop_in_the_list_takes_one_out_of_the_queue_and_says_so(qtbot, table, waiting):
    table.table.choose(waiting[0].path)
    with qtbot.waitSignal(table.message) as said:
        table.buttons["stop"].click()
    assert said.args == ["info", "Removed first from the queue."]
    assert waiting[0].open_request() == "stop"


def test_a_queued_run_can_be_started_in_the_list(table, waiting):
    table.table.choose(waiting[0].path)
    table.buttons["start_now"].click()
    assert not waiting[0].queued.exists()


@pytest.mark.usefixtures("watched")
def test_a_queued_run_can_be_put_first_in_the_list(qtbot, table, waiting):
    table.table.choose(waiting[1].path)
    assert table.detail.text().startswith("Starts after “sentiment” finishes; 2 of 2 in the queue · ")
    table.moves["move_next"].click()
    qtbot.waitUntil(lambda: "; 1 of 2 in the queue" in table.detail.text())
    assert [button.isEnabled() for button in table.moves.values()] == [False, False, True]


def test_only_a_queued_run_offers_to_be_moved_in_the_queue(table, waiting, going):
    table.table.choose(going.path)
    assert not any(button.isVisible() for button in table.moves.values())


def test_they_are_found_by_their_state(table):
    table.search.setText("queued")
    assert {one.title for one in table.table.runs} == {"first", "second"}


def test_the_sidebar_counts_what_runs_and_what_waits_apart(context, listed):
    assert EngineStatus(context.client, context.library_watcher).text() == "1 running · 2 queued"


# New run


@pytest.fixture(scope="module")
def new_run(qapp: QApplication, services: AppContext) -> Iterator[new_run_page.Page]:
    """One New run page for all tests here."""
    theme.apply(qapp, "light")
    made = new_run_page.Page(services)
    made.resize(1068, 800)
    made.show()
    yield made
    gone(made)


@pytest.fixture
def demo(qtbot, new_run: new_run_page.Page, context: AppContext):
    """The page with the demo in it, while no other run is known."""
    qtbot.waitUntil(lambda: new_run.catalog is not None)
    new_run.load_spec(DEMO, "Demo")
    new_run.starter.look_at_others()
    qtbot.waitUntil(lambda: new_run.checks.plan is not None and not new_run.reason())
    return new_run


def test_with_nothing_going_on_there_is_nothing_to_queue_for(demo):
    assert not demo.start_bar.queue.isVisible()
    action = next(one for one in demo.offered_actions() if one.title == "Add run to queue")
    assert not action.is_possible()


@pytest.mark.usefixtures("watched")
def test_while_a_run_goes_on_another_can_be_queued(qtbot, going, context, demo, monkeypatch):
    asked = []
    monkeypatch.setattr(context.jobs, "start", lambda *given, **options: asked.append((given, options)))
    qtbot.waitUntil(demo.start_bar.queue.isVisible)
    assert "Starts automatically after “sentiment” finishes (burnish train … --queue)" in demo.start_bar.queue.toolTip()
    demo.start_bar.queue.click()
    asked[0][0][1](str(going.path))
    demo.start_bar.start.click()
    asked[1][0][1](str(going.path))
    assert [options["queue"] for _, options in asked] == [True, False]


@pytest.mark.usefixtures("watched")
def test_whoever_fills_the_queue_stays_on_the_page_and_is_told(qtbot, waiting, context, demo, monkeypatch):
    qtbot.waitUntil(demo.start_bar.queue.isVisible)
    assert "after 3 other runs" in demo.start_bar.queue.toolTip()
    asked = []
    monkeypatch.setattr(context.jobs, "start", lambda *given, **_: asked.append(given))
    demo.start_bar.queue.click()
    assert not demo.start_bar.queue.isEnabled()
    said, started = [], []
    demo.message.connect(lambda *given: said.append(given))
    demo.run_started.connect(lambda path, _: started.append(path))
    asked[0][1](str(waiting[0].path))
    words = "Added sentiment to the queue. Starts after “sentiment” finishes."
    assert said == [("success", words)]
    assert started == []
    assert demo.start_bar.queue.isEnabled()


def test_a_queued_run_that_begins_at_once_is_shown(going, context, demo, monkeypatch):
    asked, started = [], []
    monkeypatch.setattr(context.jobs, "start", lambda *given, **_: asked.append(given))
    demo.run_started.connect(lambda path, _: started.append(path))
    demo.start(queue=True)
    asked[0][1](str(going.path))
    assert started == [str(going.path)]


def test_the_command_that_queues_the_run_can_be_copied(demo):
    action = next(one for one in demo.offered_actions() if one.title == "Copy command to queue the run")
    action.do()
    last = QGuiApplication.clipboard().text().splitlines()[-1]
    assert " train sentiment.yaml" in last
    assert "--queue" in shlex.split(last)


# Try


def test_only_a_run_that_computes_makes_an_answer_take_longer(qtbot, waiting, let_go, context):
    page = predictions_page.Page(context)
    qtbot.addWidget(page)
    page.show()
    page.show_tab(predictions_page.TRY)
    qtbot.waitUntil(lambda: page.attempt._has_catalog)
    page.attempt.form.show_model(str(resource("demo", "bert-tiny")))
    choose_task(page.attempt, "text_classification")
    context.library.refresh()
    said = []
    for _ in range(2):
        page.attempt.form.fill({"text": "film"})
        page.attempt.ask()
        said.append("a run is training on this computer" in page.attempt.card.facts.text())
        qtbot.waitUntil(lambda: not page.attempt.asking.open)
        for path in [path for path in let_go if path.name == "sentiment-lost"]:
            os.close(let_go.pop(path))
        context.library.refresh()
    assert said == [True, False]
