"""Describes progress in words: a download, a stage that counts rows, a job of several stages."""

from collections import deque
from dataclasses import dataclass, field

from app.core.backend_words import translate_word
from app.core.formatting import duration, group_digits, megabytes, rate
from app.core.i18n import figure, tr
from backend.contract.rpc.protocol import Progress

WINDOW_SECONDS = 8.0
"""A speed is a mean over so long, so that it neither jumps nor remembers a pause for ever."""
QUIET_SECONDS = 4.0
"""When nothing has come for so long a speed would be a lie."""


class DownloadPace:
    """The speed of a download, computed from progress reports and their times."""

    def __init__(self) -> None:
        self._moments: deque[tuple[float, float]] = deque()
        self.progress = Progress()
        self._quiet_seconds = 0.0

    def add(self, progress: Progress, now: float) -> None:
        """Add a report; `now` in seconds of a monotonic clock."""
        if progress.done < self.progress.done:
            self._moments.clear()  # the server started over
        if progress.done > self.progress.done or not self._moments:
            self._quiet_seconds = 0.0
        self.progress = progress
        self._moments.append((now, progress.done))
        while len(self._moments) > 2 and now - self._moments[0][0] > WINDOW_SECONDS:
            self._moments.popleft()

    def wait(self, now: float) -> None:
        """Advance the time, whether or not data has arrived."""
        if self._moments:
            self._quiet_seconds = now - self._moments[-1][0]

    @property
    def bytes_per_second(self) -> float | None:
        """None until there are two reports."""
        if len(self._moments) < 2:
            return None
        (first, begun), (last, done) = self._moments[0], self._moments[-1]
        return (done - begun) / (last - first) if last - first >= 0.5 else None

    @property
    def seconds_left(self) -> float | None:
        """None while the speed or the total is unknown."""
        speed, progress = self.bytes_per_second, self.progress
        return (progress.total - progress.done) / speed if speed and progress.total else None

    @property
    def fraction(self) -> float | None:
        """The fraction done; None if the total is unknown."""
        return self.progress.done / self.progress.total if self.progress.total else None

    def words(self) -> str:
        """`120 MB of 268 MB · 4.2 MB/s · 35 s left`."""
        progress = self.progress
        if not progress.total:
            return tr("Contacting the Hub…")
        amount = tr(
            "{done} of {total}",
            done=megabytes(progress.done / 1000000.0),
            total=megabytes(progress.total / 1000000.0),
        )
        if self._quiet_seconds >= QUIET_SECONDS:
            return tr(
                "{amount} · no data for {quiet_seconds}",
                amount=amount,
                quiet_seconds=duration(self._quiet_seconds),
            )
        speed, left = self.bytes_per_second, self.seconds_left
        if not speed:
            return amount
        pace = f"{amount} · {figure(speed / 1e6, '.1f')} MB/s"
        return tr("{pace} · {left} left", pace=pace, left=duration(left)) if left is not None else pace

    def file_words(self) -> str:
        """`model.safetensors, 60 MB of 250 MB`; empty between files."""
        progress = self.progress
        if not progress.part or not progress.part_total:
            return ""
        return tr(
            "{part}, {part_done} of {part_total}",
            part=progress.part,
            part_done=megabytes(progress.part_done / 1000000.0),
            part_total=megabytes(progress.part_total / 1000000.0),
        )


LEAST_SECONDS = 1.0
"""Until then, the time left cannot be estimated."""


@dataclass
class RowPace:
    """The speed of one stage of work on rows; `done` counts from its first report."""

    _began: tuple[float, float] | None = field(default=None)

    def begin(self) -> None:
        """Start another stage."""
        self._began = None

    def words(self, done: float, total: float, unit: str, now: float) -> str:
        """`12 000 of 50 000 rows · 1,204 rows/s · 31 s left`, as far as it is known; `now` in seconds."""
        if self._began is None or done < self._began[0]:
            self._began = (done, now)
        parts = [
            tr("{done} of {total} {unit}", done=group_digits(int(done)), total=group_digits(int(total)), unit=unit)
            if total
            else f"{group_digits(int(done))} {unit}"
        ]
        seconds, made = now - self._began[1], done - self._began[0]
        if seconds >= LEAST_SECONDS and made > 0:
            parts.append(f"{rate(made / seconds)} {unit}/s")
            if total > done:
                parts.append(tr("{total} left", total=duration((total - done) * seconds / made)))
        return " · ".join(parts)


SOON = 3.0
"""Seconds of a stage from which its end is guessed."""


class WorkStage:
    """Work in several stages; times are seconds of a monotonic clock. Some work only reports that it is running."""

    def __init__(self, name: str, now: float) -> None:
        self._began = self._stage_began = now
        self._name = name.removesuffix("…")
        self._progress = Progress()

    def report(self, progress: Progress, now: float) -> None:
        """Report progress; a different text starts another stage."""
        name = translate_word(progress.text).removesuffix("…") or self._name
        if name != self._name:
            self._name, self._stage_began = name, now
        self._progress = progress

    def words(self, now: float) -> str:
        """`Learning the pieces… 1 200 of 8 000 merges · 12 s · about 40 s left`."""
        parts = [f"{self._name}…{self._amount()}"]
        if now - self._began >= 1:
            parts.append(duration(now - self._began))
        left = self._seconds_left(now)
        if left is not None:
            parts.append(tr("about {max} left", max=duration(max(1, left))))
        return " · ".join(parts)

    def _amount(self) -> str:
        done, total, unit = int(self._progress.done), int(self._progress.total), self._progress.unit
        if not done:
            return ""
        return (
            tr(
                " {done} of {total} {unit}",
                done=group_digits(done),
                total=group_digits(total),
                unit=translate_word(unit),
            )
            if total
            else f" {group_digits(done)} {translate_word(unit)}"
        )

    def _seconds_left(self, now: float) -> float | None:
        """Extrapolate this stage's remaining time from its start."""
        done, total, spent = self._progress.done, self._progress.total, now - self._stage_began
        return spent * (total - done) / done if total > done > 0 and spent >= SOON else None
