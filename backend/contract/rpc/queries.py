"""Owns the questions that the window asks the helper process, and the answers, as JSON lines.

Request  {"id": 7, "query": "preview_data", "arguments": {…}}     cancel: {"id": 7, "query": "cancel", "arguments": {}}
Reply    {"id": 7, "answer": {…}}   or   {"id": 7, "error": {"message": …, "field": …}}
         before it any number of {"id": 7, "progress": {"done": …, "total": …, "unit": …, "text": …}}
An answer of many tokens (`tokenize`, `compare_text`) is {"arrow": PATH} above 1 MB: an Arrow file that the reader deletes.
"""

import re
from typing import Any

import msgspec

from backend.contract.catalog import Device
from backend.contract.errors import Fix
from backend.contract.run.cost import Remedy, TimePart
from backend.contract.run.measurement import Measurement

CANCEL = "cancel"
"""The query that takes back the one with its id."""
CANCELLED = "cancelled"
"""What is said of a question that was taken back."""
LONGEST_LINE = 64_000_000
"""Bytes of a question or a reply; whoever writes a longer line is not listened to any more."""
_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*(\d{1,15})\s*[,}]')


def id_in(line: bytes) -> int | None:
    """The number of the question to which a damaged line belongs: both sides write it first."""
    found = _ID.match(line)
    return int(found[1]) if found else None


class Request(msgspec.Struct, frozen=True):
    """One question."""

    id: int
    query: str
    arguments: dict[str, Any] = {}


class Progress(msgspec.Struct, frozen=True):
    """How far a long answer is."""

    done: float = 0
    total: float = 0
    unit: str = ""
    text: str = ""
    part: str = ""
    """The part of the whole that is worked on, for example a file that is downloaded, and how far that is."""
    part_done: float = 0
    part_total: float = 0


class Mistake(msgspec.Struct, frozen=True):
    """Why there is no answer: one sentence for people, and the spec key to change if there is one."""

    message: str
    field: str | None = None
    line: int | None = None
    """Of the field's value, from 1, where the value has several."""
    fix: Fix | None = None
    """What a button beside the sentence does."""


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line from the helper: progress, the answer, or a mistake."""

    id: int
    answer: Any = None
    error: Mistake | None = None
    progress: Progress | None = None


class ColumnLook(msgspec.Struct, frozen=True, kw_only=True):
    """What one column of the training data holds, by its first rows."""

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
    """A column that a part would be given, and why."""

    column: str
    reason: str


class DataPreview(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `preview_data {task, data}`: the first rows and what they could mean."""

    columns: list[str]
    rows: list[list[str]]
    row_count: int
    guessed_columns: dict[str, str]
    """Role → column, with the reason in `guess_reasons`."""
    guess_reasons: dict[str, str] = {}
    """Also of a role that was given no column because several could play it."""
    best_guesses: dict[str, GuessedColumn] = {}
    """Role → what would be guessed without a person's choice, where that is another column."""
    looks: list[ColumnLook] = []
    unfit: dict[str, dict[str, str]] = {}
    """Role → column → why it cannot play that part, as words that follow the column's name."""
    label_counts: dict[str, int] = {}
    skipped_count: int = 0
    skipped: list[str] = []
    """The first hundred unusable rows as `file:line: reason`."""
    files: list[str] = []
    passed_over: list[str] = []
    """Files of the named folder that are not read."""
    fix: Fix | None = None
    """Another way to read the file that is probably meant, such as another sheet of a workbook."""


class ModelDescription(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `describe_model {name_or_path, revision, task}`: what a model folder or hub id holds."""

    name: str
    folder: str = ""
    found: str = ""
    """`folder`, `cache`, `hub`, or `converted` for the copy of old weights in safetensors."""
    architecture: str = ""
    model_type: str = ""
    parameters: int = 0
    size_mb: float = 0
    weights_format: str = ""
    """`safetensors`, `bin` or `flax` (must be converted once), `none`, `lfs-pointer`, `broken`."""
    dtype: str = ""
    licence: str = ""
    commit: str = ""
    max_length: int | None = None
    vocabulary: int = 0
    labels: list[str] = []
    tokenizer: str = ""
    """One sentence: which tokenizer and whether it fits."""
    tokenizer_fits: bool = True
    safe: bool = True
    needs_remote_code: bool = False
    code: dict[str, str] = {}
    """Of a model that runs Python code of its own: whose code (hub id or folder) → which version."""
    code_agreed: bool = False
    """Whether this user has agreed to that code as it stands now."""
    code_files: list[str] = []
    """The Python files that come with it."""
    needs_conversion: bool = False
    notes: list[str] = []
    """Sentences worth reading before starting, for example that a new head will be made."""
    problem: str = ""
    """Why the model cannot be used for the task, with the way out; empty where it can."""


class ModelCode(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `model_code {target, revision}`, and of `agree_to_code` with the `code` that a person was shown."""

    code: dict[str, str] = {}
    """Whose code (hub id or folder) → which version; empty where nothing of its own runs."""
    files: list[str] = []
    folders: list[str] = []
    agreed: bool = False


class CachedModel(msgspec.Struct, frozen=True):
    """A model that lies in the hub library's cache."""

    name: str
    size_mb: float


class CachedModels(msgspec.Struct, frozen=True):
    """Answer of `cached_models {}`: what needs no download, last used first."""

    models: list[CachedModel]


class PlanPart(msgspec.Struct, frozen=True):
    """One part of the memory that a run will take."""

    name: str
    megabytes: float


class Placement(msgspec.Struct, frozen=True):
    """What one of several devices holds and does."""

    device: str
    rows: int
    """Of a full pass; with fewer than the other devices, the rest are filler rows."""
    weights_mb: float
    optimizer_mb: float


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `plan {spec}` and of `burnish plan --json`: what a run will cost."""

    rows: int
    features: int
    steps_per_epoch: int
    total_steps: int
    batch_size: int
    micro_batch_size: int
    accumulation: int
    tokens_per_epoch: int
    parameters: int
    trainable: int
    device: str
    precision: str
    precision_reason: str
    memory: list[PlanPart]
    memory_mb: float
    available_mb: float
    fits: bool
    placement: list[Placement] = []
    """What lies on each of several devices; empty with one."""
    seconds: float | None = None
    """Estimated time from the start to the last prediction, or None where nothing comparable was measured."""
    least_seconds: float | None = None
    """What it may be at least, and at most; None where `seconds` is."""
    most_seconds: float | None = None
    time: list[TimePart] = []
    measured: Measurement | None = None
    """What the time was reckoned from; None where it is not known, or by the speed of another training alone."""
    longest: int = 0
    """Tokens of the longest sequence of the rows that were looked at."""
    padding: float | None = None
    """Which part of all tokens that are computed is padding, estimated from these rows."""
    remedies: list[Remedy] = []
    """What would make it fit, the gentlest first; empty where it fits."""
    notes: list[str] = []
    problems: list[str] = []


class DeviceList(msgspec.Struct, frozen=True):
    """Answer of `devices {}`."""

    devices: list[Device]
    note: str = ""


class PredictionRows(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `filter_predictions {parquet, right, text, actual, prediction, sort_by, descending}`: an Arrow file of row
    numbers. Beside the file's columns rows are sorted by `confidence`, `error` (of a number) and `wrong_tags`."""

    arrow: str
    count: int


class Exported(msgspec.Struct, frozen=True):
    """Answer of `export_predictions {parquet, indices, output, defuse, bom}` and of `export_curves {run, folder}`."""

    path: str
    rows: int


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `confusion {parquet}`: how often which label was taken for which."""

    labels: list[str]
    """The labels that are actual or predicted, by name."""
    counts: list[list[int]]
    """`counts[actual][predicted]`, by the labels' places."""
    left_out: int = 0
    """Rows of labels beyond the first hundred."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `answer {target, task, rows, settings}` and of `burnish predict --input`: what a model says to typed rows."""

    task: str
    model: str
    device: str
    rows: list[dict[str, Any]]
    """One per typed row: the inputs by role, `prediction`, and the task's own columns as in `predictions.csv`."""
    note: str = ""
    """A sentence worth reading before the answer is believed; empty where there is none."""
    cuts: list[str] = []
    """What of the typed rows the model did not read, in sentences."""
    seconds: float = 0
    memory_mb: float = 0
    """What the process with the open model takes of the machine's memory."""
    device_memory_mb: float | None = None
    """What it has taken of the accelerator's at most; None on a processor."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How numbers are spread; `std` is the sample's, quantiles lie between neighbours as a line does."""

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


class LabelShare(msgspec.Struct, frozen=True):
    """How often a label occurs, and which part of all labels that is."""

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
    words: Spread | None = None
    tokens: Spread | None = None
    """With the special tokens that the tokenizer adds, nothing cut off."""
    numbers: Spread | None = None
    labels: list[LabelShare] = []
    """The most frequent first."""


class SplitReport(msgspec.Struct, frozen=True, kw_only=True):
    """One split. Rows that could not be read are counted in `unusable` and nowhere else."""

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
