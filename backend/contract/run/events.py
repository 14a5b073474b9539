"""The events that a run appends to `events.jsonl`, one JSON object per line, and their fast decoding.

Each event carries `time`, seconds since the epoch. Readers skip unknown event types, so that a
window can open a run of a newer minor version.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from backend.contract.errors import InputError
from backend.contract.messages import table_of
from backend.contract.run.fixes import RunFix
from backend.contract.safe_files import open_unlinked

RUN_STATES = ("queued", "starting", "running", "finished", "stopped", "paused", "interrupted", "failed", "lost")


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    """The fields of every event."""

    time: float
    messages: dict[str, Any] = {}
    """How its sentences were made, for a window that speaks another language (see `contract/messages.py`)."""


class RunStarted(Event, frozen=True, tag=True):
    """The first event of the first attempt."""

    name: str
    task: str
    model: str
    attempt: int = 1
    contract_version: str = ""
    engine: str = ""
    device: str = ""
    precision: str = ""
    versions: dict[str, str] = {}


class RunResumed(Event, frozen=True, tag=True):
    """A later attempt starts; every step and evaluation after `from_step` before this line is void."""

    attempt: int
    from_step: int
    versions: dict[str, str] = {}
    device: str = ""
    precision: str = ""
    engine: str = ""


STAGE_WORDS = {"tokenising": "tokenizing"}
"""Stages whose name in events is spelled differently on screen."""


class StageStarted(Event, frozen=True, tag=True):
    """The run entered a stage; `total` is 0 if the amount of work is unknown."""

    stage: str
    """One of: finding model, loading data, tokenising, loading model, compiling, training, evaluating, predicting,
    saving; of a search: searching. Compiling comes in the midst of another stage, which then starts again."""
    total: int = 0
    unit: str = ""


class StageProgress(Event, frozen=True, tag=True):
    """Progress of the current stage, in the stage's unit."""

    stage: str
    done: int
    total: int = 0


class ProgramCompiled(Event, frozen=True, tag=True):
    """An engine compiled one more program for a new shape."""

    count: int
    """Programs of this attempt so far."""
    seconds: float


class DataLoaded(Event, frozen=True, tag=True):
    """One split was read; `skipped` rows could not be used (see `RowsSkipped`)."""

    split: str
    rows: int
    skipped: int = 0
    files: list[str] = []
    features: int = 0
    labels: dict[str, int] = {}
    fingerprint: str = ""
    """Changes with any byte of the rows; a resume on other rows is refused."""
    cached: bool = False
    """The features were made before; nothing was tokenised."""


class RowsSkipped(Event, frozen=True, tag=True):
    """Rows that could not be used, with their locations; `places` holds the first hundred as file:line."""

    split: str
    reason: str
    count: int
    places: list[str] = []


class ModelLoaded(Event, frozen=True, tag=True):
    """The weights are loaded."""

    architecture: str
    parameters: int
    trainable: int
    new_weights: list[str] = []
    unused_weights: list[str] = []


class PlanMade(Event, frozen=True, tag=True):
    """What training will do; the denominators of progress and ETA."""

    total_steps: int
    steps_per_epoch: int
    batch_size: int
    micro_batch_size: int
    accumulation: int
    epochs: float
    best_metric: str | None = None
    greater_is_better: bool = True
    """Of `best_metric`, or of the loss where there is none."""
    metrics: dict[str, bool] = {}
    """Whether a greater value is better, of every metric of which that is declared; variants of it inherit that."""
    trivial: dict[str, float] = {}
    """What a rule without a model reaches on the validation rows, by metric; a model at that has learned nothing."""
    replicas: int = 1
    """Devices, or groups of them, that each read `micro_batch_size` rows in a pass."""
    evaluation_batch_size: int = 64
    """Rows of an evaluation's pass on all devices together; older runs do not say."""


class StepFinished(Event, frozen=True, tag=True):
    """One optimizer step. `loss` is the sum over the step's targets divided by their number."""

    step: int
    epoch: float
    loss: float | None
    learning_rate: float
    gradient_norm: float | None
    rows: int
    tokens: int
    seconds: float
    """Duration of this step; evaluation and checkpoints are not in it."""


class MemoryMeasured(Event, frozen=True, tag=True):
    """Resident memory of the run's processes and memory taken on the first accelerator, in megabytes (10^6 bytes)."""

    step: int
    memory_mb: float
    device_memory_mb: float | None = None
    processes: int = 1
    """How many `memory_mb` is of; on this computer only."""


class EvaluationFinished(Event, frozen=True, tag=True):
    """One evaluation; `metrics` by name (see the metric names of the contract)."""

    step: int
    epoch: float
    metrics: dict[str, float | None]
    rows: int
    seconds: float
    split: str = "validation"
    is_best: bool = False


class SampledRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of a split with the model's prediction; `kind` is worst, best or drawn."""

    row: int
    """Its number in the split, from 0."""
    kind: str
    values: dict[str, Any]
    """By column as in `predictions.csv`; long texts are cut."""
    rating: float | None = None
    """How good the prediction is, higher being better; None if unknown."""


class RowsSampled(Event, frozen=True, tag=True):
    """Some predictions of the evaluation that follows; the randomly drawn rows are the same at every step."""

    step: int
    rows: list[SampledRow]
    measure: str = ""
    """What `rating` is, in words."""
    columns: dict[str, str] = {}
    """Which input column plays which part, as in a spec's `data.columns`."""
    split: str = "validation"


class CheckpointSaved(Event, frozen=True, tag=True):
    """A checkpoint is complete on disk; `folder` is relative to the run folder."""

    step: int
    folder: str
    seconds: float = 0.0
    """How long training stood still for it."""
    is_best: bool = False


class CheckpointRemoved(Event, frozen=True, tag=True):
    """An older checkpoint was deleted to limit their number."""

    step: int
    folder: str


class RequestAnswered(Event, frozen=True, tag=True):
    """A request file (stop, pause, interrupt, checkpoint) was seen and is being obeyed."""

    request: str
    step: int


class Warned(Event, frozen=True, tag=True):
    """Something that the user should know but that does not stop the run; `code` is stable."""

    code: str
    message: str


class ModelExported(Event, frozen=True, tag=True):
    """`model/` was written."""

    folder: str
    step: int


class PredictionsWritten(Event, frozen=True, tag=True):
    """A predictions file was written; paths are relative to the run folder."""

    split: str
    csv: str
    parquet: str
    rows: int
    seconds: float
    metrics: dict[str, float | None] = {}
    intervals: dict[str, tuple[float, float]] = {}
    """The 95 % confidence interval of each metric that has one."""


class RunFinished(Event, frozen=True, tag=True):
    """The last event of an attempt that ended normally: finished, stopped, paused, interrupted or failed."""

    state: str
    step: int
    message: str = ""
    code: str = ""
    hint: str = ""
    mend: RunFix | None = None
    """What helps a run that failed or has learned nothing, where a click can do it."""
    field: str = ""
    """The dotted spec key of invalid input, and the line within a multi-line value, from 1; 0 is none."""
    line: int = 0
    best_step: int | None = None
    metrics: dict[str, float | None] = {}

    def can_go_on(self, *, has_checkpoint: bool) -> bool:
        """Whether resuming could end differently; without a checkpoint, a loss that became NaN would do so again."""
        return self.code != "nan_loss" or has_checkpoint


class TrialProposed(Event, frozen=True, tag=True):
    """A search has chosen the settings of its next trial; its run is made after this line."""

    trial: int
    """Counted from 1, in the order in which they were proposed."""
    run: str
    """The run's folder, relative to that of the search."""
    settings: dict[str, Any]
    """Dotted keys of the spec and their values."""
    confirms: int = 0
    """The trial whose settings it trains again with another seed; 0 for a trial of its own, -1 for the spec's own settings."""
    source: str = ""
    """What the settings come from: `grid`, `chance`, `results` of earlier trials, or `untried` for one of the few combinations left."""
    results: int = 0
    """How many trials had results when they were chosen; 0 of a sampler that does not learn."""


class TrialEnded(Event, frozen=True, tag=True):
    """An attempt at a trial is over: finished, paused at a rung, stopped, failed, interrupted or lost."""

    trial: int
    state: str
    step: int
    value: float | None = None
    """The metric that is searched by, as far as it was measured."""
    message: str = ""


AnyEvent = (
    RunStarted
    | RunResumed
    | StageStarted
    | StageProgress
    | ProgramCompiled
    | DataLoaded
    | RowsSkipped
    | ModelLoaded
    | PlanMade
    | StepFinished
    | MemoryMeasured
    | EvaluationFinished
    | RowsSampled
    | CheckpointSaved
    | CheckpointRemoved
    | RequestAnswered
    | Warned
    | ModelExported
    | PredictionsWritten
    | TrialProposed
    | TrialEnded
    | RunFinished
)

LONGEST_LINE_BYTES = 8_000_000
"""A longer line is not an event. Readers pass over it in portions, so that it is never in memory as a whole."""
MAX_PASSED_OVER = 10 * LONGEST_LINE_BYTES
"""Half a second; a sparse file of any length packs to a few kilobytes."""
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyEvent)


def encode(event: Event) -> bytes:
    """One line, newline included. NaN and infinity become null, because JSON has neither."""
    if table := table_of(event):
        event = msgspec.structs.replace(event, messages={**event.messages, **table})
    return _encoder.encode(event) + b"\n"


def decode(line: bytes) -> AnyEvent | None:
    """The event on a whole line, or None if its type is unknown or the line is damaged."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None


def decode_lines(data: bytes) -> tuple[list[AnyEvent], int]:
    """The events of all complete lines and how many bytes they took; a half-written last line is left for later."""
    end = data.rfind(b"\n") + 1
    return list(decode_all(data[:end].split(b"\n"))), end


class EventReader:
    """Reads the events added since the last read; a half-written line is left for the next one."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path = path
        self.offset = offset
        """The bytes that were read."""

    @classmethod
    def at_end(cls, path: Path) -> "EventReader":
        """A reader for the events of the next attempt, which removes a half-written last line and writes it again."""
        if not path.exists():
            return cls(path)
        with open_unlinked(path) as file:
            size = file.seek(0, os.SEEK_END)
            begin = file.seek(max(0, size - LONGEST_LINE_BYTES))
            last = file.read(size - begin).rfind(b"\n")
        return cls(path, begin + last + 1 if last >= 0 or not begin else size)

    def read(self) -> list[AnyEvent]:
        """The events in the next block of the file; nothing if it does not exist."""
        try:
            with open_unlinked(self._path) as file:
                size = file.seek(0, os.SEEK_END)
                if size < self.offset:  # it was deleted and started again
                    self.offset = 0
                file.seek(self.offset)
                block = file.read(min(size - self.offset, LONGEST_LINE_BYTES))
        except FileNotFoundError:
            return []
        found, taken = decode_lines(block)
        if not taken and len(block) == LONGEST_LINE_BYTES:
            taken = len(block)  # a longer line is not an event
        self.offset += taken
        return found

    def new(self) -> Iterator[AnyEvent]:
        """Yield all new events in file order, one block at a time."""
        before = None
        while before != self.offset:
            before = self.offset
            yield from self.read()


def lines_of(file: IO[bytes], size: int | None = None) -> Iterator[bytes]:
    """The lines in the first `size` bytes of an open events file; a line too long for an event is skipped.

    Raises InputError if a line never seems to end.
    """
    left = sys.maxsize if size is None else size
    is_rest, passed_over = False, 0
    while left > 0 and (line := file.readline(min(left, LONGEST_LINE_BYTES))):
        left -= len(line)
        passed_over = passed_over + len(line) if is_rest else 0
        if passed_over > MAX_PASSED_OVER:
            raise InputError(
                "events.jsonl contains megabytes without a line break; it is damaged, or was not written by a run"
            )
        is_part = not line.endswith(b"\n") and len(line) == LONGEST_LINE_BYTES
        if not (is_rest or is_part):
            yield line
        is_rest = is_part or (is_rest and not line.endswith(b"\n"))


def decode_all(lines: Iterable[bytes]) -> Iterable[AnyEvent]:
    """Every readable event, in order."""
    for line in lines:
        event = decode(line) if line.strip() else None
        if event is not None:
            yield event
