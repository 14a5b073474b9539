"""Owns loading the library that reads tables, a part at a time, so that the window never stands still for the whole of it."""

import importlib
import sys

from PySide6.QtCore import QObject, QTimer, Signal

PARTS = (
    "numpy",
    "pyarrow.lib",
    "pyarrow._compute",
    "pyarrow.compute",
    "pyarrow.fs",
    "pyarrow._parquet",
    "pyarrow.parquet",
)


class ArrowLoading(QObject):
    """Tells when all parts are there."""

    ready = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._load_next)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to load."""
        return not self._missing()

    def begin(self) -> None:
        """Load what is missing."""
        self._timer.start()

    def _missing(self) -> list[str]:
        return [name for name in PARTS if name not in sys.modules]

    def _load_next(self) -> None:
        missing = self._missing()
        if missing:
            importlib.import_module(missing[0])
        if len(missing) <= 1:
            self._timer.stop()
            self.ready.emit()
