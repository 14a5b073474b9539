"""Owns the question before the window closes on something that would end with it."""

from collections.abc import Iterable

from PySide6.QtWidgets import QMessageBox, QWidget

_CLOSE, _STAY = QMessageBox.StandardButton.Close, QMessageBox.StandardButton.Cancel


def may_close(window: QWidget, pages: Iterable[QWidget]) -> bool:
    """Whether a person agrees to end what pages say in `unfinished()`, a sentence; at once where nothing is."""
    for page in pages:
        said = page.unfinished() if hasattr(page, "unfinished") else ""  # type: ignore[attr-defined]
        if said and QMessageBox.question(window, "Close Burnish?", said, _CLOSE | _STAY, _STAY) != _CLOSE:
            return False
    return True
