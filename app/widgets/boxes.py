"""Rows and columns of widgets in one expression."""

from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLayout, QScrollArea, QVBoxLayout, QWidget

Part = QWidget | QLayout | int | tuple[QWidget | QLayout, int]
"""A widget or layout, alone or with its stretch; a number is an empty stretch."""


def hbox(*parts: Part, spacing: int | None = None, parent: QWidget | None = None) -> QHBoxLayout:
    """A row without margins, which is `parent`'s layout."""
    row = QHBoxLayout(parent) if parent is not None else QHBoxLayout()
    _fill(row, parts, spacing)
    return row


def vbox(*parts: Part, spacing: int | None = None, parent: QWidget | None = None) -> QVBoxLayout:
    """A column without margins, which is `parent`'s layout."""
    column = QVBoxLayout(parent) if parent is not None else QVBoxLayout()
    _fill(column, parts, spacing)
    return column


def _fill(layout: QBoxLayout, parts: Iterable[Part], spacing: int | None) -> None:
    layout.setContentsMargins(0, 0, 0, 0)
    if spacing is not None:
        layout.setSpacing(spacing)
    for each in parts:
        part, stretch = each if isinstance(each, tuple) else (each, 0)
        if isinstance(part, int):
            layout.addStretch(part)
        elif isinstance(part, QLayout):
            layout.addLayout(part, stretch)
        else:
            layout.addWidget(part, stretch)


def holder(layout: QLayout) -> QWidget:
    """A widget with this layout."""
    made = QWidget()
    made.setLayout(layout)
    return made


def scroll_area(content: QWidget) -> QScrollArea:
    """Scrolls its content upwards and downwards only."""
    content.setObjectName("scrolled")
    area = QScrollArea(widgetResizable=True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(content)
    return area
