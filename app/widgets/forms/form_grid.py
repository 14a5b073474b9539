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

    def add(self, caption: str, field: QWidget, target: QWidget | None = None) -> QLabel:
        """One more row; returns its caption, which names `target` where the field holds more than one."""
        made = label(caption, "muted")
        named = target or field
        made.setBuddy(named)
        if not named.accessibleName():
            named.setAccessibleName(caption)
        row = self.rowCount()
        self.addWidget(made, row, 0)
        self.addWidget(field, row, 1)
        return made
