"""Owns the answering end of stdout: moved aside, so that nothing a library prints can get between two replies."""

import os
import sys

import msgspec

from backend.contract.errors import plain_reason
from backend.contract.rpc.queries import Mistake, Reply
from backend.contract.safe_text import escape_controls

LARGEST_ANSWER = 1_000_000
"""Bytes; a larger answer that is a table goes into an Arrow file."""


class Channel:
    """The real stdout. Whatever else writes to stdout from now on ends in stderr."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._descriptor = os.dup(1)
        os.dup2(2, 1)

    def send(self, reply: Reply) -> None:
        """One reply as one line, written whole."""
        try:
            line = msgspec.json.encode(reply)
        except UnicodeEncodeError as error:  # half a character, for example of a file's name, which JSON cannot hold
            words = reply.error.message if reply.error is not None else plain_reason(error)
            line = msgspec.json.encode(Reply(reply.id, error=Mistake(escape_controls(words or ""))))
        self.send_line(line + b"\n")

    def send_line(self, line: bytes) -> None:
        """A reply that is encoded already. Raises OSError where nobody listens any more."""
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def refuse(self, number: int, message: str, field: str | None = None) -> None:
        """There is no answer, and why."""
        self.send(Reply(number, error=Mistake(message, field)))
