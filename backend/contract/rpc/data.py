"""Answers about data being chosen: what dropped files are, their first rows, a summary of all rows, a report."""

from typing import Any

import msgspec

from backend.contract.errors import Fix
from backend.contract.rpc.protocol import ErrorReply


class IgnoredFile(msgspec.Struct, frozen=True):
    """A file that was named, or found in a named folder, and is not part of the data."""

    name: str
    reason: str


class RecognisedData(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `recognise_data {paths, split}` and of `burnish data recognise`: the format of files and folders."""

    data: dict[str, Any]
    """Keys of the `data` section: `source`, the splits that were found, and settings of the source."""
    source_title: str
    words: str
    """One sentence: what it is, and which file serves which split."""
    task: str = ""
    """The task that such data is made for; empty where any may be."""
    folder_files: int = 0
    """Of a plain folder that is named as a whole."""
    left_out: list[IgnoredFile] = []
    warnings: list[str] = []
    """What is odd about the first rows, a sentence each: they seem to be decoded wrongly."""
    unreadable: list[str] = []
    """Why files cannot be read as they are; a training run would report the same."""


class ColumnSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one training column holds, judging by its first rows."""

    name: str
    kind: str
    """`text`, `whole numbers`, `numbers`, `true or false`, `list of text`, `list of numbers`, `list`, `structure`, `other`."""
    rows: int
    """Rows that were looked at."""
    empty: int = 0
    distinct: int | None = None
    """Different values among them, of plain values."""
    median_words: float | None = None
    """Of the texts that are not empty."""
    examples: list[str] = []


class GuessedColumn(msgspec.Struct, frozen=True):
    """A column suggested for a role, and why."""

    column: str
    reason: str


class OtherTask(msgspec.Struct, frozen=True):
    """A task that suits the data better than the chosen one, or as well, and why."""

    task: str
    reason: str
    """A main clause without a full stop."""


class DataPreview(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `preview_data {task, data}`: the first rows and the suggested columns."""

    columns: list[str]
    rows: list[list[str]]
    row_count: int
    guessed_columns: dict[str, str]
    """Role → column, with the reason in `guess_reasons`."""
    guess_reasons: dict[str, str] = {}
    """Also of a role that was given no column because several could play it."""
    best_guesses: dict[str, GuessedColumn] = {}
    """Role → what would be guessed without a person's choice, where that is another column."""
    summaries: list[ColumnSummary] = []
    unfit: dict[str, dict[str, str]] = {}
    """Role → column → why it cannot play that part, as words that follow the column's name."""
    label_counts: dict[str, int] = {}
    skipped_count: int = 0
    skipped: list[str] = []
    """The first hundred unusable rows as `file:line: reason`."""
    files: list[str] = []
    passed_over: list[str] = []
    """Files of the named folder that are not read."""
    wrong_column: ErrorReply | None = None
    """Why one of the columns in use cannot play its role, or that no column looks like the labels that are needed."""
    other_tasks: list[OtherTask] = []
    """Tasks for which the data is made if the chosen one does not suit it; several if any of them may be meant."""
    fix: Fix | None = None
    """Another way to read the file that is probably meant, such as another sheet of a workbook."""


class DataRow(msgspec.Struct, frozen=True):
    """Answer of `data_row {data, row}`: one whole training row, each cell as text of at most 200,000 characters."""

    place: str
    """File and line."""
    cells: dict[str, str]


class UnusableRow(msgspec.Struct, frozen=True):
    """A row that is left out: the file, the line (or the row number if there are no lines), and why."""

    file: str
    line: int
    reason: str


class SplitSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One split: `rows` = usable rows + `unusable`."""

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


class NumberSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The distribution of numbers; `std` is the sample standard deviation, quantiles interpolate linearly."""

    count: int
    mean: float
    std: float | None
    """None of a single number."""
    min: float
    p50: float
    p95: float
    p99: float
    p99_9: float
    max: float


class LengthSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Training input lengths, compared with the limit if it is known."""

    unit: str
    """`tokens`, `words`."""
    rows: int
    """Rows that were measured."""
    spread: NumberSummary
    limit: int | None = None
    over: int = 0
    """Measured rows beyond the limit."""
    counts: list[int] = []
    """Measured rows in bins of equal width from 0."""
    width: float = 1.0
    """Of a bin."""


class DataSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `data_glance {task, data, model}`: all rows of all splits, each counted."""

    splits: list[SplitSummary]
    lengths: LengthSummary | None = None
    label_column: str = ""
    inputs: list[str] = []
    """The columns that make two rows the same."""
    warnings: list[str] = []
    """Sentences that a person should read before training on it."""
    notes: list[str] = []


class LabelShare(msgspec.Struct, frozen=True):
    """How often a label occurs, and its share of all labels."""

    label: str
    count: int
    ratio: float


class ColumnReport(msgspec.Struct, frozen=True, kw_only=True):
    """One column of one split."""

    part: str = ""
    """The part that it plays in the task, where a task is known."""
    kind: str
    """`text`, `label` (few different values, or few different words in lists), `number` or `other`."""
    empty: int
    """Cells that are missing, blank or lists without a member."""
    distinct: int | None = None
    """Different values of a label."""
    words: NumberSummary | None = None
    tokens: NumberSummary | None = None
    """With the special tokens that the tokenizer adds, nothing cut off."""
    numbers: NumberSummary | None = None
    labels: list[LabelShare] = []
    """The most frequent first."""


class SplitReport(msgspec.Struct, frozen=True, kw_only=True):
    """One split. Rows that could not be read are counted only in `unusable`."""

    files: list[str]
    rows: int
    columns: dict[str, ColumnReport]
    duplicates: int
    """Rows whose inputs an earlier row of the split has, to the letter."""
    first_duplicates: list[list[str]] = []
    """Some places of rows with the same inputs."""
    in_train: int | None = None
    """Rows whose inputs the training data has, to the letter; None for the training data itself."""
    unusable: int = 0
    unusable_reasons: dict[str, int] = {}
    first_unusable: list[str] = []


class DataReport(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `data_report {spec}` or `{data, task, tokenizer}` and of `burnish data report --json`."""

    splits: dict[str, SplitReport]
    inputs: list[str]
    """The columns that make two rows the same."""
    task: str = ""
    tokenizer: str = ""
    notes: list[str] = []
    seconds: float = 0
