"""Texts of both writing directions stand where their reader begins, in lists, tables, labels and answers."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QListWidget, QWidget

from app.widgets.tables.row_table import RowTable
from app.widgets.tables.text_table import TextTable
from app.widgets.text.directed_text import DirectedText, direction_of
from app.widgets.text.elided_label import ElidedLabel
from app.widgets.text.marked_text import MarkedText
from app.widgets.text.text_editor import TypedText

HEBREW, ARABIC, ENGLISH = "שלום, עולם!", "مرحبا بالعالم.", "Hello, world!"
RIGHT, LEFT = Qt.LayoutDirection.RightToLeft, Qt.LayoutDirection.LeftToRight


def middle_of_ink(widget: QWidget) -> float:
    """Where what is drawn stands, from 0 at the left to 1 at the right."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_Grayscale8)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())[:, : image.width()]
    inner = rows[4:-4, 4:-4].astype(int)
    columns = np.flatnonzero((np.abs(inner - np.median(inner)) > 60).any(axis=0))
    return float(columns.mean() / inner.shape[1])


def listed(text: str) -> QWidget:
    made = QListWidget()
    made.setItemDelegate(DirectedText(made))
    made.addItem(text)
    return made


def labelled(text: str) -> QWidget:
    return ElidedLabel(text)


def answered(text: str) -> QWidget:
    made = MarkedText("Answer")
    made.show_text(text)
    return made


def typed(text: str) -> QWidget:
    made = TypedText("Text")
    made.setPlainText(text)
    return made


@pytest.mark.parametrize("make", [listed, labelled, answered, typed])
@pytest.mark.parametrize(("text", "is_right"), [(HEBREW, True), (ARABIC, True), (ENGLISH, False)])
def test_text_begins_where_its_reader_does(qtbot, make, text: str, is_right: bool):
    widget = make(text)
    qtbot.addWidget(widget)
    widget.setStyleSheet("background: white; color: black")
    widget.resize(400, 60)
    widget.show()
    assert (middle_of_ink(widget) > 0.5) == is_right


def test_cells_of_a_table_have_their_own_directions(qtbot):
    table = TextTable("Texts")
    qtbot.addWidget(table)
    table.show_rows(["Text"], [[HEBREW]])
    table.resize(400, 80)
    table.horizontalHeader().hide()
    table.setColumnWidth(0, 380)
    table.show()
    assert middle_of_ink(table.viewport()) > 0.5


@pytest.mark.parametrize(
    ("text", "direction"), [(HEBREW, RIGHT), (f"1. {ARABIC}", RIGHT), ("café שלום", LEFT), ("123", LEFT), ("", LEFT)]
)
def test_first_letter_decides(text: str, direction: Qt.LayoutDirection):
    assert direction_of(text) == direction


class Cells:
    """Two rows, of which the first is right."""

    columns = ("text", "prediction")
    row_count = 2

    def cell(self, row: int, column: int) -> str:
        return HEBREW if column == 0 else "pos"


def test_prediction_is_marked_by_a_sign_and_its_text_by_its_side(qtbot):
    table = RowTable()
    qtbot.addWidget(table)
    table.set_source(Cells())
    colors = {"prediction": ""}
    table.set_color(lambda row, column: colors.get(column, ""))
    table.resize(700, 140)
    table.show()
    plain = table.viewport().grab().toImage()
    colors["prediction"] = "success"
    right = table.viewport().grab().toImage()
    colors["prediction"] = "danger"
    wrong = table.viewport().grab().toImage()

    def shape(image: QImage) -> np.ndarray:
        """Where there is ink, whatever its colour, in the cell of the first prediction."""
        grey = image.convertToFormat(QImage.Format.Format_Grayscale8)
        rows = np.frombuffer(grey.constBits(), np.uint8).reshape(grey.height(), grey.bytesPerLine())
        left = table.columnViewportPosition(2)
        return rows[2 : table.rowHeight(0) - 2, left : left + 40] < 200

    assert not (shape(plain) == shape(right)).all()
    assert not (shape(right) == shape(wrong)).all()
