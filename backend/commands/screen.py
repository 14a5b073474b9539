"""Shows progress in a terminal, a bar where stderr is one, else a plain line now and then; lets no stranger's text steer it."""

import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from backend.contract.safe_text import escape_controls

if TYPE_CHECKING:
    from tqdm import tqdm

LINE_SECONDS = 5.0
"""At most one plain line about progress in this time."""


class PlainStream(io.TextIOBase):
    """A stream for people: what would steer their terminal is written out, whoever's name, path, cell or answer holds it."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Pass it on, made visible."""
        self.stream.write(escape_controls(text))
        return len(text)

    def flush(self) -> None:
        """Pass it on."""
        self.stream.flush()

    def isatty(self) -> bool:
        """As the real one."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """The real one, for libraries that write by it."""
        return self.stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """As of the real one."""
        return getattr(self.stream, "encoding", None) or "utf-8"

    @property
    def buffer(self) -> Any:
        """The bytes of the real one."""
        return getattr(self.stream, "buffer")  # noqa: B009 (a stream that a test puts there has none)


@contextmanager
def plain_streams() -> Iterator[None]:
    """Lets commands print anything: stderr is for people, and so is stdout where it is a terminal; a file stays exact.

    What JSON prints is JSON still, as the signs are written like its own escapes.
    """
    out, err = sys.stdout or _open_null(), sys.stderr or _open_null()  # None where a shell has closed it (>&-)
    sys.stdout = out
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")  # half a character has no encoding
    sys.stderr = PlainStream(err)
    if out.isatty():
        sys.stdout = PlainStream(out)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


def _open_null() -> IO[str]:
    """A stream that keeps nothing, at the descriptor that was closed, so that no file of ours gets its number."""
    return Path(os.devnull).open("w", encoding="utf-8")


def _raw(stream: Any) -> Any:
    """The stream itself, for what Burnish says to the terminal."""
    return stream.stream if isinstance(stream, PlainStream) else stream


class ProgressScreen:
    """One progress at a time on stderr, with lines above it."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._bar: tqdm[Any] | None = None
        self._name = ""
        self._spoken = 0.0

    def start_stage(self, name: str, total: int = 0, unit: str = "", announce: bool = True) -> None:
        """A new stage; it takes the place of the last one."""
        self.close()
        self._name = name
        if self._is_terminal:
            from tqdm import tqdm  # not before something is to be shown

            self._bar = tqdm(
                total=total or None,
                desc=escape_controls(name),
                file=_raw(sys.stderr),
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
            self._bar.set_postfix_str(escape_controls(words), refresh=False)
            self._bar.update(done - self._bar.n)
        elif time.monotonic() - self._spoken >= LINE_SECONDS:
            self.line(f"{self._name} {done}{f'/{total}' if total else ''}{f'  {words}' if words else ''}")

    def line(self, text: str) -> None:
        """One line that stays."""
        self._spoken = time.monotonic()
        if self._bar is not None:
            self._bar.write(escape_controls(text), file=_raw(sys.stderr))
        else:
            print(text, file=sys.stderr, flush=True)

    def report(self, name: str) -> "StageReport":
        """A stage as the function that data and models report their progress to."""
        return StageReport(self, name)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class StageReport:
    """Shows a stage from its first report on; where there is no bar, only if it takes long."""

    def __init__(self, screen: ProgressScreen, name: str) -> None:
        self._screen, self._name, self._begun = screen, name, False

    def __call__(self, done: int, total: int, unit: str) -> None:
        if not self._begun:
            self._screen.start_stage(self._name, total, unit, announce=False)
            self._begun = True
        self._screen.advance(done, total)
