"""Owns what a run says about its progress: stages, and how far each is, a few times a second."""

import time
from collections.abc import Callable

from backend.contract.events import DataLoaded, RowsSkipped, StageProgress, StageStarted, Warned
from backend.data.features import Features
from backend.data.rows import Rows
from backend.run.event_log import EventLog


class Stages:
    """Writes stage events; `report` fits wherever a `Report` is asked for, and calls `on_report`, which may raise."""

    def __init__(self, log: EventLog, on_report: Callable[[], None], interval: float = 0.2) -> None:
        self._on_report = on_report
        self._log = log
        self._stage = ""
        self._interval = interval
        self._reported = 0.0

    def start(self, stage: str, total: int = 0, unit: str = "") -> None:
        """Enter a stage."""
        self._stage = stage
        self._reported = time.monotonic()
        self._log.write(StageStarted(time=time.time(), stage=stage, total=total, unit=unit))

    def report(self, done: int, total: int, unit: str = "") -> None:
        """How far the present stage is; all but the last of a burst are dropped."""
        self._on_report()
        now = time.monotonic()
        if now - self._reported >= self._interval or (total and done >= total):
            self._reported = now
            self._log.write(StageProgress(time=time.time(), stage=self._stage, done=done, total=total))

    def quiet(self) -> None:
        """From here on nothing interrupts: the run is ending."""
        self._on_report = _nothing

    def warn(self, code: str, message: str) -> None:
        """Something a person should know."""
        self._log.write(Warned(time=time.time(), code=code, message=message))

    def loaded(self, split: str, rows: Rows, features: Features, labels: dict[str, int]) -> None:
        """One split is read; every reason for skipped rows gets an event with the first hundred places."""
        now = time.time()
        self._log.append(
            DataLoaded(
                time=now, split=split, rows=len(rows), skipped=len(rows.skipped), files=list(rows.files),
                features=len(features), labels=labels, fingerprint=rows.fingerprint, cached=features.cached,
            )
        )  # fmt: skip
        by_reason: dict[str, list[str]] = {}
        for skipped in rows.skipped:
            by_reason.setdefault(skipped.reason, []).append(skipped.place)
        for reason, places in by_reason.items():
            self._log.append(RowsSkipped(time=now, split=split, reason=reason, count=len(places), places=places[:100]))


def _nothing() -> None:
    """Nobody is asked any more."""
