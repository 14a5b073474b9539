"""Owns whose turn it is to redraw: one plot per turn, so that no two heavy paints fall into one pass of the loop.

Qt paints all changed widgets of a window together; six plots at once would stop everything else for six paints.
"""

import time
import weakref
from typing import Protocol

import shiboken6
from PySide6.QtCore import QObject, QTimer

TURN_MS = 40
LONGEST_TURN_MS = 200
LATE_MS = 10
"""Where turns come later than this, the machine is busy, and drawing less often keeps the window usable."""


class Redrawn(Protocol):
    """What takes turns."""

    def redraw(self) -> None:
        """Take over all that is new."""
        ...


class RedrawTurns(QObject):
    """Gives each waiting plot its turn, first come first served; sleeps while nobody waits."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[int, weakref.ref] = {}
        self._timer = QTimer(self, interval=TURN_MS)
        self._timer.timeout.connect(self._next)
        self._began = 0.0

    def ask(self, plot: Redrawn) -> None:
        """Ask for one turn; asking again before it came changes nothing."""
        self._waiting.setdefault(id(plot), weakref.ref(plot))
        if not self._timer.isActive():
            self._began = time.perf_counter()
            self._timer.start()

    def _next(self) -> None:
        if not self._waiting:
            self._timer.stop()
            return
        self._pace()
        key = next(iter(self._waiting))
        plot = self._waiting.pop(key)()
        # Qt may have deleted a plot that Python still knows, for example the metrics of another run.
        if plot is not None and shiboken6.isValid(plot):
            plot.redraw()

    def _pace(self) -> None:
        now = time.perf_counter()
        late_ms = (now - self._began) * 1000 - self._timer.interval()
        factor = 1.5 if late_ms > LATE_MS else 0.9
        self._timer.setInterval(round(min(LONGEST_TURN_MS, max(TURN_MS, self._timer.interval() * factor))))
        self._began = now


_turns: list[RedrawTurns] = []


def redraw_turns() -> RedrawTurns:
    """The one queue of the process."""
    if not _turns:
        _turns.append(RedrawTurns())
    return _turns[0]
