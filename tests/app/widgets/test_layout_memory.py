"""What the window remembers of its layout."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QTableView, QTextEdit

from app.widgets.tables.layout_memory import RememberedColumns, RememberedSplitter, layout_file

NAMES = ["Run", "State", "Best"]


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path))


def splitter(qtbot, name: str = "run") -> RememberedSplitter:
    made = RememberedSplitter(name, Qt.Orientation.Horizontal)
    for _ in range(2):
        made.addWidget(QTextEdit())
    qtbot.addWidget(made)
    made.resize(600, 200)
    made.show()
    return made


def table(qtbot) -> tuple[QTableView, RememberedColumns]:
    made = QTableView()
    made.setModel(QStandardItemModel(2, len(NAMES), made))
    qtbot.addWidget(made)
    made.resize(600, 200)
    made.show()
    return made, RememberedColumns(made, "runs", lambda: NAMES)


def test_a_splitter_parts_its_room_as_it_was_left(qtbot):
    first = splitter(qtbot)
    first.moveSplitter(150, 1)
    qtbot.waitUntil(lambda: layout_file().contains("splitters/run"))
    assert abs(splitter(qtbot).sizes()[0] - first.sizes()[0]) <= 1
    assert abs(splitter(qtbot, "another").sizes()[0] - first.sizes()[0]) > 50


def test_columns_keep_widths_and_order_by_their_names(qtbot):
    first, remembered = table(qtbot)
    header = first.horizontalHeader()
    header.resizeSection(1, 222)
    header.moveSection(2, 0)
    remembered._save()
    again, remembered = table(qtbot)
    remembered.restore()
    assert again.columnWidth(1) == 222
    assert [again.horizontalHeader().logicalIndex(place) for place in range(3)] == [2, 0, 1]


def test_a_damaged_layout_file_is_no_harm(qtbot):
    file = layout_file()
    file.setValue("columns/runs/widths", ["Run=abc", "State=99999999", "nonsense"])
    file.setValue("columns/runs/order", ["Best"])
    file.setValue("splitters/run", "no state")
    file.sync()
    shown, remembered = table(qtbot)
    remembered.restore()
    assert shown.columnWidth(1) <= 4000
    assert splitter(qtbot).sizes()[0] > 0
