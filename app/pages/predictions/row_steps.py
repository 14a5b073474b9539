"""Owns the way to the next wrong row, looked for a few rows at a time, so that nothing waits for it."""

from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, QTimer, Signal

ROWS_AT_ONCE = 500
MAX_ROWS = 1_000_000


class RowSteps(QObject):
    """Looks through the lines of a table; a new search ends the one before."""

    found = Signal(int)
    """The line of the next wrong row."""
    ended = Signal(int)
    """There is none in this direction (+1 or −1)."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._look)
        self._lines: Iterator[int] = iter(())
        self._is_wrong: Callable[[int], bool] = lambda line: False
        self._direction = 1

    def search(self, start: int, count: int, direction: int, is_wrong: Callable[[int], bool]) -> None:
        """Look below (+1) or above (−1) a line for one that is wrong."""
        stop = min(count, start + MAX_ROWS) if direction > 0 else -1
        self._lines, self._direction, self._is_wrong = (
            iter(range(start + direction, stop, direction)),
            direction,
            is_wrong,
        )
        self._look()

    def stop(self) -> None:
        """Look no further."""
        self._timer.stop()

    def _look(self) -> None:
        for _ in range(ROWS_AT_ONCE):
            line = next(self._lines, None)
            if line is None:
                self._timer.stop()
                self.ended.emit(self._direction)
                return
            if self._is_wrong(line):
                self._timer.stop()
                self.found.emit(line)
                return
        self._timer.start()
