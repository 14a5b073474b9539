"""Owns loading what other pages need while nobody waits for it, in parts so short that the window goes on living between them."""

import gc
import importlib
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


class Warming(QObject):
    """Imports `modules` in their order; a page that is asked for meanwhile simply finds less to load."""

    done = Signal()

    def __init__(self, modules: Sequence[str], parent: QObject) -> None:
        super().__init__(parent)
        self._parts = parts(modules)
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._load_part)

    @property
    def is_active(self) -> bool:
        """Whether something is still to be loaded."""
        return self._timer.isActive()

    def start(self) -> None:
        """Begin soon."""
        self._timer.start(BEFORE_MS)

    def stop(self) -> None:
        """Load no more."""
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
    """What is loaded stays: walking all of it again for garbage would stop the window for 40 ms at a time."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 100)


def parts(modules: Sequence[str]) -> Iterator[str]:
    """Load all of it, saying after each step what was loaded; the longest steps are the libraries themselves."""
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
