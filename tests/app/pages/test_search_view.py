"""The page of a search: its numbers, plots and table, kept up to date while it runs, each trial a click away from its own run."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.core import preferences
from app.core.runs.run_status import RunStatus
from app.pages.run import search_view
from app.pages.run.search_view import PLOTS, SearchView
from app.services.context import AppContext
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.rpc.search import Importance, TrialEntry
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
