"""Owns the grid of caption and field that the cards share."""

from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.widgets.card import label

CAPTION_WIDTH = 104


class Rows(QGridLayout):
    """Two columns; captions name their fields for screen readers."""

    def __init__(self) -> None:
        super().__init__()
        self.setHorizontalSpacing(10)
        self.setVerticalSpacing(8)
        self.setColumnMinimumWidth(0, CAPTION_WIDTH)
        self.setColumnStretch(1, 1)

    def add(self, caption: str, field: QWidget) -> QLabel:
        """One more row; returns its caption."""
        made = label(caption, "muted")
        made.setBuddy(field)
        row = self.rowCount()
        self.addWidget(made, row, 0)
        self.addWidget(field, row, 1)
        return made
