"""The error browser is tested on a small predictions file of every task, with a real helper that filters."""

from pathlib import Path
from typing import Any

import pytest
from example_runs import ANSWERED, CLASSIFIED, EXAMPLES, TAGGED, write_run
from PySide6.QtCore import Qt

from app.core.tasks import row_view
from app.pages.predictions.page import Page
from app.services.prediction_rows import PredictionRows
from app.widgets.row_views import registry
from app.widgets.row_views.choice_view import ChoiceView
from app.widgets.row_views.entity_view import EntityView
from app.widgets.row_views.label_views import LabelView, NumberView
from app.widgets.row_views.row_view import PlainView
from app.widgets.row_views.span_view import NO_ANSWER, SpanView
from app.widgets.row_views.text_views import LanguageView, WritingView


@pytest.fixture
def panel(predictions: Page) -> Page:
    return predictions


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The runs folder of a test, which writes its run there."""
    return tmp_path / "runs"


def shown(panel: Page, runs: Path, task: str, row: int = 0) -> Any:
    """The view of a row of a task's example."""
    panel.show_run(str(write_run(runs, task)))
    panel.browser.table.selectRow(row)
    return panel.browser.details.view


def sources(panel: Page) -> list[int]:
    """The rows that the table shows, in its order."""
    return [panel.browser.view.row_at(line) for line in range(panel.browser.table.shown_count())]


@pytest.mark.parametrize("task", EXAMPLES)
def test_every_task_has_a_form_of_its_own(panel: Page, runs: Path, task: str):
    assert type(shown(panel, runs, task)) is registry.ROW_VIEWS[row_view(task)]


@pytest.mark.parametrize("task", EXAMPLES)
def test_every_row_of_every_task_can_be_shown_one_after_the_other(panel: Page, runs: Path, task: str):
    shown(panel, runs, task)
    for line in (1, 0, 1):
        panel.browser.table.selectRow(line)
        panel.grab()
    assert panel.browser.view.side.currentWidget() is panel.browser.details


def test_the_overview_says_that_a_large_file_is_prepared_first(qtbot, panel: Page, runs: Path, monkeypatch):
    monkeypatch.setattr(PredictionRows, "small", property(lambda _: False))
    panel.show_run(str(write_run(runs, "text_classification")))
    overview = panel.browser.overview
    assert overview.note.text() == "Preparing the file, 0%"
    qtbot.waitUntil(lambda: overview.note.text() == "Click a cell or a label to see its rows.")
    assert overview.right.isVisible()


def test_without_actual_labels_each_predicted_one_is_counted_and_leads_to_its_rows(qtbot, panel: Page, runs: Path):
    unknown = [{key: value for key, value in row.items() if key not in ("label", "actual")} for row in CLASSIFIED]
    panel.show_run(str(write_run(runs, "text_classification", unknown)))
    overview = panel.browser.overview
    qtbot.waitUntil(overview.labels.isVisible, timeout=30_000)
    assert overview.labels.texts() == [["positive", "2", "67%"], ["neutral", "1", "33%"]]
    assert overview.note.text() == "These rows have no actual values to compare with."
    overview.labels.row_chosen.emit(1)
    qtbot.waitUntil(lambda: sources(panel) == [2])


def test_scores_of_the_file_before_are_gone_while_a_large_one_is_prepared(qtbot, panel: Page, runs: Path, monkeypatch):
    panel.show_run(str(write_run(runs, "text_classification")))
    overview = panel.browser.overview
    qtbot.waitUntil(overview.matrix.isVisible, timeout=30_000)
    monkeypatch.setattr(PredictionRows, "small", property(lambda _: False))

    panel.show_run(str(write_run(runs, "text_classification", name="another")))

    assert overview.note.text() == "Preparing the file, 0%"
    assert not overview.right.isVisible()
    assert not overview.matrix.isVisible()


def test_unknown_task_is_shown_by_its_columns():
    assert registry.view_of("somebodys_own", ["text", "prediction", "probability_a"]) is LabelView
    assert registry.view_of("somebodys_own", ["text", "prediction"]) is PlainView


def test_wrong_label_is_marked_beside_the_right_one(panel: Page, runs: Path):
    view = shown(panel, runs, "text_classification")
    assert isinstance(view, LabelView)
    assert [(bar.label, bar.mark) for bar in view.bars.visible_bars()] == [
        ("positive", "wrong"), ("negative", "actual"), ("neutral", ""),
    ]  # fmt: skip
    assert view._rest.shown == {"source": "imdb"}


def test_columns_that_play_no_part_come_last(panel: Page, runs: Path):
    shown(panel, runs, "text_classification")
    assert panel.browser.table.columns == ["text", "actual", "prediction", "confidence", "source"]


def test_numbers_stand_on_the_range_of_the_whole_file(panel: Page, runs: Path):
    view = shown(panel, runs, "text_regression")
    assert isinstance(view, NumberView)
    assert (view.scale._low, view.scale._high) == (0.5, 5.0)
    assert view.error.text() == "0.2800 too low"
    assert panel.browser.view.is_right(0) is None


def test_wrong_entities_are_outlined_in_both_lines(panel: Page, runs: Path):
    view = shown(panel, runs, "token_classification")
    assert isinstance(view, EntityView)
    assert view.predicted.marked() == ["Angela Merkel", "New", "United Nations"]
    assert (view.predicted.outlined(), view.actual.outlined()) == (["New"], ["New York"])
    assert view.predicted.plain() == " ".join(TAGGED[0]["tokens"])


def test_words_without_prediction_are_told(panel: Page, runs: Path):
    assert "1 word exceeded" in shown(panel, runs, "token_classification", 1).lost.text()


def test_answers_are_marked_where_they_stand(panel: Page, runs: Path):
    view = shown(panel, runs, "question_answering")
    assert isinstance(view, SpanView)
    assert "".join(view.context.marked()[1:]) == "martial spirit"
    assert view.context.outlined() == ["their martial spirit"]
    assert view.context.plain() == ANSWERED[0]["context"]


def test_no_answer_is_an_answer(panel: Page, runs: Path):
    view = shown(panel, runs, "question_answering", 2)
    assert view.answer.plain().startswith(NO_ANSWER)
    assert view.context.outlined() == ["Catholic orthodoxy"]


def test_written_words_that_differ_are_marked(panel: Page, runs: Path):
    view = shown(panel, runs, "seq2seq_lm")
    assert isinstance(view, WritingView)
    assert (view.prediction.marked(), view.reference.marked()) == (["sienta", "estera"], ["sentó", "alfombra"])
    assert view.source.plain() == ">>spa<< The cat sat on the mat."


def test_loss_of_a_text_is_told(panel: Page, runs: Path):
    view = shown(panel, runs, "causal_lm")
    assert isinstance(view, LanguageView)
    assert view.numbers.text() == "loss 3.2100 · perplexity 24.8000 · 17 tokens"


def test_masks_have_their_candidates(panel: Page, runs: Path):
    view = shown(panel, runs, "masked_lm")
    assert view.candidates.candidates() == [["capital", "heart", "centre", "city", "seat"]]
    panel.browser.table.selectRow(1)
    assert view.candidates.candidates() == []


def test_choices_keep_their_order_and_are_marked(panel: Page, runs: Path):
    view = shown(panel, runs, "multiple_choice")
    assert isinstance(view, ChoiceView)
    assert view.choices.marks == ["actual", "wrong", "", ""]


def test_confusions_are_counted_beside_the_rows(qtbot, panel: Page, runs: Path):
    panel.show_run(str(write_run(runs, "text_classification")))
    qtbot.waitUntil(lambda: bool(panel.browser.overview.matrix._labels))
    assert (panel.browser.overview.right.text(), panel.browser.overview.wrong.text()) == ("2", "1")


def test_a_cell_of_the_matrix_shows_its_rows_and_a_chip_takes_it_back(qtbot, panel: Page, runs: Path):
    panel.show_run(str(write_run(runs, "text_classification")))
    matrix = panel.browser.overview.matrix
    qtbot.waitUntil(lambda: bool(matrix._labels))
    qtbot.mouseClick(matrix, Qt.MouseButton.LeftButton, pos=matrix.box_of(0, 2).center().toPoint())
    qtbot.waitUntil(lambda: sources(panel) == [0])
    assert panel.browser.filters.chips.words() == ["Actual negative, predicted positive"]
    panel.browser.filters.chips.chip("pair").click()
    assert sources(panel) == [0, 1, 2]


@pytest.mark.parametrize(
    ("task", "order", "rows"),
    [
        ("text_classification", "Least confident first", [0, 2, 1]),
        ("text_regression", "Largest error first", [1, 0]),
        ("token_classification", "Most wrong tags first", [0, 1]),
        ("question_answering", "Lowest score first", [2, 0, 1]),
        ("causal_lm", "Highest loss first", [1, 0]),
        ("multiple_choice", "Least confident first", [0, 1]),
    ],
)
def test_worst_rows_come_first(qtbot, panel: Page, runs: Path, task: str, order: str, rows: list[int]):
    panel.show_run(str(write_run(runs, task)))
    choice = panel.browser.filters.order_choice
    choice.setCurrentIndex(choice.findText(order))
    choice.activated.emit(choice.currentIndex())
    qtbot.waitUntil(lambda: panel.browser.view.indices is not None)
    assert sources(panel) == rows


def test_keys_walk_from_mistake_to_mistake(qtbot, panel: Page, runs: Path):
    rows = [CLASSIFIED[1], CLASSIFIED[0], CLASSIFIED[2], CLASSIFIED[0]]
    panel.show_run(str(write_run(runs, "text_classification", rows)))
    panel.activateWindow()
    qtbot.waitUntil(panel.isActiveWindow)
    found = []
    for _ in range(2):
        qtbot.keyClick(panel.browser.table, Qt.Key.Key_Down, Qt.KeyboardModifier.ControlModifier)
        found.append(panel.browser.table.currentIndex().row())
    assert found == [1, 3]
    with qtbot.waitSignal(panel.message) as signal:
        panel.browser.view.step_to_mistake(1)
    assert signal.args == ["info", "No mistakes below this row."]


def test_down_in_the_search_field_leads_into_the_rows(qtbot, panel: Page, runs: Path):
    panel.show_run(str(write_run(runs, "causal_lm")))
    panel.activateWindow()
    qtbot.waitUntil(panel.isActiveWindow)
    panel.browser.filters.search.line.setFocus()
    qtbot.keyClick(panel.browser.filters.search.line, Qt.Key.Key_Down)
    assert panel.browser.table.currentIndex().row() == 0


def test_a_closed_row_gives_way_to_the_overview(panel: Page, runs: Path):
    shown(panel, runs, "causal_lm")
    panel.browser.details.closed.emit()
    assert panel.browser.view.side.currentWidget() is panel.browser.overview
    assert not panel.browser.table.currentIndex().isValid()


def test_a_million_rows_are_never_read_whole(qtbot, panel: Page, runs: Path, monkeypatch: pytest.MonkeyPatch):
    rows = [CLASSIFIED[number % 3] for number in range(20_001)]
    run = write_run(runs, "text_classification", rows)
    monkeypatch.setattr("app.services.table_pages.TablePages.read", None)
    panel.show_run(str(run))
    panel.browser.filters.right_group.button(2).click()
    qtbot.waitUntil(lambda: panel.browser.table.shown_count() == 6667)
    assert panel.browser.overview.wrong.text() == "6\u202f667"
