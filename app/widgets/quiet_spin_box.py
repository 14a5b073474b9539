"""Owns the number field that lets a page scroll under the mouse."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QSpinBox


class QuietSpinBox(QSpinBox):
    """Turning the wheel over it scrolls the page unless it has the focus."""

    def __init__(self, minimum: int = 0, maximum: int = 99, value: int = 0) -> None:
        super().__init__(minimum=minimum, maximum=maximum, value=value)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Only where a person meant it."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()
