"""Message boxes: one that gives its text enough room, and the questions before the window closes."""

import re
from collections.abc import Iterable

from PySide6.QtCore import QRect, Qt, Signal
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

    allowed, refused = Signal(), Signal()
    """How the question was answered, if it is one of yes or no."""

    def __init__(self, parent: QWidget, title: str, text: str, details: str = "") -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setText(_breakable(text))
        self.setInformativeText(_breakable(details))
        for words in self.findChildren(QLabel):
            if words.text():
                words.ensurePolished()
                words.setMinimumWidth(_room(words))


def ask_to_run_code(parent: QWidget, machine: str, files: Iterable[str]) -> Question:
    """Whether a model's own code may run on a machine: `accepted` or `rejected`, and then gone."""
    question = Question(
        parent,
        tr("Model code on {machine}", machine=machine),
        tr("This model runs its own Python code. Allow it on {machine}?", machine=machine),
        tr(
            "Your approval holds for {machine} only. Review the code before you allow it. Files: {files}.",
            machine=machine,
            files=", ".join(files),
        ),
    )
    question.setIcon(QMessageBox.Icon.Warning)
    allow = question.addButton(tr("Allow on {machine}", machine=machine), QMessageBox.ButtonRole.AcceptRole)
    question.setDefaultButton(question.addButton(QMessageBox.StandardButton.Cancel))
    # A message box with buttons of its own is closed with their number, and accepts nothing.
    question.finished.connect(
        lambda _: (question.allowed if question.clickedButton() is allow else question.refused).emit()
    )
    question.finished.connect(question.deleteLater)
    return question


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
