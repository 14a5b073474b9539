"""Owns the one exception whose message is meant for people."""


class InputError(ValueError):
    """Something that a person gave cannot be used; the message is one sentence with the way out.

    `field` is the dotted key of the spec that is to be changed, if there is one. The command line
    turns it into exit code 2, the helper process into an answer, the form into a mark at the field. `line` is the
    line of that value, from 1, where it has several.
    """

    def __init__(self, message: str, field: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.line = line


class RunFailed(RuntimeError):
    """A run that had started cannot go on; the message says why, `hint` which setting helps."""

    def __init__(self, message: str, code: str = "unknown", hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
