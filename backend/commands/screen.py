"""Owns how progress looks in a terminal: a bar where stderr is one, else a plain line now and then."""

import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

LINE_SECONDS = 5.0
"""At most one plain line about progress in this time."""


class Screen:
    """One progress at a time on stderr, with lines above it."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._bar: tqdm[Any] | None = None
        self._name = ""
        self._spoken = 0.0

    def begin(self, name: str, total: int = 0, unit: str = "", announce: bool = True) -> None:
        """A new stage; it takes the place of the last one."""
        self.close()
        self._name = name
        if self._is_terminal:
            from tqdm import tqdm  # not before something is to be shown

            self._bar = tqdm(
                total=total or None,
                desc=name,
                unit=f" {unit}" if unit else "",
                leave=False,
                dynamic_ncols=True,
            )
        elif announce:
            self.line(name)
        self._spoken = time.monotonic()

    def advance(self, done: int, total: int = 0, words: str = "") -> None:
        """How far the stage is; `words` are shown beside."""
        if self._bar is not None:
            self._bar.total = total or self._bar.total
            self._bar.set_postfix_str(words, refresh=False)
            self._bar.update(done - self._bar.n)
        elif time.monotonic() - self._spoken >= LINE_SECONDS:
            self.line(f"{self._name} {done}{f'/{total}' if total else ''}{f'  {words}' if words else ''}")

    def line(self, text: str) -> None:
        """One line that stays."""
        self._spoken = time.monotonic()
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)

    def report(self, name: str) -> "Report":
        """A stage as the function that data and models report their progress to."""
        return Report(self, name)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Report:
    """Shows a stage from its first report on; where there is no bar, only if it takes long."""

    def __init__(self, screen: Screen, name: str) -> None:
        self._screen, self._name, self._begun = screen, name, False

    def __call__(self, done: int, total: int, unit: str) -> None:
        if not self._begun:
            self._screen.begin(self._name, total, unit, announce=False)
            self._begun = True
        self._screen.advance(done, total)
