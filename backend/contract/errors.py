"""The exceptions whose messages are meant for people, and what other exceptions mean to them (stdlib only)."""

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from backend.contract.messages import message

NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)
"""Numbers of the system's errors that say that nothing more can be written: full, over the quota, or over a limit."""
SYSTEM_REASONS = (
    message("Permission denied"), message("No such file or directory"), message("Is a directory"), message("Not a directory"),
    message("File exists"), message("No space left on device"), message("Read-only file system"), message("Disk quota exceeded"),
    message("File name too long"), message("permission denied"), message("no such file or directory"), message("is a directory"),
)  # fmt: skip
"""What systems say of a file that they refuse, which our sentences quote."""


@dataclass(frozen=True)
class Fix:
    """A one-click fix: the settings, the button's text, and how the data would look afterwards."""

    title: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Dotted keys of the spec and their values."""
    preview: tuple[str, ...] = ()
    """Lines of the data as they would be read."""
    sentence: str = ""
    """What the window says above these lines instead of the mistake's message, which speaks to a terminal."""


class InputError(ValueError):
    """Invalid user input; the message is one sentence that says what to do, made as by `message`.

    `field` is the dotted spec key to change, if there is one. The command line
    turns it into exit code 2, the helper process into an answer, the form into a mark at the field. `at_line` is the
    line within a multi-line value, from 1. `fix` is a fix that the window offers as a button.
    """

    def __init__(
        self,
        template: str,
        field: str | None = None,
        /,
        *,
        at_line: int | None = None,
        fix: Fix | None = None,
        **values: Any,
    ) -> None:
        super().__init__(message(template, **values))
        self.field = field
        self.line = at_line
        self.fix = fix


def first_line(error: BaseException) -> str:
    """A library's error message, to be used within a sentence; the exception's name if it has no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


class RunFailed(RuntimeError):
    """A started run cannot continue; the message, made as by `message`, says why; `hint` says which setting helps."""

    def __init__(self, template: str, code: str = "unknown", /, *, hint: str = "", **values: Any) -> None:
        super().__init__(message(template, **values))
        self.code = code
        self.hint = hint


class LibraryPanic(RuntimeError):
    """A Rust library panicked; the message is its own."""


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Raise panics of Rust libraries as LibraryPanic: in Python they are not an Exception and would go unreported."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # every such library has its own class, and none exports it
            raise LibraryPanic(next(iter(str(error).splitlines()), message("it has no message"))) from error
        raise


def describe_system_error(error: BaseException) -> str | None:
    """One sentence for an operating system error (files, disk space, memory); None if it is not one."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM or _lacks_memory(error):
        return message(
            "there is not enough memory for this; close other programs, raise the limit (ulimit -v), or use less data"
        )
    if isinstance(error, LibraryPanic):
        return message(
            "a library cannot handle a value in a file or setting ({error}); use a different value",
            error=str(error)[:200],
        )
    if isinstance(error, RecursionError):
        return message("the input is nested too deeply to be read; use a flatter structure")
    if isinstance(error, UnicodeEncodeError):
        return message("a name or text contains half a character (a lone surrogate), which cannot be written; fix it")
    if not isinstance(error, OSError):
        return None
    if error.filename is None:
        return (
            message("the disk is full; free up some space, or write to another disk")
            if error.errno in NO_ROOM
            else None
        )
    name, reason = str(error.filename), (error.strerror or message("it cannot be used")).lower()
    if error.errno in NO_ROOM:
        return message("{name}: the disk is full; free up some space, or choose another folder", name=name)
    if error.errno == errno.EROFS:
        return message("{name}: the disk is read-only; choose a folder on another disk", name=name)
    if len(name) > 300:
        name = f"{name[:100]}…{name[-20:]}"
    if error.filename2:
        return message(
            "{name} and {filename2}: {reason}; check the paths and their permissions",
            name=name,
            filename2=error.filename2,
            reason=reason,
        )
    return message("{name}: {reason}; check the path and its permissions", name=name, reason=reason)


def _lacks_memory(error: BaseException) -> bool:
    """Whether a library could not be loaded, or a thread could not start, for lack of address space."""
    words = str(error)
    return (isinstance(error, ImportError) and ("failed to map" in words or "allocate memory" in words)) or (
        isinstance(error, RuntimeError) and "can't start new thread" in words
    )
