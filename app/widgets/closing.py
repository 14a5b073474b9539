"""Owns the questions before the window closes, or is opened again, on something that would end with it."""

from collections.abc import Iterable

from PySide6.QtWidgets import QMessageBox, QWidget

from app.core.i18n import tr
from app.widgets.question import Question

_CLOSE, _STAY = QMessageBox.StandardButton.Close, QMessageBox.StandardButton.Cancel


def may_close(window: QWidget, parts: Iterable[object]) -> bool:
    """Whether a person agrees to end what parts of the window say in `unfinished()`, a sentence; at once where nothing is."""
    return _agrees(window, tr("Close Burnish?"), parts, "unfinished")


def may_restart(window: QWidget, pages: Iterable[QWidget]) -> bool:
    """Whether a person agrees to lose what pages say in `unkept()`: who restarts thinks of coming back to it."""
    return _agrees(window, tr("Restart Burnish?"), pages, "unkept")


def _agrees(window: QWidget, title: str, parts: Iterable[object], question: str) -> bool:
    for part in parts:
        said = getattr(part, question)() if hasattr(part, question) else ""
        if said and _answer(window, title, said) != _CLOSE:
            return False
    return True


def _answer(window: QWidget, title: str, said: str) -> int:
    question = Question(window, title, said)
    question.setIcon(QMessageBox.Icon.Question)
    question.setStandardButtons(_CLOSE | _STAY)
    question.setDefaultButton(_STAY)
    answer = question.exec()
    question.deleteLater()
    return answer
