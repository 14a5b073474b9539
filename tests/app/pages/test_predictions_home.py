"""What people do with predictions: narrow, chart, copy, export, and predict files of their own; with a real helper."""

import json
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from example_runs import CLASSIFIED, write_run
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QFileDialog

from app.core.predictions.row_filter import ValueFilter
from app.pages.predictions.file_prediction import FilePrediction
from app.pages.predictions.overview_card import LABELS, RELIABILITY, SLICES, THRESHOLD
from app.pages.predictions.page import Page
from app.pages.predictions.table_card import TableCard
from app.services.context import AppContext
from app.widgets.plots.confusion_matrix import HEAD
from app.widgets.progress import ActivityLine
from backend.contract.resources import resource
from backend.contract.rpc.predictions import FileFit, FilePart
from backend.contract.rpc.protocol import ErrorReply

ANSWER_MS = 30_000
"""A helper that has just been started loads its libraries first."""


@pytest.fixture
def panel(predictions: Page) -> Page:
    return predictions


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The runs folder of a test, which writes its run there."""
    return tmp_path / "runs"


@pytest.fixture
def run(runs: Path) -> Path:
    return write_run(runs, "text_classification")


@pytest.fixture
def shown(panel: Page, run: Path) -> Page:
    panel.show_run(str(run))
    return panel


class SlowClient:
    """Answers a question when the test says so."""

    def ask(self, query, arguments, on_answer, on_error, on_progress=None) -> object:
        self.answer, self.refuse = on_answer, on_error
        return object()


def sources(panel: Page) -> list[int]:
    return [panel.browser.view.row_at(line) for line in range(panel.browser.table.shown_count())]


def card(panel: Page) -> TableCard:
    return panel.browser.view.card


def choose_cell(panel: Page, line: int, column: str) -> None:
    table = panel.browser.table
    table.setCurrentIndex(table.model().index(line, table.columns.index(column) + 1))


def test_conditions_combine_as_chips_with_the_count(qtbot, shown: Page):
    filters = shown.browser.filters
    choose_cell(shown, 0, "source")
    menu = card(shown).cell_menu()
    next(action for action in menu.actions() if action.text() == "Only rows where source is imdb").trigger()
    qtbot.waitUntil(lambda: sources(shown) == [0, 1], timeout=ANSWER_MS)
    assert filters.chips.count.text() == "2 of 3 rows"
    filters.right_group.button(2).click()
    qtbot.waitUntil(lambda: sources(shown) == [0], timeout=ANSWER_MS)
    assert filters.chips.words() == ["Wrong", "source is imdb"]
    filters.chips.clear_all.click()
    assert sources(shown) == [0, 1, 2]
    assert filters.chips.isHidden()


def test_a_text_is_looked_for_in_one_column_and_as_a_word(qtbot, shown: Page):
    search = shown.browser.filters.search
    search.choose_column("text")
    search.exactness["words"].setChecked(True)
    search.line.setText("neg")
    qtbot.waitUntil(lambda: sources(shown) == [], timeout=ANSWER_MS)
    search.exactness["words"].setChecked(False)
    search.choose_column("label")
    qtbot.waitUntil(lambda: sources(shown) == [0], timeout=ANSWER_MS)
    assert shown.browser.filters.chips.words() == ["“neg” in label"]


def test_a_wrong_pattern_is_said_in_a_sentence(qtbot, shown: Page):
    search = shown.browser.filters.search
    search.exactness["regex"].setChecked(True)
    with qtbot.waitSignal(shown.message, timeout=ANSWER_MS) as told:
        search.line.setText("(")
    assert told.args[0] == "error"
    assert "is not a valid regular expression" in told.args[1]


def test_one_click_shows_the_surest_mistakes(qtbot, shown: Page):
    qtbot.waitUntil(lambda: shown.browser.overview.mistakes.isVisible(), timeout=ANSWER_MS)
    shown.browser.overview.mistakes.click()
    assert sources(shown) == [0]
    assert shown.browser.filters.order.title == "Most confident mistakes first"


def test_a_bar_of_the_reliability_diagram_shows_its_rows(qtbot, shown: Page):
    overview = shown.browser.overview
    qtbot.waitUntil(lambda: bool(overview.reliability.diagram._bins), timeout=ANSWER_MS)
    overview.parts.button(RELIABILITY).click()
    place = overview.reliability.diagram.box_of(9).center().toPoint()
    qtbot.mouseClick(overview.reliability.diagram, Qt.MouseButton.LeftButton, pos=place)
    qtbot.waitUntil(lambda: sources(shown) == [1], timeout=ANSWER_MS)
    assert shown.browser.filters.chips.words() == ["Confidence 0.90 to 1.00"]


@pytest.fixture
def overconfident(panel: Page, runs: Path) -> Path:
    """A run that is surer than it is right, and always wrong about texts from amazon."""
    source, other = ["imdb", "amazon", "yelp", "blog"], {"negative": "positive", "positive": "negative"}
    rows = []
    for number in range(120):
        actual, place = list(other)[number // 4 % 2], source[number % 4]
        predicted = other[actual] if place == "amazon" else actual
        chances = {f"probability_{label}": 0.99 if label == predicted else 0.01 for label in other}
        text = {"text": f"text {'x' * (number % 7)}", "source": place, "label": actual}
        rows.append({**text, "prediction": predicted, "actual": actual, **chances})
    run = write_run(runs, "text_classification", rows)
    note = {"task": {"type": "text_classification"}, "facts": {"labels": list(other), "max_length": 8}}
    (run / "model").mkdir()
    (run / "model" / "burnish.json").write_text(
        json.dumps({**note, "columns": {"text": "text", "label": "label"}, "step": 1})
    )
    (run / "model" / "config.json").write_text("{}")
    panel.show_run(str(run))
    return run


def test_the_worst_slice_is_found_and_shows_its_rows(qtbot, panel: Page, overconfident: Path):
    overview = panel.browser.overview
    qtbot.waitUntil(lambda: overview.parts.button(SLICES).isVisible(), timeout=ANSWER_MS)
    overview.parts.button(SLICES).click()
    qtbot.waitUntil(lambda: bool(overview.slices.table.texts()), timeout=ANSWER_MS)
    assert overview.slices.table.texts()[0] == ["source: amazon", "30", "0 (0 to 0.11)"]
    assert overview.slices.said.text().endswith("1 is worse by more than chance.")
    overview.slices.table.row_chosen.emit(0)
    qtbot.waitUntil(lambda: sources(panel) == list(range(1, 120, 4)), timeout=ANSWER_MS)
    assert panel.browser.filters.chips.words() == ["source: amazon"]
    overview.slices.table.row_chosen.emit(0)  # again: all rows
    qtbot.waitUntil(lambda: len(sources(panel)) == 120, timeout=ANSWER_MS)


def test_a_model_is_calibrated_by_a_click_and_as_it_was_by_another(qtbot, panel: Page, overconfident: Path):
    overview, view = panel.browser.overview, panel.browser.overview.reliability
    qtbot.waitUntil(lambda: overview.parts.button(RELIABILITY).isVisible(), timeout=ANSWER_MS)
    overview.parts.button(RELIABILITY).click()
    qtbot.waitUntil(lambda: view.button.isVisible() and view.button.isEnabled(), timeout=ANSWER_MS)
    assert view.error.text().startswith("ECE 0.24")
    view.sides.button(1).click()
    assert float(view.error.text().split()[1]) < 0.1
    assert view.button.text() == "Calibrate the model"
    view.button.click()
    kept = overconfident / "model" / "burnish_calibration.json"
    qtbot.waitUntil(lambda: view.button.text() == "Remove the calibration", timeout=ANSWER_MS)
    assert json.loads(kept.read_text())["method"] == "temperature"
    view.button.click()
    qtbot.waitUntil(lambda: view.button.text() == "Calibrate the model", timeout=ANSWER_MS)
    assert not kept.exists()


def test_labels_have_their_scores(qtbot, shown: Page):
    overview = shown.browser.overview
    qtbot.waitUntil(lambda: bool(overview.labels.texts()), timeout=ANSWER_MS)
    overview.parts.button(LABELS).click()
    assert ["positive", "0.50", "1.00", "0.67", "1"] in overview.labels.texts()


def test_labels_of_the_matrix_and_of_the_scores_narrow_the_rows(qtbot, shown: Page):
    overview, filters = shown.browser.overview, shown.browser.filters
    qtbot.waitUntil(lambda: bool(overview.labels.texts()), timeout=ANSWER_MS)
    matrix = overview.matrix
    place = list(matrix._labels).index("positive")
    for box, words, rows in (((HEAD, place), "Predicted positive", [0, 1]), ((place, HEAD), "Actual positive", [1])):
        qtbot.mouseClick(matrix, Qt.MouseButton.LeftButton, pos=matrix.box_of(*box).center().toPoint())
        qtbot.waitUntil(lambda rows=rows: sources(shown) == rows, timeout=ANSWER_MS)
        assert filters.chips.words() == [words]
        assert "Click to see only these" in matrix.words_of(box)
    overview.parts.button(LABELS).click()
    labels = overview.labels
    row = next(row for row, texts in enumerate(labels.texts()) if texts[0] == "negative")
    cell = labels.model().index(row, 0)
    qtbot.mouseClick(labels.viewport(), Qt.MouseButton.LeftButton, pos=labels.visualRect(cell).center())
    assert filters.chips.words() == ["Actual negative"]
    assert labels.viewport().cursor().shape() == Qt.CursorShape.PointingHandCursor
    qtbot.keyClick(labels, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: sources(shown) == [0, 1, 2], timeout=ANSWER_MS)
    assert filters.chips.isHidden()


def test_a_threshold_is_shown_in_the_table_and_taken_home(qtbot, shown: Page, tmp_path: Path):
    browser, overview = shown.browser, shown.browser.overview
    qtbot.waitUntil(lambda: bool(overview.matrix._labels), timeout=ANSWER_MS)
    overview.parts.button(THRESHOLD).click()
    view = overview.threshold
    view.choice.setCurrentIndex(view.choice.findText("positive"))
    view.choice.activated.emit(view.choice.currentIndex())
    qtbot.waitUntil(lambda: view.best.isEnabled(), timeout=ANSWER_MS)
    view.slider.setValue(600)
    assert view.scores["precision"].text() == "1.0000"
    qtbot.waitUntil(lambda: "prediction_at_threshold" in browser.table.columns, timeout=ANSWER_MS)
    assert [browser.table.shown_text(line, "prediction_at_threshold") for line in range(3)] == [
        "negative", "positive", "neutral",
    ]  # fmt: skip
    assert browser.view.color(0, "prediction_at_threshold") == "accent_text"
    dialog = shown.ask_export()
    assert "positive threshold of 0.600" in dialog.threshold.text()
    dialog.parquet.setChecked(True)
    choice = dialog.choice()
    dialog.close()
    with qtbot.waitSignal(shown.wrote, timeout=ANSWER_MS):
        browser.export(str(tmp_path / "home.parquet"), choice)
    assert parquet.read_table(tmp_path / "home.parquet")["prediction_at_threshold"].to_pylist()[0] == "negative"
    view.reset.click()
    assert "prediction_at_threshold" not in browser.table.columns


def test_rows_are_exported_as_shown_with_all_columns_and_whole(qtbot, shown: Page, tmp_path: Path):
    browser = shown.browser
    browser.filters.right_group.button(2).click()
    dialog = shown.ask_export()
    assert dialog.all_columns.isChecked()
    every = dialog.choice()
    assert "1 row, 5 columns" in dialog.as_shown.text()
    left_out = [name for name in browser.rows.columns if name not in browser.table.columns]
    assert dialog.left_out.text() == "Without " + ", ".join(browser.table.title(name) for name in left_out)
    assert dialog.derived.text() == "Without Confidence, which the table adds"
    dialog.as_shown.setChecked(True)
    as_shown = dialog.choice()
    dialog.whole.setChecked(True)
    whole = dialog.choice()
    dialog.close()
    for name, choice in (("shown", as_shown), ("every", every), ("whole", whole)):
        with qtbot.waitSignal(shown.wrote, timeout=ANSWER_MS) as told:
            browser.export(str(tmp_path / f"{name}.csv"), choice)
        assert told.args[1] == str(tmp_path / f"{name}.csv")
    lines = (tmp_path / "shown.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == '"text","actual","prediction","confidence","source"'
    assert len(lines) == 2
    lines = (tmp_path / "every.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == ",".join(f'"{name}"' for name in browser.rows.columns)
    assert "probability_positive" in lines[0]
    assert len(lines) == 2
    assert len((tmp_path / "whole.csv").read_text(encoding="utf-8").splitlines()) == 4
    assert browser.line.isHidden()


def test_rows_that_are_not_filtered_are_offered_as_shown(shown: Page):
    dialog = shown.ask_export()
    assert dialog.as_shown.isChecked()


def test_spreadsheet_options_are_remembered_and_no_parquet_has_them(shown: Page):
    dialog = shown.ask_export()
    dialog.bom.setChecked(True)
    dialog.parquet.setChecked(True)
    assert not dialog.bom.isEnabled()
    assert not dialog.choice().bom
    dialog.chosen.disconnect()
    dialog.save.click()
    assert shown.ask_export().bom.isChecked()


def test_rows_and_cells_are_copied_uncut(qtbot, shown: Page):
    table = shown.browser.table
    table.selectAll()
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 3
    assert lines[1].split("\t")[:3] == [CLASSIFIED[1]["text"], "positive", "positive"]
    choose_cell(shown, 2, "prediction")
    table.copy_cell()
    assert QGuiApplication.clipboard().text() == "neutral"


def test_chosen_columns_and_widths_are_there_again(qtbot, shown: Page, services: AppContext, run: Path):
    for action in card(shown).columns_menu.actions():
        if action.data() == "source":
            action.setChecked(False)
    shown.browser.table.setColumnWidth(3, 173)
    again = Page(services)
    qtbot.addWidget(again)
    again.show_run(str(run))
    assert again.browser.table.columns == ["text", "actual", "prediction", "confidence"]
    assert again.browser.table.columnWidth(3) == 173
    card(again).reset_columns()
    assert "source" in again.browser.table.columns


def test_the_next_row_is_reached_from_the_card(shown: Page):
    shown.browser.table.selectRow(0)
    shown.browser.details.row_step_requested.emit(1)
    assert shown.browser.details._values["text"] == CLASSIFIED[1]["text"]


def test_a_dot_of_the_scatter_plot_shows_its_row(qtbot, panel: Page, runs: Path):
    panel.show_run(str(write_run(runs, "text_regression")))
    scatter = panel.browser.overview.scatter
    qtbot.waitUntil(lambda: len(scatter._points) == 2 and scatter.isVisible(), timeout=ANSWER_MS)
    panel.grab()
    qtbot.mouseClick(scatter, Qt.MouseButton.LeftButton, pos=scatter.place_of(1).toPoint())
    assert panel.browser.details.heading.text() == "ROW 2"
    assert "Pearson" in panel.browser.overview.numbers.text()


def test_entities_are_scored_by_their_type(qtbot, panel: Page, runs: Path):
    panel.show_run(str(write_run(runs, "token_classification")))
    overview = panel.browser.overview
    qtbot.waitUntil(lambda: bool(overview.labels.texts()), timeout=ANSWER_MS)
    assert ["LOC", "0", "0", "0", "1"] in overview.labels.texts()


def drop(panel: Page, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    none = Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(50, 50), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, none)
    panel.browser.dragEnterEvent(enter)
    assert panel.browser.hint.words().startswith(f"Predict {path.name} with ")
    event = QDropEvent(QPointF(QPoint(50, 50)), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, none)
    panel.browser.dropEvent(event)


def test_a_dropped_file_is_predicted_and_shown(qtbot, shown: Page, tmp_path: Path):
    mine = tmp_path / "mine.csv"
    mine.write_text("text\nA joy\n", encoding="utf-8")
    with qtbot.waitSignal(shown.message, timeout=ANSWER_MS) as told:
        drop(shown, mine)
    assert told.args == [
        "warning",
        "Predicted 3 rows of mine.csv and saved them to predictions_mine.csv. Accuracy 0.5000. 1 "
        "row couldn't be used; the first one: mine.csv:4: no text.",
    ]
    assert shown.browser.filters.split == "mine"
    assert sources(shown) == [0, 1, 2]
    shown.browser.filters.split_group.button(0).click()
    assert shown.browser.filters.split == "validation"


def test_columns_of_other_names_are_asked_for(qtbot, shown: Page, tmp_path: Path):
    mine = tmp_path / "mine.csv"
    mine.write_text("review,stars\nA joy,5\n", encoding="utf-8")
    further = shown.browser.further
    shown.browser.predict_file(str(mine))
    qtbot.waitUntil(lambda: further.mapping.isVisible(), timeout=ANSWER_MS)
    assert further.sentence.text().startswith("mine.csv has the columns review, stars, but this run needs text.")
    assert not further.go.isEnabled()
    further.choices["text"].setCurrentIndex(further.choices["text"].findData("review"))
    further.go.click()
    qtbot.waitUntil(lambda: shown.browser.filters.split == "mine", timeout=ANSWER_MS)
    assert further.isHidden()


def test_a_second_file_waits_until_the_columns_of_the_first_are_known(qtbot, tmp_path: Path):
    client = SlowClient()
    further = FilePrediction(client, ActivityLine())
    qtbot.addWidget(further)
    further.predict(tmp_path, tmp_path / "first.csv")
    client.refuse(ErrorReply("data.columns.text: there is no column 'text'", "data.columns.text"))
    assert not further.line.isHidden()
    assert further.is_busy
    with qtbot.waitSignal(further.message) as told:
        further.predict(tmp_path, tmp_path / "second.csv")
    assert told.args[1] == "Still predicting first.csv. Stop it or wait until it finishes."
    client.answer(FileFit(columns=["review"], rows=1, parts=[FilePart(name="text", title="Text")], first={}))
    assert further.sentence.text().startswith("first.csv has the columns review,")
    assert not further.is_busy


def test_a_file_of_windows_is_predicted_at_a_click(qtbot, shown: Page, tmp_path: Path):
    mine = tmp_path / "mine.csv"
    mine.write_text("text,label\npoesía,positive\n", encoding="windows-1252")
    further = shown.browser.further
    shown.browser.predict_file(str(mine))
    qtbot.waitUntil(lambda: further.banner.fix.isVisible(), timeout=ANSWER_MS)
    assert further.banner.text() == "mine.csv is not UTF-8:\npoesía"
    further.banner.fix.click()
    qtbot.waitUntil(lambda: shown.browser.filters.split == "mine", timeout=ANSWER_MS)
    assert further.isHidden()


def test_a_prediction_shows_its_progress_and_can_be_stopped(qtbot, shown: Page, tmp_path: Path):
    further, top = shown.browser.further, shown.browser.stack.y()
    shown.browser.predict_file(str(tmp_path / "never.csv"))
    qtbot.waitUntil(lambda: "500 of" in further.line.detail.text(), timeout=ANSWER_MS)
    assert further.line.bar.fraction() == 0.25
    assert shown.browser.stack.y() == top, "no row moves under the mouse"
    assert further.line.y() > top
    assert not shown.predict_button.isEnabled()
    with qtbot.waitSignal(shown.message, timeout=ANSWER_MS) as told:
        further.line.stop.click()
    assert told.args[1] == "Stopped. No predictions were written for never.csv."
    assert shown.predict_button.isEnabled()


def test_a_file_to_predict_is_first_looked_for_beside_the_training_data(panel: Page, runs: Path, tmp_path: Path):
    data = tmp_path / "corpus" / "train.csv"
    data.parent.mkdir()
    run = write_run(runs, "text_classification")
    spec = run / "spec.yaml"
    spec.write_text(f"data: {{train: {data}}}\n", encoding="utf-8")
    panel.show_run(str(run))
    assert panel.folder_of_data() == str(data.parent)
    data.parent.rmdir()
    assert panel.folder_of_data() == str(Path.home())


@pytest.mark.parametrize("is_demo", [True, False])
def test_an_export_is_offered_beside_the_training_data_of_the_user(
    shown: Page, tmp_path: Path, monkeypatch, is_demo: bool
):
    offered: list[Path] = []
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *given: (offered.append(Path(given[2])), ("", ""))[1])
    data = resource("demo", "sentiment", "train.csv") if is_demo else tmp_path / "train.csv"
    assert shown.browser.run is not None
    (shown.browser.run / "spec.yaml").write_text(f"data: {{train: {data}}}\n", encoding="utf-8")
    dialog = shown.ask_export()
    dialog.save.click()
    assert offered[0].parent == (Path.home() if is_demo else tmp_path)


def test_a_condition_of_an_empty_cell_reads_as_words(shown: Page):
    shown.browser.filters.want_value(ValueFilter("actual", "is", None))
    assert shown.browser.filters.chips.words() == ["actual is empty"]
