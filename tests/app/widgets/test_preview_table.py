"""Tests that the preview's table names columns as they are, puts those in use first, and never reads a cell as HTML."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence

from app.widgets.plots.share_bar import CountStrip, ShareBar
from app.widgets.tables.preview_table import PreviewColumn, PreviewTable, one_line

COLUMNS = [PreviewColumn("my_ID", "whole numbers"), PreviewColumn("review", "text", "Text", "plot_1")]
ROWS = [["1", "a <b>bold</b> text that goes on for a while\nand on"], ["2", "short"]]


@pytest.fixture
def table(qtbot) -> PreviewTable:
    made = PreviewTable("Rows")
    qtbot.addWidget(made)
    made.resize(600, 200)
    made.show_rows(COLUMNS, ROWS)
    made.show()
    return made


def test_columns_in_use_come_first_under_their_own_names(table: PreviewTable):
    model = table.model()
    headers = [model.headerData(section, Qt.Orientation.Horizontal) for section in range(model.columnCount())]
    assert headers == ["#", "review", "my_ID"]
    assert model.headerData(1, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole) == "review: Text, text"
    assert table.columnWidth(1) > table.columnWidth(2)


def test_a_long_cell_is_one_line_and_whole_in_its_tooltip(table: PreviewTable):
    index = table.model().index(0, 1)
    assert index.data() == "a <b>bold</b> text that goes on for a while ⏎ and on"
    assert index.data(Qt.ItemDataRole.ToolTipRole) == ROWS[0][1]
    assert len(one_line("x" * 10_000_000)) < 300


def test_return_asks_for_the_row_and_copying_takes_its_cells(qtbot, table: PreviewTable):
    table.selectRow(1)
    with qtbot.waitSignal(table.row_requested) as asked:
        qtbot.keyClick(table, Qt.Key.Key_Return)
    assert asked.args == [1]
    qtbot.keySequence(table, QKeySequence(QKeySequence.StandardKey.Copy))
    assert QGuiApplication.clipboard().text() == "short\t2"


def test_shares_and_counts_are_told_to_who_cannot_see_them(qtbot):
    bar, strip = ShareBar("Labels"), CountStrip("Lengths")
    for widget in (bar, strip):
        qtbot.addWidget(widget)
        widget.resize(200, 40)
    bar.show_counts([("good", 3), ("bad", 1)])
    strip.show_counts([1, 5, 2], ["0 to 4", "5 to 9", "10 and more"], 2.0)
    assert bar.accessibleDescription() == "good 75%, bad 25%"
    assert strip.accessibleDescription() == "0 to 4, 5 to 9, 10 and more"
    assert not bar.grab().isNull()
    assert not strip.grab().isNull()
