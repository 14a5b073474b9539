"""The interface of a task: rows to features, outputs to predictions, predictions to scores; never a tensor."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import msgspec
import numpy as np
import pyarrow as pa

from backend.contract.catalog import Column, is_used
from backend.contract.errors import InputError
from backend.contract.heads import Head, HeadFacts
from backend.contract.metrics import Metric
from backend.contract.rpc.generation import GenerationSettings
from backend.contract.rpc.training_data import Beyond
from backend.contract.spec import Section
from backend.data.rows import Rows
from backend.metrics.metric import Predictions, Sums

Facts = dict[str, Any]
"""What a task learnt from the training rows, as plain JSON values; stored with the model, so that it can predict.

Preparation adds `max_length`, the settings' own or the model's limit, and takes out `notes`: sentences that tell a
person how the task took the data.
"""

Columns = Mapping[str, str]
"""Role → the column of the data that plays it. Roles without a column are absent."""

Outputs = dict[str, list[np.ndarray]]
"""What `Engine.evaluate` returned, one array per feature (filler and padding cut away), in the order of the features.

Where the task `evaluates_by` generation also `generated`: the new ids of each feature, without prompt and end token.
"""

SplitBy = Literal["label", "random", "contiguous"]


Use = Literal["training", "measuring", "predicting"]
"""What rows are for: the first two need answers, and only the first must find them where they are said to be."""


class Task(Protocol):
    """One task; a module of `backend.tasks` exports its class as `TASK`.

    It may also have `try_settings`: own settings with which a person tries a model, where they differ from the defaults.
    """

    title: ClassVar[str]
    description: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]
    metrics: ClassVar[tuple[str | Metric, ...]]
    """What every evaluation gives: those of `backend.metrics`, by `metrics_of` or by name, and a task's own.

    Variants with a suffix (`f1_PER`) may come beside them and inherit what is declared.
    """
    default_metric: ClassVar[str]
    head: Head
    """The class's is the usual one, an instance's is what its settings ask for; so it is with `evaluates_by`."""
    evaluates_by: Literal["outputs", "generate"]
    defaults: ClassVar[dict[str, Any]]
    """Sensible other sections for this task, as a fragment of a spec."""
    examples: ClassVar[tuple[dict[str, Any], ...]]
    """Rows to try a model with if no run's data is at hand, by part."""
    trained_architecture: ClassVar[str]
    """How the name of an architecture ends whose head was trained for the task; empty if every model of it was."""
    row_view: ClassVar[str]
    """How the window shows a row: `label`, `number`, `entities`, `span`, `text`, `language_model` or `choice`."""
    hub_filter: ClassVar[str]
    """The hub's own task of the models that this one is usually trained from."""
    Settings: ClassVar[type[Section]]

    settings: Any
    """An instance of `Settings`."""

    def __init__(self, settings: Any) -> None: ...

    @property
    def split_by(self) -> SplitBy:
        """How a validation fraction is split off the training rows."""
        ...

    def label_column(self, columns: Columns) -> str | None:
        """The column whose values a stratified split keeps in proportion."""
        ...

    def unusable(self, rows: Rows, columns: Columns, use: Use) -> list[tuple[int, str]]:
        """Rows that cannot be used for this purpose, each with the reason."""
        ...

    def fit(self, rows: Rows, columns: Columns, model_labels: tuple[str, ...] = ()) -> Facts:
        """Learn from the training rows; `model_labels` are the checkpoint's, whose order is kept.

        Raises InputError, for example for a single class.
        """
        ...

    def facts_of_model(self, labels: tuple[str, ...]) -> Facts:
        """The facts in the configuration of a model trained elsewhere."""
        ...

    def check(self, rows: Rows, columns: Columns, facts: Facts, split: str) -> None:
        """Raises InputError if another split does not match `facts`, for example an unknown label."""
        ...

    def head_facts(self, facts: Facts) -> HeadFacts:
        """What the engine must know about the head."""
        ...

    def encode(self, rows: Rows, columns: Columns, tokenizer: Any, facts: Facts) -> Iterator[pa.RecordBatch]:
        """Features in chunks: `row`, `part` (int32), `input_ids`, `labels` if known, and what the head needs."""
        ...

    def decode(
        self, outputs: Outputs, features: pa.Table, rows: Rows, columns: Columns, facts: Facts, tokenizer: Any
    ) -> Predictions:
        """One prediction per row from the outputs of its features."""
        ...

    def score(self, predictions: Predictions, facts: Facts) -> dict[str, float]:
        """Metrics over the rows with a known `actual`; empty if there are none."""
        ...


class DrawsFeatures(Protocol):
    """Additional methods of a task with features that change by epoch (masks)."""

    def draw(self, arrays: dict[str, np.ndarray], rng: np.random.Generator, tokenizer: Any) -> dict[str, np.ndarray]:
        """One feature's lists (L,), drawn again; lengths stay. For evaluation they are drawn once."""
        ...


class GeneratesText(Protocol):
    """Additional methods of a task that `evaluates_by` generation or whose model can continue a prompt."""

    def generation(self, tokenizer: Any) -> GenerationSettings:
        """How text is generated."""
        ...


class HasTrainingFeatures(Protocol):
    """Additional methods of a task that trains on different features than it evaluates with (packing)."""

    trains_apart: bool
    """The class's is the usual one, an instance's is what its settings ask for."""

    def for_training(self, features: Iterator[pa.RecordBatch], facts: Facts) -> Iterator[pa.RecordBatch]:
        """The encoded features for training; called only if `trains_apart`."""
        ...


class ChecksTokenizer(Protocol):
    """Additional method of a task that does not support every tokenizer."""

    def check_tokenizer(self, tokenizer: Any) -> None:
        """Raises InputError if the tokenizer does not support the task."""
        ...


@dataclass(frozen=True)
class Limit:
    """A task setting that limits lengths, what it limits, and what happens to a longer row."""

    setting: str = "max_length"
    column: str = "input_ids"
    """Of the features."""
    what: str = "rows"
    beyond: Beyond = "cut"
    loses: str = "text"
    """What a row that is cut is without."""
    fills: bool = True
    """Whether what is left of a row that is cut is as long as the limit; else it may be shorter."""


class HasTrivialRule(Protocol):
    """Additional method of a task whose scores are easily mistaken for success."""

    def trivial_scores(self, rows: Rows, columns: Columns, facts: Facts) -> dict[str, float]:
        """What a rule without a model reaches on these rows."""
        ...


def trivial_scores(task: Task, rows: Rows, columns: Columns, facts: Facts) -> dict[str, float]:
    """What a rule without a model reaches on these rows; empty if the task knows none."""
    own = getattr(task, "trivial_scores", None)
    return {} if own is None else own(rows, columns, facts)


class LearnsTrivialRule(Protocol):
    """Additional method of a task whose rule without a model is learned from the training data."""

    def learned_scores(self, train: pa.Table, held_out: pa.Table) -> dict[str, float]:
        """What a rule that counts in the features `train` reaches on others."""
        ...


def learned_scores(task: Task, train: pa.Table, held_out: pa.Table) -> dict[str, float]:
    """What a rule that was learned from these features reaches on others; empty if the task knows none."""
    own = getattr(task, "learned_scores", None)
    return {} if own is None else own(train, held_out)


class RebuildsSums(Protocol):
    """Additional method of a task whose metrics need more than `prediction` and `actual`."""

    def sums_of(self, table: pa.Table, rows: Rows, columns: Columns) -> Sums:
        """What `Predictions.sums` had of the metrics that a predictions file still tells; `rows` are those predicted."""
        ...


def sums_of(task: Task, table: pa.Table, rows: Rows, columns: Columns) -> Sums:
    """Sums from a predictions file; empty if the task's metrics need none."""
    own = getattr(task, "sums_of", None)
    return {} if own is None else own(table, rows, columns)


class GivesProbabilities(Protocol):
    """Additional method of a task that predicts one of several labels per row, with a column `probability_…` for each."""

    def right_outputs(self, rows: Rows, columns: Columns, facts: Facts) -> np.ndarray:
        """(rows,) the place of the right label among these columns; negative if it is unknown."""
        ...


def right_outputs(task: Task, rows: Rows, columns: Columns, facts: Facts) -> np.ndarray | None:
    """The places of the right labels; None if the task predicts no probabilities."""
    own = getattr(task, "right_outputs", None)
    return None if own is None else own(rows, columns, facts)


class Combines(Protocol):
    """Additional method of a task whose answers can be averaged or voted on; of generated texts there is no middle."""

    def combine(self, each: Sequence[Predictions], rows: Rows, columns: Columns, facts: Facts) -> Predictions:
        """The predictions of several models together, of the same rows in the same order."""
        ...


def combine(
    task: Task, each: Sequence[Predictions], rows: Rows, columns: Columns, facts: Facts
) -> Predictions | None:  # fmt: skip
    """The predictions of several models together; None if the task has no such thing."""
    own = getattr(task, "combine", None)
    return None if own is None else own(each, rows, columns, facts)


def average(each: Sequence[Predictions], column: str) -> np.ndarray:
    """(rows,) the mean of a column of numbers."""
    return np.mean([one.table[column].to_numpy() for one in each], axis=0)


def log_of(probabilities: np.ndarray) -> np.ndarray:
    """Their logarithms; that of 0 is finite, though no loss is larger."""
    return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))


def vote(answers: Iterable[Sequence[Any]]) -> list[Any]:
    """The commonest of each place's answers, one sequence for each voter; of equally common ones the first voter's."""
    return [Counter(one).most_common(1)[0][0] for one in zip(*answers, strict=True)]


class TunesPredictions(Protocol):
    """Additional members of a task whose predictions follow from outputs by numbers that validation rows decide."""

    tunes_predictions: bool
    """Whether its settings ask for that."""

    def tune(self, predictions: Predictions, rows: Rows, columns: Columns, facts: Facts) -> Facts:
        """Facts to be kept with the model beside the others, and `notes` about them; empty if nothing is tuned."""
        ...


def tunes_predictions(task: Task) -> bool:
    """Whether the task learns from predicted validation rows how outputs become predictions."""
    return getattr(task, "tunes_predictions", False)


def tune(task: Task, predictions: Predictions, rows: Rows, columns: Columns, facts: Facts) -> Facts:
    """What a task that `tunes_predictions` learns from them; must not be called for any other task."""
    tuning: Any = task
    return tuning.tune(predictions, rows, columns, facts)


class HasSeveralLabels(Protocol):
    """Additional methods of a task whose rows have several labels, so that no column says which one."""

    def split_labels(self, rows: Rows, columns: Columns) -> pa.ChunkedArray | None:
        """For each row the label whose share a stratified split keeps; None if these rows have none."""
        ...

    def label_counts(self, rows: Rows, columns: Columns) -> Counter[str]:
        """How many rows have each label."""
        ...


def split_labels(task: Task, rows: Rows, columns: Columns) -> pa.ChunkedArray | None:
    """The label of each row, if a split keeps the labels' shares."""
    own = getattr(task, "split_labels", None)
    if own is not None:
        return own(rows, columns)
    name = task.label_column(columns)
    return rows.table[name] if name and task.split_by == "label" else None


def label_counts(task: Task, rows: Rows, columns: Columns) -> "Counter[str] | None":
    """How many rows have each label; None if the values of a column are the labels."""
    own = getattr(task, "label_counts", None)
    return None if own is None else own(rows, columns)


class HasLimits(Protocol):
    """Additional members of a task that does more than truncate the end of a row at `max_length`."""

    limits: tuple[Limit, ...]

    def least_limits(self, features: pa.RecordBatch) -> np.ndarray:
        """(features,) the smallest `max_length` that truncates nothing, if it is not the number of tokens."""
        ...


class GeneratesUnlabelled(Protocol):
    """Additional method of a task that must generate for rows without answers, although evaluations compare outputs."""

    def to_predict(self, rows: Rows, columns: Columns) -> Task:
        """The task with which these rows are predicted."""
        ...


def to_predict(task: Task, rows: Rows, columns: Columns) -> Task:
    """The task with which rows are predicted: itself, unless it says otherwise."""
    own = getattr(task, "to_predict", None)
    return task if own is None else own(rows, columns)


def limits(task: Task) -> tuple[Limit, ...]:
    """The limits on the lengths of the task's features."""
    return getattr(task, "limits", (Limit(),))


def draws(task: Task) -> bool:
    """Whether the task implements `DrawsFeatures`."""
    return hasattr(task, "draw")


def draw_feature(
    task: Task, arrays: dict[str, np.ndarray], rng: np.random.Generator, tokenizer: Any
) -> dict[str, np.ndarray]:
    """One feature's lists as drawn by a task of `DrawsFeatures`."""
    drawing: Any = task
    return drawing.draw(arrays, rng, tokenizer)


def generation(task: Task, tokenizer: Any) -> GenerationSettings:
    """How a task of `GeneratesText` generates; must not be called for any other task."""
    writing: Any = task
    return writing.generation(tokenizer)


def trains_apart(task: Task) -> bool:
    """Whether the task trains on different features than it evaluates with."""
    return getattr(task, "trains_apart", False)


def encode_features(
    task: Any, rows: Rows, columns: Columns, tokenizer: Any, facts: Facts, *, to_train: bool
) -> Iterator[pa.RecordBatch]:
    """The features of these rows, for evaluation or for training."""
    features = task.encode(rows, columns, tokenizer, facts)
    return task.for_training(features, facts) if to_train and trains_apart(task) else features


def used_columns(task: Task) -> tuple[Column, ...]:
    """The columns used under the task's settings."""
    return tuple(column for column in task.columns if is_used(column, lambda name: getattr(task.settings, name)))


def spread_columns(
    used: Sequence[Column], given: Mapping[str, str | list[str] | None]
) -> tuple[dict[str, str | None], tuple[Column, ...]]:
    """Role → column as given, and the roles that there are: a role that several columns play is one for each of them.

    Raises InputError if a list is given for a role that only one column can play.
    """
    found, roles = dict(given), list[Column]()
    for part in used:
        if part.instead_of in found and part.name not in found and part.instead_of not in {one.name for one in used}:
            found[part.name] = found.pop(part.instead_of)
        names = _several(part, found)
        if names and part.several:
            found.pop(part.name, None)
            found |= {f"{part.name}_{number}": name for number, name in enumerate(names)}
            roles += [
                msgspec.structs.replace(part, name=f"{part.name}_{number}", usual_names=[])
                for number in range(len(names))
            ]
        else:
            roles.append(part)
    for role, name in found.items():
        if isinstance(name, list):
            raise InputError(
                "data.columns.{role}: this can be a single column, not {names}", f"data.columns.{role}", role=role,
                names=", ".join(name),
            )  # fmt: skip
    return {role: name for role, name in found.items() if not isinstance(name, list)}, tuple(roles)


def _several(part: Column, given: Mapping[str, str | list[str] | None]) -> list[str]:
    """The columns that play a part together: as a list, or numbered as they are kept with a model."""
    listed = given.get(part.name)
    if isinstance(listed, list):
        return listed
    numbered = (given.get(f"{part.name}_{number}") for number in itertools.count())
    return [name for name in itertools.takewhile(lambda name: isinstance(name, str), numbered) if isinstance(name, str)]


def split_key(split: str) -> str:
    """The user's name for the split: the spec key, or a command option such as `--data`."""
    return split if split.startswith("--") else f"data.{split}"


def iterate_chunks(count: int, size: int = 1000) -> Iterable[range]:
    """Row numbers in chunks of `size`, so that a progress bar moves and memory stays small."""
    return (range(start, min(start + size, count)) for start in range(0, count, size))
