"""The notes and tags that a user gives a run, in its `notes.json`."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from backend.contract.errors import InputError
from backend.contract.run.folder import RECORD_BYTES, RunFolder, write_json
from backend.contract.run.lock import changing
from backend.contract.safe_files import read_unlinked
from backend.contract.safe_text import parse_json

LONGEST_TAG = 40


class RunNotes(msgspec.Struct, frozen=True):
    """A user's notes and tags on a run."""

    note: str = ""
    tags: tuple[str, ...] = ()

    def merge_edits(self, before: "RunNotes", after: "RunNotes") -> "RunNotes":
        """Apply a user's edits (from `before` to `after`) to these notes, which another window may have changed."""
        note = after.note if after.note != before.note else self.note
        return RunNotes(note, after.tags if after.tags != before.tags else self.tags)


def notes_file(folder: RunFolder) -> Path:
    """The path of the notes file."""
    return folder.path / "notes.json"


def read_notes(folder: RunFolder) -> RunNotes:
    """The stored notes, or empty ones; a damaged file counts as empty."""
    try:
        return msgspec.convert(parse_json(read_unlinked(notes_file(folder), RECORD_BYTES)), RunNotes)
    except (OSError, ValueError, msgspec.ValidationError):
        return RunNotes()


def write_notes(folder: RunFolder, notes: RunNotes) -> None:
    """Write the notes atomically. Raises InputError if the folder is not writable."""
    change_notes(folder, lambda _: notes)


def change_notes(folder: RunFolder, change: Callable[[RunNotes], RunNotes]) -> RunNotes:
    """Write what `change` makes of the current notes. Raises InputError if the folder is not writable."""
    try:
        with changing(notes_file(folder), of_all_users=True):
            before = read_notes(folder)
            after = change(before)
            if after != before:
                write_json(notes_file(folder), {"note": after.note, "tags": list(after.tags)})
            return after
    except OSError as error:
        raise InputError(
            "{path}: the note cannot be written there: {strerror}", path=folder.path, strerror=error.strerror
        ) from None


def tags_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Tags from typed text, split at commas, semicolons or spaces; no duplicates, in order. Raises InputError."""
    words = [word.lstrip("#") for text in texts for word in re.split(r"[,;\s]+", text)]
    found = tuple(dict.fromkeys(word for word in words if word))
    if long := next((word for word in found if len(word) > LONGEST_TAG), ""):
        raise InputError(
            "{long}…: a tag can have at most {longest_tag} letters; put longer words in the note",
            long=long[:LONGEST_TAG],
            longest_tag=LONGEST_TAG,
        )
    return found
