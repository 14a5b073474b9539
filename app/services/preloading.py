"""Loads libraries in small steps while the window is idle, so that it stays responsive."""

import gc
import importlib
import sys
import time
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QObject, QTimer, Signal

BEFORE_MS, BETWEEN_MS = 500, 15
"""Until the first page has settled, and for the window to live between two parts."""
PART_SECONDS = 0.008
NEEDED_BY_LIBRARIES = (
    "multiprocessing.connection",
    "platform",
    "pydoc",
    "secrets",
    "socket",
    "subprocess",
    "xml.etree.ElementTree",
)
"""Of the standard library: numpy and pyqtgraph would load these within one part of their own."""
BINDINGS = ("QtCore", "QtGui", "QtWidgets", "QtSvg", "QtTest", "QtOpenGLWidgets")
"""PySide makes a class when it is first named, and pyqtgraph names them all at once, which takes 150 ms."""


class Preloader(QObject):
    """Imports `modules` in order; a page opened meanwhile simply has less left to load."""

    done = Signal()

    def __init__(self, modules: Sequence[str], parent: QObject) -> None:
        super().__init__(parent)
        self._parts = load_parts(modules)
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._load_part)

    @property
    def is_active(self) -> bool:
        """Whether loading is in progress."""
        return self._timer.isActive()

    def start(self) -> None:
        """Start soon."""
        self._timer.start(BEFORE_MS)

    def stop(self) -> None:
        """Stop loading."""
        self._timer.stop()

    def _load_part(self) -> None:
        end = time.perf_counter() + PART_SECONDS
        for _ in self._parts:
            if time.perf_counter() > end:
                self._timer.start(BETWEEN_MS)
                return
        spare_collections()
        self.done.emit()


def spare_collections() -> None:
    """Freeze loaded objects: garbage collection over all of them would stop the window for 40 ms at a time."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 100)


def load_parts(modules: Sequence[str]) -> Iterator[str]:
    """Load everything, yielding what was loaded after each step; the longest steps are the libraries themselves."""
    for name in NEEDED_BY_LIBRARIES:
        importlib.import_module(name)
        yield name
    for binding in BINDINGS:
        module = importlib.import_module(f"PySide6.{binding}")
        for name in dir(module):
            getattr(module, name, None)  # PySide at times lists a class within a class and then has none
            yield name
    for name in modules:
        importlib.import_module(name)
        yield name


ARROW_PARTS = (
    "numpy",
    "pyarrow.lib",
    "pyarrow._compute",
    "pyarrow.compute",
    "pyarrow.fs",
    "pyarrow._parquet",
    "pyarrow.parquet",
)


class ArrowLoading(QObject):
    """Loads the library that reads tables; `ready` is emitted when all parts are loaded."""

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
        return [name for name in ARROW_PARTS if name not in sys.modules]

    def _load_next(self) -> None:
        missing = self._missing()
        if missing:
            importlib.import_module(missing[0])
        if len(missing) <= 1:
            self._timer.stop()
            self.ready.emit()
