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
    """Add buttons, then call `open()` or `exec()`.

    Qt cuts off a word longer than its line, such as a file or run name: such a word widens the box, and one that
    is longer than the maximum line is broken.
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
    """The width of the longest word in pixels."""
    line = QRect(0, 0, NARROWEST, 0)
    taken = words.fontMetrics().boundingRect(line, int(Qt.TextFlag.TextWordWrap), words.text()).width()
    return min(WIDEST, max(NARROWEST, taken + 1))


_CLOSE, _STAY = QMessageBox.StandardButton.Close, QMessageBox.StandardButton.Cancel


def may_close(window: QWidget, parts: Iterable[object]) -> bool:
    """Whether the user agrees to stop what `unfinished()` reports, a sentence; True at once if there is nothing."""
    for part in parts:
        unfinished = part.unfinished() if hasattr(part, "unfinished") else ""  # type: ignore[attr-defined]
        if unfinished and _answer(window, unfinished) != _CLOSE:
            return False
    return True


def _answer(window: QWidget, reply: str) -> int:
    question = Question(window, tr("Close Burnish?"), reply)
    question.setIcon(QMessageBox.Icon.Question)
    question.setStandardButtons(_CLOSE | _STAY)
    question.setDefaultButton(_STAY)
    answer = question.exec()
    question.deleteLater()
    return answer
