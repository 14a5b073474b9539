"""Owns loading what other pages need while nobody waits for it, one library at a time."""

import importlib
from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer

BEFORE_MS, BETWEEN_MS = 700, 120
"""Until the first page has settled, and for the window to live between two libraries."""


class Warming(QObject):
    """Imports `modules` in their order; a page that is asked for meanwhile simply finds less to load."""

    def __init__(self, modules: Sequence[str], parent: QObject) -> None:
        super().__init__(parent)
        self._left = list(modules)
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._load_next)

    def start(self) -> None:
        """Begin soon."""
        self._timer.start(BEFORE_MS)

    def stop(self) -> None:
        """Load no more."""
        self._left.clear()
        self._timer.stop()

    def _load_next(self) -> None:
        if self._left:
            importlib.import_module(self._left.pop(0))
            self._timer.start(BETWEEN_MS)
