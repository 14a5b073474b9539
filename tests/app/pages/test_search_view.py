"""The Run page of a search: its trials, kept up to date while it runs, each a click away from its own run."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from app.pages.run import search_view
from app.pages.run.search_view import SearchView
from backend.contract.rpc.protocol import ErrorReply
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
def view(qtbot, helper: Helper, tmp_path: Path) -> SearchView:
    found = SearchView(helper)  # type: ignore[arg-type]
    qtbot.addWidget(found)
    found.resize(900, 700)
    found.show_search(tmp_path, alive=False)
    helper.answer(report(TRIALS))
    return found


def test_trials_stand_in_the_table_best_first(view: SearchView):
    assert [row[0] for row in view.table.texts()] == ["2 ★", "1", "3"]
    assert "120 steps" in view.words.text()


def test_importance_is_asked_for_once_the_search_is_over(view: SearchView, helper: Helper, tmp_path: Path):
    view.show_search(tmp_path, alive=True)
    assert [one["importance"] for one in helper.asked] == [True, False]


def test_running_search_is_asked_again(view: SearchView, helper: Helper, tmp_path: Path, qtbot, monkeypatch):
    monkeypatch.setattr(search_view, "REFRESH_MS", 10)
    again = SearchView(helper)  # type: ignore[arg-type]
    qtbot.addWidget(again)
    again.show_search(tmp_path, alive=True)
    helper.answer(report(TRIALS))
    before = len(helper.asked)
    qtbot.waitUntil(lambda: len(helper.asked) > before)
    again.show_search(None, alive=False)
    assert again.isHidden()


def test_clicked_trial_is_opened_as_a_run(view: SearchView, helper: Helper, qtbot, tmp_path: Path):
    trial = tmp_path / "trials" / "trial-002"
    trial.mkdir(parents=True)
    helper.answer(report([type(TRIALS[0])(**{**_fields(TRIALS[0]), "run": str(trial)})]))
    with qtbot.waitSignal(view.trial_chosen) as chosen:
        view.table.row_chosen.emit(0)
    assert chosen.args == [str(trial)]


def test_trial_without_a_run_says_so(view: SearchView, qtbot):
    with qtbot.waitSignal(view.message) as said:
        view.lines.line_chosen.emit(2)
    assert said.args == ["info", "This trial has not started yet."]


def test_search_that_cannot_be_read_says_why(view: SearchView, helper: Helper):
    helper.refuse(ErrorReply("search.yaml is not valid YAML"))
    assert "not valid YAML" in view.words.text()


def _fields(entry: Any) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


def test_search_that_is_no_longer_shown_asks_nothing(
    view: SearchView, helper: Helper, tmp_path: Path, qtbot, monkeypatch
):
    monkeypatch.setattr(search_view, "REFRESH_MS", 10)
    again = SearchView(helper)  # type: ignore[arg-type]
    qtbot.addWidget(again)
    again.show_search(tmp_path, alive=True)
    again.show_search(None, alive=False)
    before = len(helper.asked)
    qtbot.wait(50)
    assert len(helper.asked) == before
