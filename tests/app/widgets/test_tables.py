"""The log and the row table: fast with many rows, and copying gives what is seen."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app import theme
from app.widgets.log_view import MOST_LINES, LogView
from app.widgets.row_table import RowTable


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
    log.append_lines([str(i) for i in range(MOST_LINES)])
    log.append_lines(["last"])
    assert log.line_count() <= MOST_LINES
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
