"""Times a pass over some rows, apart from one-time costs such as start-up and compiling."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Rates include neither `startup_seconds`, everything before the first batch, nor `compile_seconds`."""

    seconds: float
    rows_per_second: float
    tokens_per_second: float
    startup_seconds: float
    compile_seconds: float
    """0 for an engine that compiles nothing."""


class CompileTimer:
    """A `backend.engines.engine.Compiling` that counts seconds and programs."""

    def __init__(self) -> None:
        self.seconds, self.programs = 0.0, 0

    def __call__(self, build: Callable[[], Any]) -> Any:
        """Build the program and count its time."""
        started = time.perf_counter()
        try:
            return build()
        finally:
            self.seconds += time.perf_counter() - started
            self.programs += 1


def build_timing(rows: int, tokens: int, seconds: float, compiling: float, startup: float) -> Timing:
    """`seconds` are those of all rows, including `compiling`."""
    computing = max(seconds - compiling, 1e-9)
    return Timing(computing, rows / computing, tokens / computing, startup, compiling)
