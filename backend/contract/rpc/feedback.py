"""Owns the answer about a typed row that was added to a person's own file."""

import msgspec


class AddedRow(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `add_row {path, task, columns, row, right, defuse, bom}` and of `burnish predict --append`."""

    path: str
    columns: list[str]
    """Of the file, in its order."""
    rows: int | None
    """In the file now; None of a file that is too large to be counted."""
    created: bool = False
    """Whether the file was made for this row."""
