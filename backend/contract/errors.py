"""The exceptions whose messages are meant for people."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fix:
    """A way out of a mistake that a click can take: the settings, what a button says, and how the data would look then."""

    title: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Dotted keys of the spec and their values."""
    preview: tuple[str, ...] = ()
    """Lines of the data as they would be read."""


class InputError(ValueError):
    """Something that a person gave cannot be used; the message is one sentence with the way out.

    `field` is the dotted key of the spec that is to be changed, if there is one. The command line
    turns it into exit code 2, the helper process into an answer, the form into a mark at the field. `line` is the
    line of that value, from 1, where it has several. `fix` is a way out that the window offers as a button.
    """

    def __init__(self, message: str, field: str | None = None, line: int | None = None, fix: Fix | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.line = line
        self.fix = fix


class RunFailed(RuntimeError):
    """A run that had started cannot go on; the message says why, `hint` which setting helps."""

    def __init__(self, message: str, code: str = "unknown", hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
