"""Owns how a download goes: its speed over the last seconds, the time that is left, and both in words."""

from collections import deque

from app.core import formatting
from app.core.i18n import figure, tr
from backend.contract.rpc.protocol import Progress

WINDOW_SECONDS = 8.0
"""A speed is a mean over so long, so that it neither jumps nor remembers a pause for ever."""

QUIET_SECONDS = 4.0
"""When nothing has come for so long a speed would be a lie."""


class DownloadPace:
    """Fed with every report of progress and the time at which it came."""

    def __init__(self) -> None:
        self._moments: deque[tuple[float, float]] = deque()
        self.progress = Progress()
        self._quiet_seconds = 0.0

    def add(self, progress: Progress, now: float) -> None:
        """One more report; `now` in seconds of a clock that never goes back."""
        if progress.done < self.progress.done:
            self._moments.clear()  # the server began anew
        if progress.done > self.progress.done or not self._moments:
            self._quiet_seconds = 0.0
        self.progress = progress
        self._moments.append((now, progress.done))
        while len(self._moments) > 2 and now - self._moments[0][0] > WINDOW_SECONDS:
            self._moments.popleft()

    def wait(self, now: float) -> None:
        """Time has passed, whether or not something has come."""
        if self._moments:
            self._quiet_seconds = now - self._moments[-1][0]

    @property
    def bytes_per_second(self) -> float | None:
        """None before anything has come twice."""
        if len(self._moments) < 2:
            return None
        (first, begun), (last, done) = self._moments[0], self._moments[-1]
        return (done - begun) / (last - first) if last - first >= 0.5 else None

    @property
    def seconds_left(self) -> float | None:
        """None while the speed or the whole is unknown."""
        speed, progress = self.bytes_per_second, self.progress
        return (progress.total - progress.done) / speed if speed and progress.total else None

    @property
    def fraction(self) -> float | None:
        """Of the whole; None where that is unknown."""
        return self.progress.done / self.progress.total if self.progress.total else None

    def words(self) -> str:
        """`120 MB of 268 MB · 4.2 MB/s · 35 s left`."""
        progress = self.progress
        if not progress.total:
            return tr("Asking the hub…")
        amount = tr(
            "{done} of {total}",
            done=formatting.megabytes(progress.done / 1000000.0),
            total=formatting.megabytes(progress.total / 1000000.0),
        )
        if self._quiet_seconds >= QUIET_SECONDS:
            return tr(
                "{amount} · nothing has come for {quiet_seconds}",
                amount=amount,
                quiet_seconds=formatting.duration(self._quiet_seconds),
            )
        speed, left = self.bytes_per_second, self.seconds_left
        if not speed:
            return amount
        pace = f"{amount} · {figure(speed / 1e6, '.1f')} MB/s"
        return tr("{pace} · {left} left", pace=pace, left=formatting.duration(left)) if left is not None else pace

    def file_words(self) -> str:
        """`model.safetensors, 60 MB of 250 MB`; empty between files."""
        progress = self.progress
        if not progress.part or not progress.part_total:
            return ""
        return tr(
            "{part}, {part_done} of {part_total}",
            part=progress.part,
            part_done=formatting.megabytes(progress.part_done / 1000000.0),
            part_total=formatting.megabytes(progress.part_total / 1000000.0),
        )
