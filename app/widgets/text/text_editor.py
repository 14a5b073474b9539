"""Owns the editor that takes no text whose layout would stop the window: Qt's time grows with the square of a line."""

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.widgets.text.directed_text import follow_direction

MOST = 200_000
"""Characters in all."""
LONGEST_LINE = 20_000


def fits(text: str, beside: int = 0) -> bool:
    """Whether an editor takes it, with so many characters in the same line."""
    return len(text) <= MOST and max(map(len, text.splitlines()), default=0) + beside <= LONGEST_LINE


class TextEditor(QPlainTextEdit):
    """A plain editor; what is too long for it is not put in."""

    too_long = Signal(str)
    """The text that was to be pasted."""

    def __init__(self, text: str = "", hint: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent, placeholderText=hint)
        follow_direction(self)
        self.setPlainText(text)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste, unless it would be too long with what is there."""
        text = source.text()
        there = self.document().characterCount()
        if there + len(text) <= MOST and fits(text, self.textCursor().block().length()):
            super().insertFromMimeData(source)
        else:
            self.too_long.emit(text)
