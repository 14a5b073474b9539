"""Owns the answers about data that a person is choosing: what dropped files are, what columns hold, rows at a glance."""

from typing import Any

import msgspec

from backend.contract.rpc.queries import Spread


class LeftOut(msgspec.Struct, frozen=True):
    """A file that was named, or lay in a named folder, and is no part of the data."""

    name: str
    reason: str


class RecognisedData(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `recognise_data {paths, split}` and of `burnish data recognise`: what files and folders are by content."""

    data: dict[str, Any]
    """Keys of the `data` section: `source`, the splits that were found, and settings of the source."""
    source_title: str
    words: str
    """One sentence: what it is, and which file serves which split."""
    task: str = ""
    """The task that such data is made for; empty where any may be."""
    left_out: list[LeftOut] = []
    warnings: list[str] = []
    """What is odd about the first rows, a sentence each: they seem to be decoded wrongly."""
    unreadable: list[str] = []
    """Why files cannot be read as they are; who reads the data is told the same."""


class DataRow(msgspec.Struct, frozen=True):
    """Answer of `data_row {data, row}`: one training row whole, each cell as text of at most 200,000 characters."""

    place: str
    """File and line."""
    cells: dict[str, str]


class UnusableRow(msgspec.Struct, frozen=True):
    """A row that is left out: the file, its line there (or its number where there are no lines), and why."""

    file: str
    line: int
    reason: str


class SplitGlance(msgspec.Struct, frozen=True, kw_only=True):
    """One split: `rows` = those that can be used + `unusable`."""

    split: str
    rows: int
    unusable: int = 0
    reasons: dict[str, int] = {}
    first_unusable: list[UnusableRow] = []
    labels: dict[str, int] = {}
    """The most frequent first, at most 200."""
    label_count: int = 0
    repeated: int = 0
    """Rows whose inputs an earlier row of the split has."""
    in_train: int | None = None
    """Rows whose inputs the training data has; None for the training data itself."""
    only_here: list[str] = []
    """Labels that the training data does not have."""
    empty: dict[str, int] = {}
    """Column in use → its empty cells, where it has some."""


class LengthGlance(msgspec.Struct, frozen=True, kw_only=True):
    """How long the training inputs are, against the limit where it is known."""

    unit: str
    """`tokens`, `words`."""
    rows: int
    """Rows that were measured."""
    spread: Spread
    limit: int | None = None
    over: int = 0
    """Measured rows beyond the limit."""
    counts: list[int] = []
    """Measured rows in bins of equal width from 0."""
    width: float = 1.0
    """Of a bin."""


class DataGlance(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `data_glance {task, data, model}`: all rows of all splits, accounted for."""

    splits: list[SplitGlance]
    lengths: LengthGlance | None = None
    label_column: str = ""
    inputs: list[str] = []
    """The columns that make two rows the same."""
    warnings: list[str] = []
    """Sentences that a person should read before training on it."""
    notes: list[str] = []
