"""The JSON lines between the window and the helper process: queries, progress, answers and errors.

Request  {"id": 7, "query": "preview_data", "arguments": {…}}     cancel: {"id": 7, "query": "cancel", "arguments": {}}
Reply    {"id": 7, "answer": {…}}   or   {"id": 7, "error": {"message": …, "field": …}}
         beside it "messages": how the sentences in it were made (see `contract/messages.py`)
         before it any number of {"id": 7, "progress": {"done": …, "total": …, "unit": …, "text": …}}
The answer to `tokenize` is {"arrow": PATH}, an Arrow file that the reader deletes, for more than `MAX_IN_JSON` tokens
(`contract/tokens/tokens.py`) and for a file or a long text.
"""

import re
from typing import Any

import msgspec

from backend.contract.errors import Fix

CANCEL = "cancel"
"""The query that takes back the one with its id."""
CANCELLED = "cancelled"
"""What is said of a question that was taken back."""
LONGEST_LINE = 64_000_000
"""Bytes of a question or a reply; the connection is dropped after a longer line."""
_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*(\d{1,15})\s*[,}]')


def id_in(line: bytes) -> int | None:
    """The id of the query that a damaged line belongs to: both sides write it first."""
    found = _ID.match(line)
    return int(found[1]) if found else None


class Request(msgspec.Struct, frozen=True):
    """One query."""

    id: int
    query: str
    arguments: dict[str, Any] = {}


class Progress(msgspec.Struct, frozen=True):
    """The progress of a long query."""

    done: float = 0
    total: float = 0
    unit: str = ""
    text: str = ""
    part: str = ""
    """The part of the whole that is worked on, for example a file that is downloaded, and how far that is."""
    part_done: float = 0
    part_total: float = 0


class ErrorReply(msgspec.Struct, frozen=True):
    """Why a query failed: one sentence for people, and the spec key to change if there is one."""

    message: str
    field: str | None = None
    line: int | None = None
    """Of the field's value, from 1, where the value has several."""
    fix: Fix | None = None
    """What a button beside the sentence does."""


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line from the helper: progress, the answer, or an error."""

    id: int
    answer: Any = None
    error: ErrorReply | None = None
    progress: Progress | None = None
    messages: dict[str, Any] = {}


class ExportedFile(msgspec.Struct, frozen=True):
    """The file written on request: the answer of every `export_…` query."""

    path: str
    rows: int
