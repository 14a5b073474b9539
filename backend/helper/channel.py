"""How answers leave the helper: as lines on the real stdout, which no library's print reaches, or an Arrow file."""

import os
import sys
import tempfile
from typing import Any

import msgspec

from backend.contract.errors import describe_system_error
from backend.contract.messages import table_of
from backend.contract.rpc.protocol import ErrorReply, Reply
from backend.contract.safe_text import escape_controls

LARGEST_ANSWER = 1_000_000
"""Bytes; a larger answer that is a table goes into an Arrow file."""
FIELD, REST, MESSAGES = b"field", b"answer", b"messages"
"""Metadata of the table: the name of the answer's list, the answer without it as JSON, and how its sentences were made."""


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


def write_arrow(answer: msgspec.Struct) -> str:
    """Write an answer's longest list as a table, the rest as metadata; returns the path, which the reader deletes."""
    import pyarrow as pa

    values = msgspec.to_builtins(answer)
    lists = {name: value for name, value in values.items() if isinstance(value, list)}
    field = max(lists, key=lambda name: len(lists[name]))
    rows = lists[field]
    names = _names(answer, field)
    columns = list(zip(*rows, strict=True)) if rows and isinstance(rows[0], list) else [rows]
    table = pa.table(
        {name: list(column) for name, column in zip(names or map(str, range(len(columns))), columns, strict=True)}
    )
    rest = {name: value for name, value in values.items() if name != field}
    table = table.replace_schema_metadata(
        {FIELD: field.encode(), REST: msgspec.json.encode(rest), MESSAGES: msgspec.json.encode(table_of(rest))}
    )
    descriptor, path = tempfile.mkstemp(prefix="burnish-", suffix=".arrow")
    with os.fdopen(descriptor, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


def _names(answer: Any, field: str) -> list[str]:
    first = getattr(answer, field)[0]
    return list(first.__struct_fields__) if isinstance(first, msgspec.Struct) else []
