"""Owns the card: a rounded surface with a small heading, room for controls at its right, and a body."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app import theme

HEADING_HEIGHT = 22
"""Room for a heading, so that headings side by side stand on one line whatever is in their corners."""


class Card(QFrame):
    """Put content into `body` (a vertical layout) and small controls into `corner` (right of the heading)."""

    def __init__(self, title: str = "", parent: QWidget | None = None, spacing: int = 12) -> None:
        super().__init__(parent)
        theme.role(self, "card")
        self.heading = QLabel(title.upper())
        theme.role(self.heading, "heading")
        self.heading.setMinimumHeight(HEADING_HEIGHT)
        self.corner = QHBoxLayout()
        self.corner.setSpacing(8)
        self.body = QVBoxLayout()
        self.body.setSpacing(spacing)
        top = QHBoxLayout()
        top.addWidget(self.heading)
        top.addStretch(1)
        top.addLayout(self.corner)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(16, 12, 16, 16)
        outer.setSpacing(8)
        outer.addLayout(top)
        outer.addLayout(self.body, 1)
        self.heading.setVisible(bool(title))
        self.setAccessibleName(title)

    def set_title(self, title: str) -> None:
        """Change the heading; empty hides it."""
        self.heading.setText(title.upper())
        self.heading.setVisible(bool(title))
        self.setAccessibleName(title)

    def add(self, widget: QWidget, stretch: int = 0) -> QWidget:
        """Append a widget to the body and return it."""
        self.body.addWidget(widget, stretch)
        return widget


def rule(parent: QWidget | None = None) -> QFrame:
    """A thin dividing line."""
    line = QFrame(parent)
    theme.role(line, "rule")
    line.setFixedHeight(1)
    return line


def label(text: str = "", role: str = "", wrap: bool = False, selectable: bool = False) -> QLabel:
    """A plain-text label in a role of the style sheet."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setWordWrap(wrap)
    if selectable:
        made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if role:
        theme.role(made, role)
    return made
