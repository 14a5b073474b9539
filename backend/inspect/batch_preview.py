"""Shows a training run without training: its features and the batch of any step, for a spec or a past run."""

import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from backend.contract.errors import InputError
from backend.contract.run.events import DataLoaded, PlanMade, RunResumed, RunStarted, StepFinished, decode_all
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import open_unlinked
from backend.contract.spec import RunSpec
from backend.data.column_summary import cell_text
from backend.data.features import Features
from backend.data.order import DataOrder
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.engines.engine import Batch
from backend.models.location import ModelLocation
from backend.preflight import auto_settings
from backend.preflight.checks import check_model, locate_small_files, model_size
from backend.preflight.datasets import Splits, load_splits
from backend.preflight.resolve import read_run
from backend.preflight.session import FeatureSession, open_session
from backend.preflight.steps import total_steps, training_order
from backend.tasks.task import used_columns

Stage = Callable[[str], Report]
"""Starts a stage of that name and returns its progress callback."""
MAX_CHARACTERS = 4000
"""Of a cell that is shown."""


@dataclass(frozen=True)
class PreviewEngine:
    """Replaces an engine that is not loaded, with what batches need to know about it."""

    constant_rows: bool
    """Whether it compiles shapes, as every engine does but torch's."""
    on_accelerator: bool

    def device_memory_mb(self) -> float | None:
        """A number if there is an accelerator; none is used."""
        return 0.0 if self.on_accelerator else None


@dataclass(frozen=True)
class RunHistory:
    """What a run's events say about its steps; empty for a run that has not started."""

    plan: PlanMade | None = None
    device: str = ""
    fingerprints: tuple[tuple[str, str], ...] = ()
    size: int = 0
    """Bytes of events that were read."""
    steps: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))  # (steps, 3) number, tokens, loss or NaN

    def step(self, number: int) -> tuple[int, float] | None:
        """Tokens and loss, as reported by the last attempt that ran the step."""
        found = np.flatnonzero(self.steps[:, 0] == number)
        return (int(self.steps[found[-1], 1]), float(self.steps[found[-1], 2])) if len(found) else None


@dataclass(frozen=True)
class BatchPreview:
    """One split's features, tokenised as in training, and how batches are made from them."""

    session: FeatureSession
    splits: Splits
    model: ModelLocation
    split: str
    features: Features
    past: RunHistory

    @property
    def spec(self) -> RunSpec:
        """The spec being trained."""
        return self.session.spec

    @property
    def rows(self) -> Rows:
        """The split's rows."""
        return self.splits.rows[self.split]

    @cached_property
    def order(self) -> DataOrder | None:
        """None for a split that is not used for training."""
        return training_order(self.spec, self.features) if self.split == "train" else None

    @property
    def total_steps(self) -> int:
        """Total training steps; 0 for a split that is not used for training."""
        if self.order is None:
            return 0
        if self.past.plan is not None:
            return self.past.plan.total_steps
        return total_steps(self.spec.training, self.order.steps_per_epoch)

    def with_new_events(self, folder: RunFolder) -> "BatchPreview":
        """The same with the latest events of the run in `folder`; itself if there are none."""
        size = _size(folder)
        return self if size == self.past.size else replace(self, past=read_history(folder))

    def indices(self, step: int) -> np.ndarray:
        """The features of optimizer step `step`, counted from 1. Raises InputError if there is no such step."""
        if self.order is None:
            raise InputError("only the training data has steps, and this is the {split} data", "step", split=self.split)
        if not 1 <= step <= self.total_steps:
            raise InputError(
                "there is no step {step}: this training has steps 1 to {total_steps:,}",
                "step",
                step=step,
                total_steps=self.total_steps,
            )
        return self.order.indices(step)

    def epoch(self, step: int) -> int:
        """The epoch of a step, counted from 0."""
        assert self.order is not None
        return (step - 1) // self.order.steps_per_epoch

    def passes(self, step: int) -> list[Batch]:
        """A step's arrays as the engine receives them, one batch per micro-batch."""
        return self.session.micro_batches(self.features, self.indices(step), self._rows_in_pass(), self.epoch(step))

    def batch_around(self, feature: int, step: int | None) -> tuple[Batch, int]:
        """The micro-batch of a step that contains a feature, and its index there; without a step the feature alone."""
        if step is not None:
            indices = self.indices(step)
            places = np.flatnonzero(indices == feature)
            if not len(places):
                raise InputError("feature {feature} is not part of step {step}", "feature", feature=feature, step=step)
            number, place = divmod(int(places[0]), self._rows_in_pass())
            part = indices[number * self._rows_in_pass() :][: self._rows_in_pass()]
            return self.session.micro_batches(self.features, part, len(part), self.epoch(step))[0], place
        if not 0 <= feature < len(self.features):
            raise InputError(
                "there is no feature {feature}; there are {features:,}, numbered from 0",
                "feature",
                feature=feature,
                features=len(self.features),
            )
        alone = np.array([feature])
        if self.split == "train":
            return self.session.micro_batches(self.features, alone, 1, 0)[0], 0
        return self.session.batch(self.features, alone), 0

    def features_of(self, row: int) -> np.ndarray:
        """The features that contain a row, as far as they record it. Raises InputError if there is no such row."""
        if not 0 <= row < len(self.rows):
            raise InputError("there is no row {row}; there are {rows:,}", "row", row=row + 1, rows=len(self.rows))
        owners = self.features.scalars["row"]
        first, after = np.searchsorted(owners, [row, row + 1])
        # In blocks a row may begin before the first block that begins with it, or lie wholly within another.
        return np.arange(max(0, first - (first == after)), max(after, 1)) if first == after else np.arange(first, after)

    def _rows_in_pass(self) -> int:
        plan = self.past.plan
        return plan.micro_batch_size * plan.replicas if plan else min(self.spec.training.batch_size, len(self.features))


def preview(spec: RunSpec, stage: Stage, split: str = "train", past: RunHistory | None = None) -> BatchPreview:
    """What training with `spec` sees of a split. Raises InputError; an exception from a `stage` report stops it."""
    past = past or RunHistory()
    model = locate_small_files(spec, stage("finding the model"))
    if past.plan is None:  # what was trained may be looked at, whether or not its engine could train it today
        check_model(spec, model.folder, looks_at_weights=False)
    splits = load_splits(spec, model.folder, stage("reading the data"))
    if split not in splits.rows:
        raise InputError(
            "there is no {split} data; available: {rows}", "split", split=split, rows=", ".join(splits.rows)
        )
    spec = auto_settings.resolve(spec, splits, lambda: model_size(spec, model)).spec
    _check_rows(splits, past)
    session = open_session(spec, splits, model, engine=_padder(spec, past))
    features = session.features(splits.rows[split], stage("tokenising"), to_train=split == "train")
    return BatchPreview(session, splits, model, split, features, past)


def preview_run(folder: RunFolder, stage: Stage, split: str = "train") -> BatchPreview:
    """What a run has seen, or will. Raises InputError, also if its files have changed since."""
    return preview(read_run(folder), stage, split, read_history(folder))


def read_history(folder: RunFolder) -> RunHistory:
    """What the run's events say about its steps; for a repeated step the latest."""
    plan: PlanMade | None = None
    device, loaded, steps, size = "", {}, array("d"), _size(folder)
    if not size:
        return RunHistory()
    with open_unlinked(folder.events) as file:
        for event in decode_all(file):
            if isinstance(event, StepFinished):
                steps.extend((event.step, event.tokens, math.nan if event.loss is None else event.loss))
            elif isinstance(event, PlanMade):
                plan = event
            elif isinstance(event, RunStarted | RunResumed):
                device = event.device or device
            elif isinstance(event, DataLoaded):
                loaded.setdefault(event.split, event.fingerprint)
    return RunHistory(plan, device, tuple(loaded.items()), size, np.array(steps).reshape(-1, 3))


def _size(folder: RunFolder) -> int:
    return folder.events.stat().st_size if folder.events.exists() else 0


def _check_rows(splits: Splits, past: RunHistory) -> None:
    for split, fingerprint in past.fingerprints:
        rows = splits.rows.get(split)
        if rows is not None and fingerprint not in ("", rows.fingerprint):
            raise InputError(
                "the {split} data ({files}) has changed since the run started, so its steps cannot be "
                "shown; restore the old files",
                f"data.{split}",
                split=split,
                files=", ".join(rows.files[:3]),
            )


def _padder(spec: RunSpec, past: RunHistory) -> PreviewEngine:
    """Before a run with automatic device choice has started, assume that there is no accelerator."""
    device = past.device or spec.hardware.device
    return PreviewEngine(spec.hardware.engine != "torch", not device.startswith(("cpu", "auto")))


def row_cells(preview: BatchPreview, row: int) -> list[tuple[str, str]]:
    """Column and text of each cell that the task reads, in the task's order."""
    named = [preview.session.columns.get(column.name) for column in used_columns(preview.session.task)]
    there = [name for name in dict.fromkeys(named) if name in preview.rows.table.column_names]
    return [(name, cell_text(preview.rows.table[name][row].as_py(), MAX_CHARACTERS)) for name in there if name]


def row_text(preview: BatchPreview, row: int, characters: int = 200) -> str:
    """The start of a row on one line."""
    text = " ".join(" · ".join(text for _, text in row_cells(preview, row) if text).split())
    return text if len(text) <= characters else f"{text[: characters - 1]}…"
