"""The log and the row table: fast with many rows, and copying gives what is seen."""

from collections.abc import Sequence

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from app import theme
from app.core import formatting
from app.widgets.tables.log_view import MAX_LINES, LogView
from app.widgets.tables.row_table import MAX_COPIED_LINES as MAX_LINES_COPIED
from app.widgets.tables.row_table import RowTable, as_tsv
from app.widgets.tables.text_table import TextTable


class Squares:
    """A million rows that are computed when they are asked for."""

    columns = ("number", "square")
    row_count = 1_000_000

    def __init__(self) -> None:
        self.asked = 0

    def cell(self, row: int, column: int) -> object:
        self.asked += 1
        return (row, row * row)[column]


@pytest.fixture
def table(qtbot, styled):
    made = RowTable()
    qtbot.addWidget(made)
    made.resize(500, 400)
    made.set_source(Squares())
    with qtbot.waitExposed(made):
        made.show()
    return made


class TwentyAnswers:
    """A source of short texts and what was predicted of them."""

    columns = ("text", "actual", "prediction", "confidence")
    row_count = 20

    def cell(self, row: int, column: int) -> object:
        return ("a film that one might like", "positive", "negative", 0.5)[column]


def test_a_narrow_table_keeps_its_answers_in_view(qtbot, styled):
    table = RowTable()
    qtbot.addWidget(table)
    table.set_source(TwentyAnswers(), ["text", "actual", "prediction", "confidence"])
    table.set_widths({"text": 136, "actual": 90, "prediction": 126, "confidence": 104}, ["text"])
    table.resize(372, 300)
    table.show()
    place = table.columnViewportPosition(3) + table.columnWidth(3)
    assert place <= table.viewport().width()


def test_a_million_rows_ask_only_for_the_visible_ones(table: RowTable):
    table.scrollToBottom()
    table.grab()
    source = table._model.source
    assert table.shown_count() == 1_000_000
    assert 0 < source.asked < 2_000  # type: ignore[union-attr]


def test_selecting_everything_in_a_million_rows_asks_only_for_the_visible_ones(qtbot, table: RowTable):
    table.grab()
    source = table._model.source
    source.asked = 0  # type: ignore[union-attr]
    qtbot.keyClick(table, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    table.grab()
    assert source.asked < 2_000  # type: ignore[union-attr]
    assert table.horizontalHeader().selectionModel() is not table.selectionModel()


def test_indices_choose_and_order_the_rows(qtbot, table: RowTable):
    table.set_indices([7, 3])
    assert [table.shown_text(line, "square") for line in range(2)] == ["49", "9"]
    with qtbot.waitSignal(table.row_selected) as signal:
        table.selectRow(1)
    assert signal.args == [3]


def test_a_header_click_asks_for_order_and_the_next_for_the_reverse(qtbot, table: RowTable):
    header = table.horizontalHeader()
    for descending in (False, True):
        with qtbot.waitSignal(table.sort_requested) as signal:
            header.sectionClicked.emit(2)
        assert signal.args == ["square", descending]


def test_a_selected_cell_keeps_its_colour(table: RowTable):
    table.set_color(lambda row, column: "danger" if column == "square" else "")
    table.selectRow(0)
    index = table.model().index(0, 2)
    assert table.model().data(index, Qt.ItemDataRole.ForegroundRole) == theme.color("danger")


def test_copying_a_row_gives_its_cells(qtbot, table: RowTable):
    table.selectRow(5)
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "5\t25"


@pytest.fixture
def log(qtbot, styled):
    made = LogView("Nothing is written.")
    qtbot.addWidget(made)
    made.resize(500, 200)
    with qtbot.waitExposed(made):
        made.show()
    return made


def at_end(log: LogView) -> bool:
    return log.verticalScrollBar().value() == log.verticalScrollBar().maximum()


def test_an_empty_log_says_so_until_there_are_lines(log: LogView):
    said = log.viewport().grab().toImage()
    log.nothing = ""
    blank = log.viewport().grab().toImage()
    assert said != blank


def test_the_log_follows_its_end(qtbot, log: LogView):
    log.append_lines([f"line {i}" for i in range(500)])
    qtbot.waitUntil(lambda: log.verticalScrollBar().maximum() > 0 and at_end(log))
    log.append_lines(["one more"])
    qtbot.waitUntil(lambda: at_end(log))


def test_the_log_stays_where_someone_reads(qtbot, log: LogView):
    log.append_lines([f"line {i}" for i in range(500)])
    qtbot.waitUntil(lambda: log.verticalScrollBar().maximum() > 0)
    log.verticalScrollBar().setValue(100)
    log.append_lines([f"more {i}" for i in range(500)])
    log.grab()
    assert log.verticalScrollBar().value() == 100


def test_the_log_forgets_its_oldest_lines(log: LogView):
    log.append_lines([str(i) for i in range(MAX_LINES)])
    log.append_lines(["last"])
    assert log.line_count() <= MAX_LINES
    assert log.text().endswith("last")


def test_copying_the_log_gives_the_selected_lines(qtbot, log: LogView):
    log.append_lines(["one", "two", "three"])
    log.selectRow(1)
    qtbot.keyClick(log, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "two"


@pytest.mark.parametrize("letter", ["x", "W", "ü", "→"])
def test_a_long_line_is_not_cut(log: LogView, letter: str):
    log.append_lines(["short", letter * 3000])
    assert log.columnWidth(0) >= log.fontMetrics().horizontalAdvance(letter * 3000)
    log.grab()
    assert log.horizontalScrollBar().maximum() > 0
    assert log.textElideMode() == Qt.TextElideMode.ElideNone


def test_a_short_log_needs_no_scroll_bar(log: LogView):
    log.append_lines(["short"])
    log.grab()
    assert log.horizontalScrollBar().maximum() == 0


class Words(Squares):
    """The same rows, given many at once."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[int] = []

    def cells(self, rows: Sequence[int], name: str) -> list[object]:
        self.fetched += rows
        return [f"{name} {row}" for row in rows]


def test_rows_that_come_in_blocks_are_fetched_once(table: RowTable):
    source = Words()
    table.set_source(source)
    for _ in range(3):
        table.grab()
    assert 0 < len(source.fetched) <= 2 * 32 * len(source.columns)
    assert source.asked == 0
    assert table.shown_text(3, "square") == "square 3"
    table.refresh()
    table.grab()
    assert source.fetched.count(3) == 2 * len(source.columns)


def test_copied_cells_with_tabs_and_breaks_stay_one_cell():
    assert as_tsv([("a\tb", 'say "no"', None), ("c\nd", 1, ["x", "y"])]) == '"a\tb"\t"say ""no"""\t\n"c\nd"\t1\tx y'


def test_copying_everything_takes_only_the_first_rows(qtbot, table: RowTable):
    table.set_many()
    table.set_source(Words())
    table.selectAll()
    with qtbot.waitSignal(table.copied_part) as signal:
        qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert signal.args == [MAX_LINES_COPIED]
    assert len(QGuiApplication.clipboard().text().splitlines()) == MAX_LINES_COPIED


def test_width_that_a_person_dragged_stays_when_the_table_is_resized(qtbot, styled):
    rows = TextTable("Metrics")
    qtbot.addWidget(rows)
    rows.resize(800, 200)
    rows.show()
    rows.show_rows(("Label", "F1", "Recall"), [("positive", "0.8", "0.9")])
    first = rows.columnWidth(0)
    rows.horizontalHeader().resizeSection(1, 333)
    rows.resize(700, 200)
    rows.show_rows(("Label", "F1", "Recall"), [("positive", "0.7", "0.9")])
    assert [rows.columnWidth(column) for column in (0, 1)] == [first, 333]
    rows.show_rows(("Label", "Other", "Recall"), [("positive", "0.7", "0.9")])
    assert rows.columnWidth(1) != 333, "another table starts anew"


def test_copied_numbers_keep_the_point_in_a_german_table(qtbot, styled, german):
    rows = TextTable("Metrics")
    qtbot.addWidget(rows)
    rows.show_rows(("Label", "F1"), [("3,5", formatting.number(0.8235))])
    rows.selectAll()
    assert rows.texts() == [["3,5", "0,8235"]]
    QTest.keyClick(rows, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "3,5\t0.8235", "a label that looks like a number is none"
