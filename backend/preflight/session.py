"""A task, a tokenizer and a model, and what can be done with them: features, batches, predictions."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from backend.contract.errors import InputError
from backend.contract.metrics import Interval, base_metric
from backend.contract.places import cache_folder
from backend.contract.rpc.generation import GenerationStopped, never
from backend.contract.spec import RunSpec
from backend.data import batches
from backend.data.features import Features, features, load_into_memory, name_of
from backend.data.fingerprint import generator
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.engines.engine import Batch, Engine
from backend.engines.initial_weights import NewTokens
from backend.hardware.devices import count_processes
from backend.metrics.metric import declared_metrics, known_rows, weighted_scores
from backend.models.calibration import Calibration
from backend.models.location import ModelLocation
from backend.preflight.datasets import Splits, ignore_progress, make_task
from backend.preflight.metrics import compute_metrics
from backend.statistics.resampling import find_group_column, group_numbers, ignore, intervals
from backend.tasks.task import (
    Columns,
    Facts,
    Outputs,
    Predictions,
    Task,
    draw_feature,
    draws,
    encode_features,
    generation,
    trains_apart,
)
from backend.tokenizers.added_tokens import extends, first_new, replaced_pieces
from backend.tokenizers.loading import ensure_pad_token, fingerprint, open_tokenizer
from backend.tokenizers.options import ADDED, ADDED_SPECIAL

MAX_FILES_APART = 50
"""Of more files than this only the whole is measured."""
Tick = Callable[[int, int], None]
Measured = TypeVar("Measured")


@dataclass(frozen=True)
class ScoredEvaluation:
    """One evaluation: predictions for every row, metrics if labels are known, and how long it took."""

    predictions: Predictions
    metrics: dict[str, float]
    seconds: float


def _decides_features(task: Task) -> dict[str, Any]:
    """The task's settings that affect features, without those for decoding outputs, and `LATER` ones at their default."""
    left_out = set[str]()
    for name, field in type(task.settings).model_fields.items():
        extra = field.json_schema_extra
        if isinstance(extra, dict):
            is_unchanged = extra.get("later") and getattr(task.settings, name) == field.default
            left_out |= {name} if extra.get("decoding") or is_unchanged else set()
    return task.settings.model_dump(mode="json", exclude=left_out)


@dataclass(frozen=True)
class FeatureSession:
    """Everything that turns rows into numbers."""

    spec: RunSpec
    task: Task
    facts: Facts
    columns: Columns
    tokenizer: Any
    pad_token_id: int
    engine: Engine
    calibration: Calibration | None = None
    """By what outputs are scaled before they become probabilities."""
    stop_requested: Callable[[], bool] = never
    """Asked while answers are computed, which then raise GenerationStopped."""

    def features(self, rows: Rows, report: Report = ignore_progress, *, to_train: bool = False) -> Features:
        """The rows' features, cached if possible.

        What a task draws is drawn again in every epoch of training, and here once for everything else.
        """
        return features(
            lambda: self._make_features(rows, to_train=to_train),
            self._key(rows, to_train=to_train),
            cache_folder() / "features",
            report,
            len(rows),
        )

    def features_name(self, rows: Rows, *, to_train: bool = False) -> str:
        """The cache name of the rows' features."""
        return name_of(self._key(rows, to_train=to_train))

    def sampled_features(self, rows: Rows, *, to_train: bool = False) -> Features:
        """The same as `features` for a few rows; nothing is stored on disk."""
        return load_into_memory(self._make_features(rows, to_train=to_train))

    def _make_features(self, rows: Rows, *, to_train: bool) -> Iterator[pa.RecordBatch]:
        fixed = self._draws and not to_train
        return self._draw(self._encode(rows)) if fixed else self._encode(rows, to_train=to_train)

    def _key(self, rows: Rows, *, to_train: bool) -> dict[str, Any]:
        return {
            **self.identity(rows),
            "drawn": self.spec.training.seed if self._draws and not to_train else None,
            **({"to_train": True} if to_train and trains_apart(self.task) else {}),
        }

    def identity(self, rows: Rows) -> dict[str, Any]:
        """What determines the features of these rows, apart from drawing and packing."""
        return {
            "rows": rows.fingerprint,
            "task": _decides_features(self.task),
            "facts": self.facts,
            "columns": dict(self.columns),
            "tokenizer": self._tokenizer_fingerprint,
        }

    @cached_property
    def _tokenizer_fingerprint(self) -> str:
        return fingerprint(self.tokenizer)

    def typed_features(self, rows: Rows) -> Features:
        """Features of rows that the user typed; nothing is stored on disk."""
        return self.sampled_features(rows)

    def _encode(self, rows: Rows, *, to_train: bool = False) -> Iterator[pa.RecordBatch]:
        return encode_features(self.task, rows, self.columns, self.tokenizer, self.facts, to_train=to_train)

    def _draw(self, encoded: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in encoded:
            names = [field.name for field in batch.schema if pa.types.is_list(field.type)]
            each = []
            for number in range(batch.num_rows):
                lists = {name: batch[name][number].values.to_numpy(zero_copy_only=False) for name in names}
                rng = generator("draw", "evaluation", self.spec.training.seed, done + number)
                each.append(draw_feature(self.task, lists, rng, self.tokenizer))
            done += batch.num_rows
            arrays = {name: batch[name] for name in batch.schema.names}
            arrays |= (
                {name: pa.array([one[name] for one in each], pa.list_(pa.int32())) for name in each[0]} if each else {}
            )
            yield pa.RecordBatch.from_pydict(arrays)

    def micro_batches(self, source: Features, indices: np.ndarray, size: int, epoch: int) -> list[Batch]:
        """The batches of one optimizer step, each of at most `size` rows; `epoch` counts from 0."""

        def draw(feature: int, lists: batches.Lists) -> batches.Lists:
            rng = generator("draw", source.fingerprint, self.spec.training.seed, epoch, feature)
            return draw_feature(self.task, lists, rng, self.tokenizer)

        padding: batches.Padding = {**self._padding, "draw": draw if self._draws else None}
        return batches.micro_batches(source, indices, size, **padding)

    def batch(self, source: Features, indices: np.ndarray) -> Batch:
        """One batch for evaluation: nothing is drawn."""
        return batches.collate(source, indices, **self._padding)

    @cached_property
    def length_multiple(self) -> int:
        """The multiple to which batch lengths are rounded up (`backend.data.batches.Padding`)."""
        if self.engine.constant_rows:  # it compiles per length
            return batches.FEW
        return 8 if self.engine.device_memory_mb() is not None else 1  # a processor would only compute the padding

    @cached_property
    def _most_tokens(self) -> int | None:
        """Of one batch that is evaluated, unless its rows were chosen or an engine compiles their number."""
        on_cpu = not self.engine.constant_rows and self.engine.device_memory_mb() is None
        if not on_cpu or self.spec.evaluation.batch_size is not None:
            return None
        return batches.EVALUATED_TOKENS * count_processes(self.spec.hardware)

    @cached_property
    def _draws(self) -> bool:
        return draws(self.task)

    @cached_property
    def _padding(self) -> batches.Padding:
        return {
            "pad_token_id": self.pad_token_id,
            "head": self.task.head,
            "length_multiple": self.length_multiple,
            "length_limit": self.facts["max_length"],
        }

    def score(
        self, rows: Rows, source: Features, batch_size: int, tick: Tick = lambda done, total: None
    ) -> ScoredEvaluation:  # fmt: skip
        """Predict every row and score the labelled ones; `tick(done, total)` counts features."""
        started = time.perf_counter()
        outputs = self._outputs(source, batch_size, tick)
        if self.calibration is not None:
            outputs["logits"] = self.calibration.apply(outputs["logits"])
        predictions = self.task.decode(outputs, source.table, rows, self.columns, self.facts, self.tokenizer)
        return ScoredEvaluation(predictions, self.measure(predictions, rows), time.perf_counter() - started)

    def _outputs(self, source: Features, batch_size: int, tick: Tick) -> Outputs:
        writes = self.task.evaluates_by == "generate"
        passes = [self._evaluate] if not writes or "labels" in source.lists else []
        passes += [self._generate] if writes else []
        outputs: Outputs = {}
        for number, answers in enumerate(passes):

            def report_done(done: int, number: int = number) -> None:
                tick((number * len(source) + done) // len(passes), len(source))

            outputs |= answers(source, batch_size, report_done)
        return outputs

    def _evaluate(self, source: Features, batch_size: int, report: Callable[[int], None]) -> Outputs:
        def answers() -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
            done = 0
            for indices, batch in batches.evaluation_batches(
                source, batch_size, most_tokens=self._most_tokens, **self._padding
            ):
                if self.stop_requested():
                    raise GenerationStopped
                yield indices, self.engine.evaluate(batch)
                done += len(indices)
                report(done)

        return batches.restore_order(answers(), source, self.task.head)

    def _generate(self, source: Features, batch_size: int, report: Callable[[int], None]) -> Outputs:
        settings = replace(
            generation(self.task, self.tokenizer), seed=self.spec.training.seed, stop_requested=self.stop_requested
        )
        written: dict[int, np.ndarray] = {}
        # What is drawn depends on the rows that are drawn for together.
        most = None if self._most_tokens is None or settings.sample else batches.WRITTEN_TOKENS // settings.num_beams
        new = settings.max_new_tokens
        for indices, batch in batches.prompt_batches(source, batch_size, new, most, **self._padding):
            written |= dict(zip(indices.tolist(), self.engine.generate(batch, settings), strict=False))
            report(len(written))
        return {"generated": [written[number] for number in range(len(source))]}

    def _compute_metrics(self, predictions: Predictions) -> dict[str, float]:
        """The task's metrics and, if there are any, those of installed packages."""
        found = self.task.score(predictions, self.facts)
        return {**found, **compute_metrics(self.spec, predictions.table)} if found else found

    def measure(self, predictions: Predictions, rows: Rows) -> dict[str, float]:
        """The metrics of the rows whose answers are known; empty if there are none."""
        return _of_files(rows, lambda own: self._compute_metrics(predictions if own is None else predictions.take(own)))

    def intervals(
        self, scored: ScoredEvaluation, rows: Rows, check: Callable[[], None] = ignore
    ) -> dict[str, Interval]:
        """The 95 % interval of each metric that can be drawn again, by the names of `scored.metrics`.

        None for rows without the chosen group column, because nobody knows how they depend on each other.
        `check` is called several times a second, and may raise.
        """
        if self.spec.evaluation.group_column not in ("auto", "none", *rows.table.column_names):
            return {}
        metrics = [one for one in declared_metrics(self.task.metrics) if _is_among(one.name, scored.metrics)]
        column = self.group_column(rows)
        groups = group_numbers(rows.table[column]) if column is not None else None
        known = known_rows(scored.predictions)

        def draw(own: np.ndarray | None) -> dict[str, Interval]:
            chosen = known if own is None else np.intersect1d(known, own)
            families = weighted_scores(metrics, scored.predictions.take(chosen), self.facts, self.task.settings)
            own_groups = None if groups is None else np.unique(groups[chosen], return_inverse=True)[1]
            return intervals(families.values(), len(chosen), own_groups, check)

        return {name: value for name, value in _of_files(rows, draw).items() if name in scored.metrics}

    def group_column(self, rows: Rows) -> str | None:
        """The column whose rows with the same value depend on each other. Raises InputError if these rows lack it."""
        wanted, names = self.spec.evaluation.group_column, rows.table.column_names
        if wanted == "none":
            return None
        if wanted == "auto":
            return find_group_column(rows.table, self.columns.get("context"))
        if wanted not in names:
            raise InputError(
                "evaluation.group_column: there is no column {column}; choose one of {names}, auto or none",
                "evaluation.group_column",
                column=repr(wanted),
                names=", ".join(names),
            )
        return wanted


def _of_files(rows: Rows, measure: Callable[[np.ndarray | None], dict[str, Measured]]) -> dict[str, Measured]:
    """What `measure` says of all rows; for several files also of each file's own, as `file/metric` or as the source names them."""
    files = np.unique(rows.file_index)  # of rows held out from several files, perhaps of the last one alone
    if (len(files) < 2 and not rows.metric_names) or len(files) > MAX_FILES_APART:
        return measure(None)
    names = rows.metric_names or tuple(f"{file}/{{metric}}" for file in rows.files)
    found = {} if rows.metric_names else measure(None)
    for number, name in enumerate(names):
        own = np.flatnonzero(rows.file_index == number)
        each = measure(own) if len(own) else {}
        found |= {name.replace("{metric}", metric): value for metric, value in each.items()}
    return found


def _is_among(metric: str, names: Iterable[str]) -> bool:
    return any(base_metric(name, [metric]) for name in names)


def open_session(spec: RunSpec, splits: Splits, model: ModelLocation, engine: object) -> FeatureSession:
    """Task, tokenizer and engine around the rows; the engine has no model yet."""
    tokenizer = open_tokenizer(spec.model.tokenizer or str(model.folder), options=spec.model.tokenizer_options)
    return FeatureSession(
        spec=spec,
        task=make_task(spec),
        facts=splits.facts,
        columns=splits.columns,
        tokenizer=tokenizer,
        pad_token_id=ensure_pad_token(tokenizer),
        engine=engine,  # type: ignore[arg-type]
    )


def new_tokens(spec: RunSpec, tokenizer: Any, folder: Path) -> NewTokens:
    """The tokens that `tokenizer` has beyond that of the model in `folder`, and their initial rows."""
    if spec.model.initialise == "from_config":
        return NewTokens()  # every row is new
    own = _load_trained_tokenizer(spec, folder) if _adds_tokens(spec) else None
    if own is not None and not extends(tokenizer, own):
        return NewTokens()  # another vocabulary altogether: no row is known to belong to anything
    pieces = replaced_pieces(tokenizer, own)
    if spec.model.new_embeddings == "usual":
        pieces = dict.fromkeys(pieces, ())
    return NewTokens(pieces, None if own is None else first_new(own))


def _adds_tokens(spec: RunSpec) -> bool:
    options = spec.model.tokenizer_options
    return spec.model.tokenizer is not None or bool(options.get(ADDED) or options.get(ADDED_SPECIAL))


def _load_trained_tokenizer(spec: RunSpec, folder: Path) -> Any:
    """The tokenizer that the model was trained with; None if its folder has none that opens."""
    given = spec.model.tokenizer_options if spec.model.tokenizer is None else {}
    options = {name: value for name, value in given.items() if name not in (ADDED, ADDED_SPECIAL)}
    try:
        return open_tokenizer(str(folder), options=options)
    except InputError:
        return None
