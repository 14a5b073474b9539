"""Shows progress in a terminal: a bar if stderr is one, else occasional lines; escapes control characters."""

import io
import json
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

REPORT_SECONDS = 0.2
"""At most one line of JSON about progress in this time."""
LINE_SECONDS = 5.0
"""At most one plain line about progress in this time."""


class PlainStream(io.TextIOBase):
    """A text stream for people: escapes terminal control characters in any name, path, cell or answer."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Escape control characters and pass the text on."""
        self.stream.write(escape_controls(text))
        return len(text)

    def flush(self) -> None:
        """Pass it on."""
        self.stream.flush()

    def isatty(self) -> bool:
        """The underlying stream's answer."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """The real file descriptor, for libraries that write to it directly."""
        return self.stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The underlying stream's encoding."""
        return getattr(self.stream, "encoding", None) or "utf-8"

    @property
    def buffer(self) -> Any:
        """The underlying stream's byte buffer."""
        return getattr(self.stream, "buffer")  # noqa: B009 (a stream that a test puts there has none)


@contextmanager
def plain_streams() -> Iterator[None]:
    """Make printing safe: escape stderr, and stdout if it is a terminal; output to a file stays exact.

    JSON stays valid JSON, because the characters are escaped as JSON would escape them.
    """
    out, err = sys.stdout or _open_null(), sys.stderr or _open_null()  # None if a shell has closed it (>&-)
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
    """Open a null stream at a closed descriptor, so that none of our files gets its number."""
    return Path(os.devnull).open("w", encoding="utf-8")


def _raw(stream: Any) -> Any:
    """The underlying stream, for the control sequences that Burnish itself sends."""
    return stream.stream if isinstance(stream, PlainStream) else stream


class ProgressScreen:
    """One progress bar at a time on stderr, with lines above it."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._bar: tqdm[Any] | None = None
        self._name = ""
        self._spoken = 0.0

    def start_stage(self, name: str, total: int = 0, unit: str = "", announce: bool = True) -> None:
        """Start a new stage, which replaces the last one."""
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
        """Advance the stage; `words` are shown beside the bar."""
        if self._bar is not None:
            self._bar.total = total or self._bar.total
            self._bar.set_postfix_str(escape_controls(words), refresh=False)
            self._bar.update(done - self._bar.n)
        elif time.monotonic() - self._spoken >= LINE_SECONDS:
            self.line(f"{self._name} {done}{f'/{total}' if total else ''}{f'  {words}' if words else ''}")

    def line(self, text: str) -> None:
        """Print a line that stays on screen."""
        self._spoken = time.monotonic()
        if self._bar is not None:
            self._bar.write(escape_controls(text), file=_raw(sys.stderr))
        else:
            print(text, file=sys.stderr, flush=True)

    def report(self, name: str) -> "StageReport":
        """A stage as the callback that data and models report progress to."""
        return StageReport(self, name)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class JsonProgress(ProgressScreen):
    """Progress for the window, which starts commands too: JSON lines on stdout, before the line with the result."""

    def __init__(self) -> None:
        super().__init__()
        self._is_terminal = False

    def start_stage(self, name: str, total: int = 0, unit: str = "", announce: bool = True) -> None:
        """As for people, but at once."""
        self._name, self._unit, self._spoken = name, unit, 0.0
        self.advance(0, total)

    def advance(self, done: int, total: int = 0, words: str = "") -> None:
        """Print a line, unless the last one was just printed; the end of a stage is always told."""
        if time.monotonic() - self._spoken >= REPORT_SECONDS or done == total:
            self._spoken = time.monotonic()
            print(json.dumps({"progress": {"part": self._name, "done": done, "total": total, "unit": self._unit}}), flush=True)  # fmt: skip

    def line(self, text: str) -> None:
        """The window needs no more than the progress."""


class StageReport:
    """Shows a stage from its first report; without a bar, only if the stage takes long."""

    def __init__(self, screen: ProgressScreen, name: str) -> None:
        self._screen, self._name, self._begun = screen, name, False

    def __call__(self, done: int, total: int, unit: str) -> None:
        if not self._begun:
            self._screen.start_stage(self._name, total, unit, announce=False)
            self._begun = True
        self._screen.advance(done, total)
