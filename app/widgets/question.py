"""A message box whose words have the room that they need."""

import re

from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QLabel, QMessageBox, QWidget

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
