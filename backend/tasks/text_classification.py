"""Text classification: one label per text or pair of texts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.heads import Head, HeadFacts
from backend.contract.messages import message
from backend.contract.metrics import Metric
from backend.contract.spec import Section
from backend.data.formats.class_labels import names_in_order
from backend.data.rows import Rows
from backend.metrics.metric import measure, metrics_of
from backend.tasks import _texts
from backend.tasks._label_sets import SEPARATORS
from backend.tasks._labels import COLUMNS, MANY, Settings, label_notes, label_words, name_labels, order_labels
from backend.tasks._many_labels import ManyLabels
from backend.tasks.task import Columns, Facts, Outputs, Predictions, SplitBy, Use, average, log_of, split_key

_HIDDEN = "-1"
"""What the hub's data sets write where a label is kept secret (GLUE's test rows), unless it is one of the labels."""


class TextClassification:
    """One label per text or pair; see `backend.tasks.task.Task` for the protocol."""

    title: ClassVar[str] = "Text classification"
    description: ClassVar[str] = "Assigns labels to texts or pairs of texts: sentiment, topic, entailment."
    head: Head = Head.SEQUENCE_CLASSIFICATION
    columns: ClassVar[tuple[Column, ...]] = COLUMNS
    metrics: ClassVar[tuple[Metric, ...]] = metrics_of("text_classification")
    other_metrics: ClassVar[tuple[Metric, ...]] = ManyLabels.metrics
    default_metric: ClassVar[str] = "accuracy"
    evaluates_by: Literal["outputs", "generate"] = "outputs"
    defaults: ClassVar[dict[str, Any]] = {"evaluation": {"best_metric": "accuracy"}}
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"text": "Funny, warm and beautifully played."},
        {"text": "The waiter was rude and the soup was cold.", "text_pair": "The service was poor."},
        {"text": "A man is playing a guitar on the street.", "text_pair": "Nobody is making music."},
    )
    trained_architecture: ClassVar[str] = "ForSequenceClassification"
    row_view: ClassVar[str] = "label"
    hub_filter: ClassVar[str] = "fill-mask"
    Settings: ClassVar[type[Section]] = Settings

    def __new__(cls, settings: Any) -> Any:
        """Several labels per row are a task of their own, with another head and other metrics."""
        return ManyLabels(settings) if settings.labels_per_row == MANY else super().__new__(cls)

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @property
    def split_by(self) -> SplitBy:
        """Stratified, so that every label keeps its share."""
        return "label"

    def label_column(self, columns: Columns) -> str | None:
        """The column with the labels."""
        return columns.get("label")

    def unusable(self, rows: Rows, columns: Columns, use: Use) -> list[tuple[int, str]]:
        """Rows without text or, if labels are needed, without a label."""
        labels = _texts.label_values(rows, columns)
        missing = (
            _texts.is_blank(labels) if use != "predicting" and labels is not None else np.zeros(len(rows), dtype=bool)
        )
        return _texts.list_reasons({"no label": missing, "no text": _texts.missing_text(rows, columns)})

    def fit(self, rows: Rows, columns: Columns, model_labels: tuple[str, ...] = ()) -> Facts:
        """Labels in id order and, if requested, weights. Raises InputError for a single class or unknown labels."""
        column = columns["label"]
        counts = Counter(label_words(rows.table[column]).to_pylist())
        if len(counts) < 2 and not self.settings.labels:
            raise InputError(
                "data.columns.label: the column {column} contains a single label ({counts}); "
                "classification needs at least two, so choose another column or more data",
                "data.columns.label",
                column=repr(column),
                counts=repr(next(iter(counts), "none")),
            )
        if not self.settings.labels and are_scores(counts):
            raise InputError(
                "data.columns.label: the column {column} contains scores such as {counts}, not labels; "
                "choose the task text_regression, or list them in task.labels if each one is a class",
                "data.columns.label",
                column=repr(column),
                counts=next(iter(counts)),
            )
        if len(counts) > max(1000, len(rows) // 2):
            raise InputError(
                "data.columns.label: the column {column} contains {counts:,} different labels in "
                "{rows:,} rows; it does not look like labels, so choose another column",
                "data.columns.label",
                column=repr(column),
                counts=len(counts),
                rows=len(rows),
            )
        labels = self.settings.labels or order_labels(
            list(counts), model_labels, names_in_order(rows.table.schema.field(column))
        )
        facts: Facts = {"labels": labels, "class_weights": self._class_weights(labels, counts)}
        self.check(rows, columns, facts, "train")
        return facts | {"notes": [*label_notes(labels, model_labels), *_several_labels_note(counts)]}

    def facts_of_model(self, labels: tuple[str, ...]) -> Facts:
        """The facts in the configuration of a trained model."""
        return {"labels": list(labels), "class_weights": None}

    def _class_weights(self, labels: list[str], counts: Counter[str]) -> list[float] | None:
        weights = self.settings.class_weights
        if weights is None:
            return None
        if isinstance(weights, dict):
            unknown = sorted(set(weights) - set(labels))
            if unknown:
                raise InputError(
                    "task.class_weights: {unknown} is not a label; the labels are {labels}",
                    "task.class_weights",
                    unknown=repr(unknown[0]),
                    labels=", ".join(labels),
                )
            return [float(weights.get(label, 1.0)) for label in labels]
        # The usual "balanced" rule: rows / (classes × rows of the class); a class without rows changes nothing.
        total = sum(counts.values())
        return [total / (len(labels) * counts[label]) if counts[label] else 1.0 for label in labels]

    def check(self, rows: Rows, columns: Columns, facts: Facts, split: str) -> None:
        """Raises InputError for a label that training does not have."""
        values = _known_labels(rows, columns, facts)
        known = pc.is_in(values, pa.array([*facts["labels"], ""], pa.string()))
        strangers = np.flatnonzero(~known.to_numpy())
        if len(strangers):
            row = int(strangers[0])
            raise InputError(
                "{split}: {rows} has the label {values}, which is not among the labels ({facts}); correct "
                "the row, or list every label in task.labels",
                split_key(split),
                split=split_key(split),
                rows=rows.place(row),
                values=repr(values[row].as_py()),
                facts=name_labels(facts["labels"]),
            )

    def head_facts(self, facts: Facts) -> HeadFacts:
        """A classification head with these labels."""
        weights = facts.get("class_weights")
        return HeadFacts(self.head, tuple(facts["labels"]), tuple(weights) if weights else None)

    def encode(self, rows: Rows, columns: Columns, tokenizer: Any, facts: Facts) -> Iterator[pa.RecordBatch]:
        """One feature per row; `labels` is the label's id, -100 if it is unknown."""
        return _texts.encode(rows, columns, tokenizer, facts["max_length"], _label_ids(rows, columns, facts))

    def decode(
        self, outputs: Outputs, features: pa.Table, rows: Rows, columns: Columns, facts: Facts, tokenizer: Any
    ) -> Predictions:
        """The most likely label and every label's probability."""
        logits = np.stack(outputs["logits"]).astype(np.float64)  # (rows, labels)
        log_probabilities = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        return self._choose(log_probabilities, rows, columns, facts)

    def combine(self, each: Sequence[Predictions], rows: Rows, columns: Columns, facts: Facts) -> Predictions:
        """See `Combines`: the label with the largest mean probability."""
        means = np.stack([average(each, f"probability_{label}") for label in facts["labels"]], axis=1)
        return self._choose(log_of(means), rows, columns, facts)

    def _choose(self, log_probabilities: np.ndarray, rows: Rows, columns: Columns, facts: Facts) -> Predictions:
        """The predictions by (rows, labels) probabilities."""
        labels, weights = facts["labels"], facts.get("class_weights")
        names = np.array(labels, dtype=object)
        table = {
            "prediction": pa.array(names[log_probabilities.argmax(axis=1)], pa.string()),
            "actual": _actual(rows, columns, facts),
        }
        for index, label in enumerate(labels):
            table[f"probability_{label}"] = pa.array(np.exp(log_probabilities[:, index]))
        ids = _label_ids(rows, columns, facts)
        known = np.flatnonzero(ids >= 0)
        row_weights, loss = np.zeros(len(ids)), np.zeros(len(ids))
        row_weights[known] = np.asarray(weights)[ids[known]] if weights else 1.0
        loss[known] = -log_probabilities[known, ids[known]] * row_weights[known]
        return Predictions(pa.table(table), {"loss": (loss, row_weights)})

    def right_outputs(self, rows: Rows, columns: Columns, facts: Facts) -> np.ndarray:
        """See `GivesProbabilities`."""
        return _label_ids(rows, columns, facts)

    def score(self, predictions: Predictions, facts: Facts) -> dict[str, float]:
        """Accuracy, F1 (macro, weighted), Matthews; with two labels also precision, recall and F1 of the second."""
        return measure(metrics_of("text_classification"), predictions, facts, self.settings)

    def trivial_scores(self, rows: Rows, columns: Columns, facts: Facts) -> dict[str, float]:
        """Those of one label for every row, of each metric the best; the loss is that of the labels' shares."""
        counts = Counter(label for label in _known_labels(rows, columns, facts).to_pylist() if label in facts["labels"])
        return constant_scores([counts[label] for label in facts["labels"]], weighted=facts.get("class_weights"))


def _several_labels_note(labels: Iterable[str]) -> list[str]:
    """A note if labels consist of others with a separator between them."""
    known = set(labels)
    joined = [
        label
        for label in sorted(known)
        for separator in SEPARATORS
        if separator in label and {part.strip() for part in label.split(separator)} <= known
    ]
    if not joined:
        return []
    return [
        message(
            "the label {label} consists of other labels; if rows have several labels, set task.labels_per_row to many",
            label=repr(joined[0]),
        )
    ]


def constant_scores(counts: Sequence[int], *, weighted: Any = None) -> dict[str, float]:
    """Of each metric what one and the same label for every row reaches at best, by how often each label occurs."""
    total = sum(counts)
    if not total:
        return {}
    share = np.array(counts) / total
    f1 = 2 * share / (1 + share)  # of the label itself; every other label has 0
    found = {"accuracy": share.max(), "f1_macro": f1.max() / len(share), "f1_weighted": (f1 * share).max()}
    if len(share) == 2:
        found |= {"f1": f1[1], "combined": ((share + np.array([0, f1[1]])) / 2).max()}
    if not weighted:
        known = share[share > 0]
        found["loss"] = float((known * -np.log(known)).sum()) + 0.0
    return {**{name: float(value) for name, value in found.items()}, "matthews": 0.0}


def _known_labels(rows: Rows, columns: Columns, facts: Facts) -> pa.ChunkedArray:
    """Every row's label as text, empty if it is unknown, hidden or missing."""
    values = _texts.label_values(rows, columns)
    if values is None:
        return pa.chunked_array([pa.array([""] * len(rows), pa.string())])
    values = label_words(values)
    return values if _HIDDEN in facts["labels"] else pc.if_else(pc.equal(values, _HIDDEN), "", values)


def _label_ids(rows: Rows, columns: Columns, facts: Facts) -> np.ndarray:
    """(rows,) int64, -100 if the label is unknown."""
    found = pc.index_in(_known_labels(rows, columns, facts), pa.array(facts["labels"], pa.string()))
    return pc.fill_null(found, -100).to_numpy().astype(np.int64)


def _actual(rows: Rows, columns: Columns, facts: Facts) -> pa.ChunkedArray:
    values = _known_labels(rows, columns, facts)
    return pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)


_MAX_FRACTIONS = 20
"""More different numbers with fractions than this are scores and no labels."""


def are_scores(labels: Iterable[str]) -> bool:
    """Whether labels look like scores: too many distinct numbers for classes, some of them fractions."""
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return False
    return len(numbers) > _MAX_FRACTIONS and any(number % 1 for number in numbers)


TASK = TextClassification
