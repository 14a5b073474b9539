"""Message boxes: one that gives its text enough room, and the questions before the window closes."""

import re
from collections.abc import Iterable

from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QLabel, QMessageBox, QWidget

from app.core.i18n import tr

NARROWEST, WIDEST = 340, 620
"""Pixels of a line of the text."""
LONGEST = 60
"""Letters without a place to break, which fit into the widest line."""


class Question(QMessageBox):
    """Add buttons, then `open()` it or `exec()` it.

    Qt cuts a word that is longer than its line, as names of files and runs are: such a word widens the box, and one that is
    longer than the widest line is broken.
    """

    def __init__(self, parent: QWidget, title: str, text: str, details: str = "") -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setText(_breakable(text))
        self.setInformativeText(_breakable(details))
        for words in self.findChildren(QLabel):
            if words.text():
                words.ensurePolished()
                words.setMinimumWidth(_room(words))


def _breakable(text: str) -> str:
    return re.sub(rf"[^\s/-]{{{LONGEST}}}(?=[^\s/-])", "\\g<0>\u200b", text)


def _room(words: QLabel) -> int:
    """Pixels that the longest word takes."""
    line = QRect(0, 0, NARROWEST, 0)
    taken = words.fontMetrics().boundingRect(line, int(Qt.TextFlag.TextWordWrap), words.text()).width()
    return min(WIDEST, max(NARROWEST, taken + 1))


_CLOSE, _STAY = QMessageBox.StandardButton.Close, QMessageBox.StandardButton.Cancel


def may_close(window: QWidget, parts: Iterable[object]) -> bool:
    """Whether a person agrees to end what parts of the window say in `unfinished()`, a sentence; at once where nothing is."""
    return _agrees(window, tr("Close Burnish?"), parts, "unfinished")


def may_restart(window: QWidget, pages: Iterable[QWidget]) -> bool:
    """Whether a person agrees to lose what pages say in `unkept()`: who restarts thinks of coming back to it."""
    return _agrees(window, tr("Restart Burnish?"), pages, "unkept")


def _agrees(window: QWidget, title: str, parts: Iterable[object], question: str) -> bool:
    for part in parts:
        answer = getattr(part, question)() if hasattr(part, question) else ""
        if answer and _answer(window, title, answer) != _CLOSE:
            return False
    return True


def _answer(window: QWidget, title: str, reply: str) -> int:
    question = Question(window, title, reply)
    question.setIcon(QMessageBox.Icon.Question)
    question.setStandardButtons(_CLOSE | _STAY)
    question.setDefaultButton(_STAY)
    answer = question.exec()
    question.deleteLater()
    return answer
