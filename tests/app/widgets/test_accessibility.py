"""Tab goes as people read, whatever order widgets were made in."""

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.widgets.accessibility import ReadInOrder
from app.widgets.card import Card
from tests.app.reading_order import wrong_turns

PLACES = {
    "rows": {"a": QRect(0, 0, 90, 30), "b": QRect(100, 4, 90, 22), "c": QRect(0, 40, 90, 30), "d": QRect(100, 40, 90, 30)},
    "columns": {"a": QRect(0, 0, 90, 50), "b": QRect(0, 60, 90, 80), "c": QRect(100, 0, 90, 80), "d": QRect(100, 90, 90, 50)},
}  # fmt: skip


@pytest.mark.parametrize("layout", PLACES)
@pytest.mark.parametrize("made", ["abcd", "dcba", "cadb"])
def test_tab_goes_from_a_to_d(qtbot, layout: str, made: str):
    holder = ReadInOrder()
    qtbot.addWidget(holder)
    stops = {}
    for name in made:
        stops[name] = QPushButton(name, holder)
        stops[name].setGeometry(PLACES[layout][name])
    assert walked(qtbot, holder, stops["a"]) == "abcd"
    assert not list(wrong_turns([stops[name] for name in "abcd"]))


def test_what_is_made_later_takes_its_place(qtbot):
    holder = ReadInOrder()
    qtbot.addWidget(holder)
    column = QVBoxLayout(holder)
    column.addWidget(first := QPushButton("a"))
    form = QHBoxLayout()
    column.addLayout(form)
    column.addWidget(QPushButton("d"))
    walked(qtbot, holder, first)
    form.addWidget(QPushButton("b"))
    form.addWidget(QPushButton("c"))
    QApplication.processEvents()
    assert walked(qtbot, holder, first) == "abcd"


def walked(qtbot, holder: QWidget, first: QWidget) -> str:
    """The names of what Tab comes to, once around."""
    with qtbot.waitExposed(holder):
        holder.show()
    holder.activateWindow()
    assert QTest.qWaitForWindowActive(holder)
    first.setFocus()
    names = ""
    while not names.startswith(QApplication.focusWidget().text()):
        names += QApplication.focusWidget().text()
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    return names


def test_a_wrong_order_is_found(qtbot):
    holder = QWidget()
    qtbot.addWidget(holder)
    row = QHBoxLayout(holder)
    stops = []
    for _ in range(2):
        card = Card("Card")
        stops += [card.add(QLineEdit()), card.add(QLineEdit())]
        row.addWidget(card)
    with qtbot.waitExposed(holder):
        holder.show()
    upper_left, lower_left, upper_right, lower_right = stops
    right = [upper_left, lower_left, upper_right, lower_right]
    assert not list(wrong_turns(right))
    assert list(wrong_turns([lower_left, upper_left])) == [(lower_left, upper_left)]
    assert list(wrong_turns([upper_right, upper_left])) == [(upper_right, upper_left)]
    zigzag = [upper_left, upper_right, lower_left, lower_right]
    assert (upper_right, lower_left) in list(wrong_turns(zigzag))
