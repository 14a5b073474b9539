"""Owns files that are being written for the window: whole once they bear their name, and cleared away if their writer is killed."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil

_PREFIX, _SUFFIX, _PART = "burnish-", ".arrow", ".part"


@contextmanager
def file() -> Iterator[tuple[IO[bytes], Path]]:
    """A new file and the name that it gets when all is written; nothing is left where that fails."""
    _clear()
    descriptor, name = tempfile.mkstemp(prefix=f"{_PREFIX}{os.getpid()}-", suffix=_PART)
    part = Path(name)
    whole = part.with_suffix(_SUFFIX)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            yield opened, whole
        part.replace(whole)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _clear() -> None:
    """Stopping a long answer kills the process that writes it, which can clear nothing away itself."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*{_PART}"):
        writer = path.name.removeprefix(_PREFIX).partition("-")[0]
        if writer.isdecimal() and not psutil.pid_exists(int(writer)):
            path.unlink(missing_ok=True)
