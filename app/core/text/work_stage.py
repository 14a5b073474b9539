"""Owns the words about work that goes on in stages: what is done, how far it is, for how long, and how long it may still take."""

from app.core.backend_words import said
from app.core.formatting import duration, grouped
from app.core.i18n import tr
from backend.contract.rpc.protocol import Progress

SOON = 3.0
"""Seconds of a stage from which its end is guessed."""


class WorkStage:
    """Times are seconds of a clock that only goes forward. Some work tells nothing of its way but that it goes on."""

    def __init__(self, name: str, now: float) -> None:
        self._began = self._stage_began = now
        self._name = name.removesuffix("…")
        self._progress = Progress()

    def tell(self, progress: Progress, now: float) -> None:
        """How far it is by now; another text begins another stage."""
        name = said(progress.text).removesuffix("…") or self._name
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
            tr(" {done} of {total} {unit}", done=grouped(done), total=grouped(total), unit=said(unit))
            if total
            else f" {grouped(done)} {said(unit)}"
        )

    def _seconds_left(self, now: float) -> float | None:
        """As if the rest of this stage went like its beginning."""
        done, total, spent = self._progress.done, self._progress.total, now - self._stage_began
        return spent * (total - done) / done if total > done > 0 and spent >= SOON else None
