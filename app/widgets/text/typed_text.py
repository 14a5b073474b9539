"""Owns the field for a text that is answered: Enter sends it, Shift+Enter breaks the line, and it grows with its text."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.widgets.text.directed_text import follow_direction

MAX_LINES = 9


class TypedText(QPlainTextEdit):
    """Between `lines` and MAX_LINES lines high."""

    entered = Signal()

    def __init__(self, name: str, lines: int = 2, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines = lines
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        self.textChanged.connect(self._fit)
        follow_direction(self)
        self._fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Ctrl+Enter send; Shift+Enter breaks the line."""
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.entered.emit()
            return
        super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width is another number of lines."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        # A plain text document counts its height in lines.
        lines = min(MAX_LINES, max(self._lines, round(self.document().size().height())))
        height = lines * self.fontMetrics().lineSpacing() + 24
        if height != self.minimumHeight() or height != self.maximumHeight():
            self.setFixedHeight(height)
