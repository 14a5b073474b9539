"""Owns the line for a number."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit


class NumberLine(QLineEdit):
    """A line for a number; the arrow keys count whole numbers up and down."""

    def __init__(self, whole: bool) -> None:
        super().__init__()
        self._whole = whole

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and down change a whole number by one."""
        step = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}.get(Qt.Key(event.key()))
        if step and self._whole and self.text().strip().lstrip("-").isdigit():
            self.setText(str(int(self.text()) + step))
            self.textEdited.emit(self.text())
            return
        super().keyPressEvent(event)
