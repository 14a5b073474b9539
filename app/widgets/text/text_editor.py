"""Text editors: one rejects text that would freeze the window, one sends its text on Enter."""

import numpy as np
from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.widgets.text.directed_text import follow_direction

MAX_CHARACTERS = 200_000
"""Characters in all."""
LONGEST_LINE = 20_000


def fits(text: str, beside: int = 0) -> bool:
    """Whether it fits an editor, with this many characters already on the same line."""
    return len(text) <= MAX_CHARACTERS and max(map(len, text.splitlines()), default=0) + beside <= LONGEST_LINE


class TextEditor(QPlainTextEdit):
    """A plain editor; text that is too long is not inserted."""

    too_long = Signal(str)
    """The text that was to be pasted."""

    def __init__(self, text: str = "", hint: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent, placeholderText=hint)
        follow_direction(self)
        self.setPlainText(text)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste, unless the text would become too long."""
        text = source.text()
        there = self.document().characterCount()
        if there + len(text) <= MAX_CHARACTERS and fits(text, self.textCursor().block().length()):
            super().insertFromMimeData(source)
        else:
            self.too_long.emit(text)


_ENDS = str.maketrans({"\u2029": "\n", "\u2028": "\n"})


def text_of(editor: QPlainTextEdit) -> str:
    """The text with `toPlainText`'s positions; both of Qt's line separators become line feeds."""
    return editor.document().toRawText().translate(_ENDS)


def sends(event: QKeyEvent) -> bool:
    """Whether a key sends what is typed: Enter, unless Shift breaks the line with it."""
    is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
    return is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier


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
        if sends(event):
            self.entered.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width needs another number of lines."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        # A plain text document counts its height in lines.
        lines = min(MAX_LINES, max(self._lines, round(self.document().size().height())))
        height = lines * self.fontMetrics().lineSpacing() + 24
        if height != self.minimumHeight() or height != self.maximumHeight():
            self.setFixedHeight(height)


class Places:
    """Positions in one text as Python counts them (characters) and as Qt does (UTF-16 units).

    A position inside a surrogate pair is that of its character.
    """

    def __init__(self, text: str) -> None:
        self.length = len(text)
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        # Places after which the two counts differ by one more.
        self._wide = np.flatnonzero(codes > 0xFFFF)
        self._wide_units = self._wide + np.arange(len(self._wide))

    def units(self, characters: int) -> int:
        """The position in UTF-16 units."""
        return characters + int(np.searchsorted(self._wide, characters, side="left"))

    def characters(self, units: int) -> int:
        """The position in characters."""
        return min(self.length, units - int(np.searchsorted(self._wide_units, units, side="left")))
