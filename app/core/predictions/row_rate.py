"""Owns how fast a stage of work goes and how long it will take, from what it has reported."""

from dataclasses import dataclass, field

from app.core.formatting import duration, grouped, rate
from app.core.i18n import tr

LEAST_SECONDS = 1.0
"""Before that nobody can say how long it will take."""


@dataclass
class Pace:
    """One stage; `done` grows from its first report on."""

    _began: tuple[float, float] | None = field(default=None)

    def begin(self) -> None:
        """Another stage begins."""
        self._began = None

    def words(self, done: float, total: float, unit: str, now: float) -> str:
        """`12 000 of 50 000 rows · 1,204 rows/s · 31 s left`, as far as it is known; `now` in seconds."""
        if self._began is None or done < self._began[0]:
            self._began = (done, now)
        said = [
            tr("{done} of {total} {unit}", done=grouped(int(done)), total=grouped(int(total)), unit=unit)
            if total
            else f"{grouped(int(done))} {unit}"
        ]
        seconds, made = now - self._began[1], done - self._began[0]
        if seconds >= LEAST_SECONDS and made > 0:
            said.append(f"{rate(made / seconds)} {unit}/s")
            if total > done:
                said.append(tr("{total} left", total=duration((total - done) * seconds / made)))
        return " · ".join(said)
