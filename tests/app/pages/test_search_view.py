"""The page of a search: its numbers, plots and table, kept up to date while it runs, each trial a click away from its own run."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.core import preferences
from app.core.runs.run_state import RunState
from app.core.runs.run_status import RunStatus
from app.pages.run import search_view
from app.pages.run.run_curves import RunCurves
from app.pages.run.search_view import PLOTS, SearchView
from app.services.context import AppContext
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.rpc.search import Importance, TrialEntry
from backend.contract.run import events
from backend.training.event_log import EventLog
from tests.app.core.test_search_trials import TRIALS, report


class Helper:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self.answer: Callable[[Any], None] = lambda reply: None
        self.refuse: Callable[[ErrorReply], None] = lambda reply: None

    def ask(self, query: str, arguments: Mapping[str, Any], on_answer, on_error, on_progress=None) -> "Helper":
        assert query == "search_report"
        self.asked.append(arguments)
        self.answer, self.refuse = on_answer, on_error
        return self

    def cancel(self) -> None:
        """Nothing is on its way."""


@pytest.fixture
def helper() -> Helper:
    return Helper()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A search's folder, of which nobody has started anything."""
    (tmp_path / "search.yaml").write_text("space: {}")
    (tmp_path / "spec.yaml").write_text("name: search")
    return tmp_path


@pytest.fixture
def make(qtbot, helper: Helper, folder: Path, monkeypatch):
    monkeypatch.setenv("BURNISH_CONFIG", str(folder / "config"))
    monkeypatch.setenv("BURNISH_RUNS", str(folder / "runs"))

    def make() -> SearchView:
        context = dataclasses.replace(AppContext.create(preferences.load()), client=helper)
        found = SearchView(context)
        qtbot.addWidget(found)
        found.resize(1000, 900)
        found.show()
        found.show_search(folder)
        helper.answer(report(TRIALS))
        return found

    return make


@pytest.fixture
def view(make) -> SearchView:
    return make()


def with_changes(entry: TrialEntry, **changes: Any) -> TrialEntry:
    return msgspec.structs.replace(entry, **changes)


def test_trials_stand_in_the_table_best_first_and_the_best_above_it(view: SearchView):
    assert [row[0] for row in view.table.texts()] == ["2 ★", "1", "3"]
    assert view.best.text().startswith("★ Trial 2: Accuracy 0.9000 with")
    assert view.tiles["steps"].value() == "120"
    assert view.tiles["trials"].value() == "3"


def test_repeats_with_new_seeds_are_rows_of_their_own(view: SearchView, helper: Helper, qtbot, folder: Path):
    run = folder / "trials" / "trial-002-seed-43"
    run.mkdir(parents=True)
    again = with_changes(TRIALS[0], trial=4, confirms=2, run=str(run), settings={"training.seed": 43})
    own = with_changes(again, trial=5, confirms=-1)
    helper.answer(report(TRIALS, repeats=[again, own]))
    assert [row[0] for row in view.table.texts()][3:] == ["2 · seed 43", "Own · seed 43"]
    with qtbot.waitSignal(view.run_selected) as chosen:
        view.table.row_chosen.emit(3)
    assert chosen.args == [str(run)]


def test_what_trains_now_is_said_with_the_reason(view: SearchView, helper: Helper):
    running = with_changes(TRIALS[1], state="running", reason="proposed by TPE from the trials before")
    helper.answer(report([TRIALS[0], running], state="running"))
    assert view.now.isVisibleTo(view)
    assert view.now_words.text().startswith("Trial 1: proposed by TPE from the trials before\n")
    helper.answer(report(TRIALS))
    assert not view.now.isVisibleTo(view)


def test_importance_is_drawn_with_its_uncertainty(view: SearchView, helper: Helper):
    importance = [Importance(setting="adapter.rank", share=0.8, interval=(0.5, 0.95))]
    helper.answer(report(TRIALS, importance=importance))
    (bar,) = view.importance.bars
    assert (bar.value, bar.low, bar.high, bar.words) == (0.8, 0.5, 0.95, "80 % (50 to 95 %)")


def test_each_plot_has_a_chip(view: SearchView):
    for number in range(len(PLOTS)):
        view.chips.button(number).click()
        assert view.plots.currentIndex() == number
    assert not view.grab().isNull()


def test_running_search_is_asked_again_and_a_finished_one_for_what_mattered(
    make, helper: Helper, folder: Path, qtbot, monkeypatch
):
    monkeypatch.setattr(search_view, "REFRESH_MS", 10)
    view = make()
    qtbot.waitUntil(lambda: view.watcher.is_caught_up)
    view.watcher.stop()
    for state in ("finished", "running"):
        helper.answer(report(TRIALS))
        view.watcher.outcome = RunStatus(state)
        view.watcher.outcome_changed.emit(view.watcher.outcome)
        assert helper.asked[-1]["importance"] == (state == "finished")
    helper.answer(report(TRIALS))
    before = len(helper.asked)
    write_steps(folder / "trials" / "trial-001", 1)
    qtbot.waitUntil(lambda: len(helper.asked) > before)
    view.leave()
    before = len(helper.asked)
    qtbot.wait(50)
    assert len(helper.asked) == before


def test_search_that_ends_while_it_is_asked_is_asked_for_the_rest(view: SearchView, helper: Helper, qtbot):
    qtbot.waitUntil(lambda: view.watcher is not None and view.watcher.is_caught_up)
    assert view.watcher is not None
    view.watcher.stop()
    helper.answer(report(TRIALS))
    view.watcher.outcome = RunStatus("running")
    view._ask()
    view.watcher.outcome = RunStatus("finished")
    assert not helper.asked[-1]["importance"]
    helper.answer(report(TRIALS))
    assert helper.asked[-1]["importance"]


def test_report_is_computed_only_for_a_page_in_view_and_after_a_change(view: SearchView, helper: Helper, folder: Path, qtbot):  # fmt: skip
    qtbot.waitUntil(lambda: view.watcher is not None and view.watcher.is_caught_up)
    helper.answer(report(TRIALS))
    before = len(helper.asked)
    view._timer.timeout.emit()
    assert len(helper.asked) == before  # nothing has changed
    view.hide()
    write_steps(folder / "trials" / "trial-001", 1)
    view._timer.timeout.emit()
    assert len(helper.asked) == before  # nobody looks
    view.show()
    assert len(helper.asked) == before + 1
    helper.answer(report(TRIALS))
    write_steps(folder / "trials" / "trial-001", 2)
    view._timer.timeout.emit()
    assert len(helper.asked) == before + 2


@pytest.mark.parametrize(("left", "offers"), [(None, [6, 12, 24]), (0, []), (4, [4]), (20, [6, 12])])
def test_only_combinations_that_are_left_are_offered(view: SearchView, helper: Helper, left: int | None, offers: list[int]):  # fmt: skip
    helper.answer(report(TRIALS, left=left))
    extend = view.buttons["extend"]
    assert extend.isEnabled() == bool(offers)
    assert ("All combinations of these settings" in extend.toolTip()) == (not offers)
    if offers:
        words = [action.text() for action in view.extensions.actions() if action.isVisible()]
        assert words == [f"By {count} trials" for count in offers]


def write_steps(path: Path, last: int, first: int = 1) -> None:
    """Append steps to a run, and an evaluation at every second one."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "spec.yaml").write_text("name: trial")
    log = EventLog(path / "events.jsonl")
    for step in range(first, last + 1):
        log.append(events.StepFinished(time=step, step=step, epoch=1, loss=1 / step, learning_rate=1e-4, gradient_norm=1, rows=8, tokens=80, seconds=0.1))  # fmt: skip
        if step % 2 == 0:
            log.append(events.EvaluationFinished(time=step, step=step, epoch=1, metrics={"accuracy": step / 10}, rows=9, seconds=0.1))  # fmt: skip
    log.close()


@pytest.fixture
def curves(qtbot, tmp_path: Path) -> RunCurves:
    """Of two trials, the first of which is the best."""
    made = RunCurves("")
    qtbot.addWidget(made)
    made.resize(600, 300)
    made.show()
    for number in (1, 2):
        write_steps(tmp_path / f"trial-{number}", 4)
    show_trials(made, tmp_path, 2)
    qtbot.waitUntil(lambda: made.plot is not None and all(len(one) for one in made.plot.series.values()))
    return made


def show_trials(curves: RunCurves, folder: Path, count: int, best: int = 1, steps: int = 4) -> None:
    paths = [folder / f"trial-{number}" for number in range(1, count + 1)]
    names = {path: path.name for path in paths}
    curves.show_runs(names, dict.fromkeys(paths, steps), strong=folder / f"trial-{best}", preferred="accuracy")


def test_chosen_curve_stays_when_a_trial_begins_or_another_one_is_the_best(curves: RunCurves, tmp_path: Path, qtbot):
    assert curves.choice.currentText() == "Accuracy"
    curves.choice.setCurrentText("Training loss")
    curves.choice.activated.emit(curves.choice.currentIndex())
    write_steps(tmp_path / "trial-3", 4)
    show_trials(curves, tmp_path, 3, best=3)
    qtbot.waitUntil(lambda: curves.plot is not None and all(len(one) == 4 for one in curves.plot.series.values()))
    assert curves.choice.currentText() == "Training loss"
    assert curves.plot is not None
    assert [one.style.faint for one in curves.plot.series.values()] == [False, True, True]
    assert next(iter(curves.plot.series)).endswith("trial-3")


def test_of_a_trial_that_continues_only_the_new_lines_are_read(curves: RunCurves, tmp_path: Path, qtbot, monkeypatch):
    taken = []
    monkeypatch.setattr(RunState, "apply_all", lambda state, many: taken.extend(many))
    write_steps(tmp_path / "trial-1", 6, first=5)
    curves.show_runs(
        {tmp_path / "trial-1": "1", tmp_path / "trial-2": "2"}, {tmp_path / "trial-1": 6, tmp_path / "trial-2": 4}
    )
    qtbot.waitUntil(lambda: bool(taken))
    assert [event.step for event in taken] == [5, 6, 6]


def test_search_is_paused_and_extended(view: SearchView, helper: Helper, folder: Path, monkeypatch):
    asked: list[Any] = []
    monkeypatch.setattr(view._context.jobs, "request", lambda path, kind: asked.append((path, kind)) or "")
    monkeypatch.setattr(view._context.jobs, "extend", lambda path, trials, *_: asked.append((path, trials)))
    view.buttons["pause"].click()
    view.extensions.actions()[1].trigger()
    assert asked == [(folder, "pause"), (folder, 3 + 12)]


def test_trial_without_a_run_says_so(view: SearchView, qtbot):
    with qtbot.waitSignal(view.message) as said:
        view.lines.line_chosen.emit(2)
    assert said.args == ["info", "This trial has not started yet."]


def test_search_that_cannot_be_read_says_why(view: SearchView, helper: Helper):
    helper.refuse(ErrorReply("search.yaml is not valid YAML"))
    assert "not valid YAML" in view.words.text()
