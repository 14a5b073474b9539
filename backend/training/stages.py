"""Reports a run's progress: its stages, and how far each one is, several times a second."""

import time
from collections.abc import Callable
from typing import Any

from backend.contract.run.events import DataLoaded, ProgramCompiled, RowsSkipped, StageProgress, StageStarted, Warned
from backend.data.features import Features
from backend.data.rows import Rows
from backend.training.background import run_beside
from backend.training.event_log import EventLog

SHOWN_SECONDS = 1.0
"""Compiling is a stage of its own if it takes longer."""


class StageReporter:
    """Writes stage events; `report` can be passed as any `Report`, and calls `on_report`, which may raise.

    So does `on_wait`, which is called while something runs in the background; the default is `on_report`.
    """

    def __init__(
        self,
        log: EventLog,
        on_report: Callable[[], None],
        on_wait: Callable[[], None] | None = None,
        interval: float = 0.2,
    ) -> None:
        self._on_report, self._on_wait = on_report, on_wait or on_report
        self._log = log
        self._stage: tuple[str, int, str] = ("", 0, "")
        self._interval = interval
        self._reported = 0.0
        self._compilations = 0
        self._compiling_seconds = 0.0

    def clock(self) -> float:
        """Seconds from an arbitrary start; it pauses while an engine compiles, which is not measured."""
        return time.perf_counter() - self._compiling_seconds

    def start(self, stage: str, total: int = 0, unit: str = "") -> None:
        """Enter a stage."""
        self._stage = (stage, total, unit)
        self._reported = time.monotonic()
        self._log.write(StageStarted(time=time.time(), stage=stage, total=total, unit=unit))

    def report(self, done: int, total: int, unit: str = "") -> None:
        """Report the current stage's progress; all but the last of a burst are dropped."""
        self._on_report()
        now = time.monotonic()
        if now - self._reported >= self._interval or (total and done >= total):
            self._reported = now
            self._log.write(StageProgress(time=time.time(), stage=self._stage[0], done=done, total=total))

    def check(self) -> None:
        """Call `on_report` alone, where there is nothing to count."""
        self._on_report()

    def compile(self, build: Callable[[], Any], *, can_stop: bool = True) -> Any:
        """The result of `build`, run on a separate thread so that stop requests are seen meanwhile, if it `can_stop`."""
        started, before = time.perf_counter(), self._stage

        def check_compiling() -> None:
            if can_stop:
                self._on_wait()
            if self._stage is before and time.perf_counter() - started >= SHOWN_SECONDS:
                self.start("compiling")

        try:
            program = run_beside(build, check_compiling, "compiling")
        finally:  # an engine may go on without what it could not compile
            seconds = time.perf_counter() - started
            self._compiling_seconds += seconds
            if self._stage is not before:
                self.start(*before)
        self._compilations += 1
        self._log.write(ProgramCompiled(time=time.time(), count=self._compilations, seconds=seconds))
        return program

    def stop_interrupting(self) -> None:
        """From here on nothing interrupts: the run is ending."""
        self._on_report = self._on_wait = _ignore

    def warn(self, code: str, message: str) -> None:
        """Warn the user."""
        self._log.write(Warned(time=time.time(), code=code, message=message))

    def report_loaded(self, split: str, rows: Rows, features: Features, labels: dict[str, int]) -> None:
        """Report that a split was read; every reason for skipped rows gets an event with the first hundred places."""
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


def _ignore() -> None:
    """Do nothing."""
