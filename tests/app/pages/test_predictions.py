"""Predictions are tested on a real Parquet file of a few rows."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics

from app import theme
from app.pages.predictions.page import Page
from app.services.context import AppContext
from app.services.prediction_rows import write_indices
from backend.contract.rpc.protocol import ExportedFile

ROWS = [
    {"text": "good film", "label": "pos", "prediction": "pos", "actual": "pos", "probability_neg": 0.1, "probability_pos": 0.9},
    {"text": "bad film", "label": "neg", "prediction": "pos", "actual": "neg", "probability_neg": 0.4, "probability_pos": 0.6},
    {"text": "dull book", "label": "neg", "prediction": "neg", "actual": "neg", "probability_neg": 0.8, "probability_pos": 0.2},
]  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "2026-11-21-1530-films"
    folder.mkdir()
    (folder / "spec.yaml").write_text("version: 1\n")
    parquet.write_table(pa.Table.from_pylist(ROWS), folder / "predictions.parquet", row_group_size=2)
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """No recorded runs."""
    return tmp_path / "runs"


@pytest.fixture
def panel(predictions: Page, run: Path) -> Page:
    predictions.show_run(str(run))
    return predictions


@pytest.mark.parametrize(
    "row",
    [{"text": "good film"}, {"text": "good film", "prediction": ["pos"]}, {**ROWS[0], "probability_pos": "much"}],
)
def test_a_table_that_does_not_hold_predictions_is_refused_in_words(predictions: Page, run: Path, row: dict):
    parquet.write_table(pa.Table.from_pylist([row]), run / "predictions.parquet")
    predictions.show_run(str(run))
    assert (
        predictions.browser.empty._sentence.text()
        == "predictions.parquet: it does not contain predictions; predict the data again"
    )


def test_a_column_of_the_data_that_is_called_like_a_probability_is_none(predictions: Page, run: Path):
    rows = [{"probability_of_rain": "high", **row} for row in ROWS]
    parquet.write_table(pa.Table.from_pylist(rows), run / "predictions.parquet")
    predictions.show_run(str(run))
    assert predictions.browser.rows.probabilities == ["probability_neg", "probability_pos"]
    assert predictions.browser.rows.confidence(0) == 0.9


def texts(panel: Page) -> list[str]:
    return [panel.table.shown_text(line, "text") for line in range(panel.table.shown_count())]


def test_before_a_run_is_chosen_the_page_says_what_to_do(qtbot, shared_context: AppContext):
    panel = Page(shared_context)
    qtbot.addWidget(panel)
    assert panel.browser.stack.currentWidget() is panel.browser.empty
    with qtbot.waitSignal(panel.runs_requested):
        panel.browser.empty._button.click()


def test_a_run_without_predictions_says_so(predictions: Page, tmp_path: Path):
    predictions.show_run(str(tmp_path))
    assert predictions.browser.stack.currentWidget() is predictions.browser.empty
    assert not predictions.export_button.isEnabled()


def test_all_rows_are_shown_with_confidence_and_without_repetition(panel: Page):
    assert texts(panel) == ["good film", "bad film", "dull book"]
    assert panel.table._model.shown == ["text", "actual", "prediction", "confidence"]
    assert [panel.table.shown_text(line, "confidence") for line in range(3)] == ["0.9000", "0.6000", "0.8000"]


def test_in_half_a_screen_the_row_stands_below_the_table(panel: Page):
    rows = panel.browser.view
    for size, orientation in (((700, 900), "Vertical"), ((700, 500), "Horizontal"), ((1000, 1100), "Horizontal")):
        rows.resize(*size)
        assert rows.orientation().name == orientation


@pytest.mark.parametrize(("chip", "rows"), [(1, ["good film", "dull book"]), (2, ["bad film"])])
def test_right_and_wrong_rows_can_be_told_apart(panel: Page, chip: int, rows: list[str]):
    panel.browser.filters.right_group.button(chip).click()
    assert texts(panel) == rows
    assert f"{len(rows)} shown" in panel.header.subtitle.text()


def test_right_is_green_and_wrong_is_red(panel: Page):
    assert [panel.browser.view.color(row, "prediction") for row in range(3)] == ["success", "danger", "success"]
    assert panel.browser.view.color(0, "text") == ""


def test_text_is_found_a_moment_after_typing(qtbot, panel: Page):
    qtbot.keyClicks(panel.browser.filters.search.line, "FILM")
    qtbot.waitUntil(lambda: texts(panel) == ["good film", "bad film"])


def test_a_header_click_sorts_also_by_confidence(qtbot, panel: Page):
    panel.table.sort_requested.emit("confidence", True)
    assert texts(panel) == ["good film", "dull book", "bad film"]
    panel.table.sort_requested.emit("text", False)
    assert texts(panel) == ["bad film", "dull book", "good film"]


def test_one_row_is_shown_whole(panel: Page):
    panel.table.selectRow(1)
    assert panel.browser.view.side.currentWidget() is panel.browser.details
    assert panel.browser.details._values["text"] == "bad film"
    panel.browser.filters.right_group.button(1).click()
    assert panel.browser.view.side.currentWidget() is panel.browser.overview


def test_a_file_without_actual_values_has_nothing_right_or_wrong(qtbot, predictions: Page, run: Path):
    table = pa.Table.from_pylist([{"text": "a", "prediction": "pos"}])
    parquet.write_table(table, run / "predictions.parquet")
    predictions.show_run(str(run))
    assert not predictions.browser.filters.right_group.button(1).isEnabled()
    assert texts(predictions) == ["a"]
    overview = predictions.browser.overview
    qtbot.waitUntil(lambda: overview.note.text() == "These rows have no actual values to compare with.")


def test_a_broken_file_is_told_and_breaks_nothing(predictions: Page, run: Path):
    (run / "predictions.parquet").write_bytes(b"no parquet")
    predictions.show_run(str(run))
    assert predictions.browser.stack.currentWidget() is predictions.browser.empty
    assert "predictions.parquet" in predictions.browser.empty._sentence.text()


def test_test_data_is_offered_only_where_there_is_some(panel: Page, run: Path):
    assert not panel.browser.filters.split_group.button(1).isEnabled()
    parquet.write_table(pa.Table.from_pylist(ROWS[:1]), run / "predictions_test.parquet")
    panel.show_run(str(run))
    panel.browser.filters.split_group.button(1).click()
    assert texts(panel) == ["good film"]


def test_predictions_that_were_written_again_are_read_again(panel: Page, run: Path):
    parquet.write_table(pa.Table.from_pylist(ROWS[1:]), run / "again.parquet")
    (run / "again.parquet").rename(run / "predictions.parquet")
    panel.on_shown()
    assert texts(panel) == ["bad film", "dull book"]


def test_a_deleted_run_can_still_be_sorted_and_is_gone_at_the_next_look(panel: Page, run: Path):
    (run / "predictions.parquet").unlink()
    panel.table.sort_requested.emit("confidence", True)
    assert texts(panel) == ["good film", "dull book", "bad film"]
    panel.on_shown()
    assert panel.browser.stack.currentWidget() is panel.browser.empty


def test_a_run_whose_folder_is_deleted_says_so(panel: Page, run: Path, shared_context: AppContext):
    shutil.rmtree(run)
    shared_context.library_watcher.changed.emit()
    assert panel.browser.stack.currentWidget() is panel.browser.empty
    assert panel.browser.empty._title.text() == "This run was deleted"
    assert not panel.predict_button.isEnabled()


def test_row_numbers_for_the_helper_come_back_as_they_were(panel: Page):
    path = write_indices([2, 0])
    assert panel.browser.rows is not None
    assert list(panel.browser.rows.pages.read_indices(path)) == [2, 0]
    assert not Path(path).exists()


def test_an_export_that_is_done_is_told(qtbot, panel: Page):
    with qtbot.waitSignal(panel.wrote) as signal:
        panel.browser.exporting._on_exported(ExportedFile(path="/tmp/x.csv", rows=3))
    assert signal.args == ["Exported 3 rows to /tmp/x.csv.", "/tmp/x.csv"]


def test_the_keyboard_walks_through_the_rows(qtbot, panel: Page):
    panel.table.selectRow(0)
    panel.table.setFocus()
    qtbot.keyClick(panel.table, Qt.Key.Key_Down)
    assert panel.browser.details._values["text"] == "bad film"


def test_another_text_size_is_taken_by_the_rows_that_are_shown(qtbot, styled, panel: Page):
    qtbot.waitUntil(lambda: panel.table.shown_count() == 3)
    for size in (16, 13):
        theme.apply(styled, "light", size)
        assert not panel.grab().isNull()
        assert panel.table.fontMetrics().height() == QFontMetrics(theme.font()).height()
