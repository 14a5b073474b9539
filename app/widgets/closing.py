"""Owns the questions before the window closes, or is opened again, on something that would end with it."""

from collections.abc import Iterable

from PySide6.QtWidgets import QMessageBox, QWidget

from app.core.language import tr

_CLOSE, _STAY = QMessageBox.StandardButton.Close, QMessageBox.StandardButton.Cancel


def may_close(window: QWidget, pages: Iterable[QWidget]) -> bool:
    """Whether a person agrees to end what pages say in `unfinished()`, a sentence; at once where nothing is."""
    return _agrees(window, tr("Close Burnish?"), pages, "unfinished")


def may_restart(window: QWidget, pages: Iterable[QWidget]) -> bool:
    """Whether a person agrees to lose what pages say in `unkept()`: who restarts thinks of coming back to it."""
    return _agrees(window, tr("Restart Burnish?"), pages, "unkept")


def _agrees(window: QWidget, title: str, pages: Iterable[QWidget], question: str) -> bool:
    for page in pages:
        said = getattr(page, question)() if hasattr(page, question) else ""
        if said and QMessageBox.question(window, title, said, _CLOSE | _STAY, _STAY) != _CLOSE:
            return False
    return True
