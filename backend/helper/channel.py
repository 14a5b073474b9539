"""How answers leave the helper: as lines on the real stdout, which no library's print reaches."""

import os
import sys

import msgspec

from backend.contract.errors import describe_system_error
from backend.contract.messages import table_of
from backend.contract.rpc.protocol import ErrorReply, Reply
from backend.contract.safe_text import escape_controls


class Channel:
    """The real stdout. Anything else written to stdout from now on goes to stderr."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._descriptor = os.dup(1)
        os.dup2(2, 1)

    def send(self, reply: Reply) -> None:
        """Send one reply as one line, written in full."""
        if table := table_of(reply):
            reply = msgspec.structs.replace(reply, messages={**reply.messages, **table})
        try:
            line = msgspec.json.encode(reply)
        except UnicodeEncodeError as error:  # half a character, for example of a file's name, which JSON cannot hold
            words = reply.error.message if reply.error is not None else describe_system_error(error)
            line = msgspec.json.encode(Reply(reply.id, error=ErrorReply(escape_controls(words or ""))))
        self.send_line(line + b"\n")

    def send_line(self, line: bytes) -> None:
        """Send an encoded reply. Raises OSError if the reader is gone."""
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def refuse(self, number: int, message: str, field: str | None = None) -> None:
        """Reply that there is no answer, and why."""
        self.send(Reply(number, error=ErrorReply(message, field)))
