"""Text classification with several labels per row, each of them present or not; `text_classification` chooses it."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.heads import IGNORE, Head, HeadFacts
from backend.contract.messages import message
from backend.contract.metrics import Metric
from backend.contract.rpc.predictions import SEPARATOR
from backend.contract.spec import Section
from backend.data.rows import Rows
from backend.metrics import many_labels
from backend.metrics.metric import measure, metrics_of
from backend.tasks import _texts
from backend.tasks._label_sets import (
    SEPARATORS,
    LabelSets,
    find_separator,
    flag_columns,
    free_separator,
    join_labels,
    read_sets,
)
from backend.tasks._labels import COLUMNS, Settings, label_notes, name_labels, order_labels
from backend.tasks.task import Columns, Facts, Outputs, Predictions, SplitBy, Use, average, log_of, split_key

_THRESHOLDS = b"thresholds"
"""In the metadata of predictions: with which thresholds they were made."""
UNTUNED = 0.5
"""The threshold of a label of which too little is known."""
FEWEST = 10
"""Validation rows with a label, and without it, from which its threshold is tuned: fewer fit by chance."""


class ManyLabels:
    """Any number of labels per text or pair; see `backend.tasks.task.Task` for the protocol."""

    title: ClassVar[str] = "Text classification"
    description: ClassVar[str] = "Assigns any number of labels to texts or pairs of texts: topics, emotions, tags."
    head: Head = Head.MULTI_LABEL_CLASSIFICATION
    columns: ClassVar[tuple[Column, ...]] = COLUMNS
    metrics: ClassVar[tuple[Metric, ...]] = metrics_of("text_classification", many_labels.MANY)
    default_metric: ClassVar[str] = "mean_average_precision"
    evaluates_by: Literal["outputs", "generate"] = "outputs"
    defaults: ClassVar[dict[str, Any]] = {"evaluation": {"best_metric": "mean_average_precision"}}
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"text": "The striker was fined for his tax return."},)
    trained_architecture: ClassVar[str] = "ForSequenceClassification"
    row_view: ClassVar[str] = "label"
    hub_filter: ClassVar[str] = "fill-mask"
    Settings: ClassVar[type[Section]] = Settings

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.tunes_predictions = settings.thresholds == "tuned"

    @property
    def split_by(self) -> SplitBy:
        """By the rarest label of each row, so that none is only among the rows held out."""
        return "label"

    def label_column(self, columns: Columns) -> str | None:
        """The column with the labels, or that of the first label."""
        return columns.get("labels") or next(iter(flag_columns(columns)), None)

    def split_labels(self, rows: Rows, columns: Columns) -> pa.ChunkedArray | None:
        """See `StratifiesRows`."""
        found = self._read(rows, columns)
        return None if found is None else pa.chunked_array([pa.array(found.keys(), pa.string())])

    def label_counts(self, rows: Rows, columns: Columns) -> Counter[str]:
        """See `CountsLabels`."""
        found = self._read(rows, columns)
        return Counter() if found is None else found.count()

    def unusable(self, rows: Rows, columns: Columns, use: Use) -> list[tuple[int, str]]:
        """Rows without text or, if labels are needed, whose labels are unknown."""
        found = None if use == "predicting" else read_sets(rows, columns, None)
        unknown = np.zeros(len(rows), dtype=bool) if found is None else ~self._known(found)
        return _texts.list_reasons({"no label": unknown, "no text": _texts.missing_text(rows, columns)})

    def fit(self, rows: Rows, columns: Columns, model_labels: tuple[str, ...] = ()) -> Facts:
        """Labels in id order, what separates them and, if requested, weights. Raises InputError for fewer than two labels."""
        separator, column = self._separator(rows, columns), self.label_column(columns)
        found = read_sets(rows, columns, separator)
        assert found is not None, "the column was chosen from these rows"
        counts, flags = found.count(), flag_columns(columns)
        if len(counts) < 2 and not self.settings.labels:
            raise InputError(
                "data.columns.labels: the column {column} contains a single label ({counts}); "
                "classification needs at least two, so choose another column or more data",
                "data.columns.labels",
                column=repr(column),
                counts=repr(next(iter(counts), "none")),
            )
        if len(counts) > max(1000, len(rows) // 2):
            raise InputError(
                "data.columns.labels: the column {column} contains {counts:,} different labels in {rows:,} rows; they do not "
                "look like labels, so choose another column, or set task.label_separator to what stands between them",
                "data.columns.labels",
                column=repr(column),
                counts=len(counts),
                rows=len(rows),
            )
        labels = self.settings.labels or flags or order_labels(list(counts), model_labels, [])
        joins = separator or free_separator(labels)
        inside = next((label for label in labels if joins is None or joins in label), None)
        if joins is None or inside is not None:
            raise _separator_in_label(inside or labels[0], joins)
        facts: Facts = {"labels": labels, "class_weights": self._class_weights(labels, found), "separator": joins}
        self.check(rows, columns, facts, "train")
        return facts | {"notes": [*label_notes(labels, model_labels), *self._notes(found, separator)]}

    def _separator(self, rows: Rows, columns: Columns) -> str | None:
        return self.settings.label_separator or find_separator(rows, columns)

    def _read(self, rows: Rows, columns: Columns, facts: Facts | None = None) -> LabelSets | None:
        separator = self._separator(rows, columns) if facts is None else facts["separator"]
        return read_sets(rows, columns, separator)

    def _known(self, found: LabelSets) -> np.ndarray:
        """(rows,) bool, where it is known which labels a row has. If no row of many has any, their labels are kept secret."""
        takes_empty = self.settings.rows_without_labels == "none" and found.written.any()
        return np.ones(len(found.numbers), dtype=bool) if takes_empty else found.written

    def _notes(self, found: LabelSets, separator: str | None) -> list[str]:
        notes = []
        if separator and not self.settings.label_separator:
            notes.append(message("the labels of a row are separated by {separator}", separator=repr(separator)))
        if all(len(kind) < 2 for kind in found.kinds):
            notes.append(message("no training row has more than one label; task.labels_per_row may be one"))
        empty = int((~found.written).sum())
        if empty and self.settings.rows_without_labels == "none":
            notes.append(
                message(
                    "{empty} of {rows} training rows have no label, and are taken to have none of them; if nobody knows "
                    "their labels, set task.rows_without_labels to unknown",
                    empty=empty,
                    rows=len(found.numbers),
                )
            )
        return notes

    def facts_of_model(self, labels: tuple[str, ...]) -> Facts:
        """The facts in the configuration of a trained model."""
        separator = self.settings.label_separator or free_separator(labels) or SEPARATORS[0]
        return {"labels": list(labels), "class_weights": None, "separator": separator}

    def _class_weights(self, labels: list[str], found: LabelSets) -> list[float] | None:
        weights = self.settings.class_weights
        if weights is None:
            return None
        if isinstance(weights, dict):
            _check_names("class_weights", weights, labels)
            return [float(weights.get(label, 1.0)) for label in labels]
        # Rows without the label / rows with it: both sides weigh the same. A label without rows changes nothing.
        counts, rows = found.count(), int(self._known(found).sum())
        return [max(1, rows - counts[label]) / counts[label] if counts[label] else 1.0 for label in labels]

    def check(self, rows: Rows, columns: Columns, facts: Facts, split: str) -> None:
        """Raises InputError for a label that training does not have."""
        found = self._read(rows, columns, facts)
        strange = sorted(found.count().keys() - set(facts["labels"])) if found is not None else []
        if found is not None and strange:
            raise InputError(
                "{split}: {rows} has the label {values}, which is not among the labels ({facts}); correct "
                "the row, or list every label in task.labels",
                split_key(split),
                split=split_key(split),
                rows=rows.place(found.first_with(strange[0])),
                values=repr(strange[0]),
                facts=name_labels(facts["labels"]),
            )
        if isinstance(self.settings.thresholds, dict):
            _check_names("thresholds", self.settings.thresholds, facts["labels"])

    def head_facts(self, facts: Facts) -> HeadFacts:
        """A classification head with an output for each label."""
        weights = facts.get("class_weights")
        return HeadFacts(self.head, tuple(facts["labels"]), tuple(weights) if weights else None)

    def encode(self, rows: Rows, columns: Columns, tokenizer: Any, facts: Facts) -> Iterator[pa.RecordBatch]:
        """One feature per row; `has_label` says of each label whether the row has it, -100 if that is unknown."""
        has, known = self._has_labels(rows, columns, facts)
        targets = np.where(known[:, None], has, IGNORE).astype(np.int8)  # (rows, labels)
        return _texts.encode(rows, columns, tokenizer, facts["max_length"], targets)

    def _has_labels(self, rows: Rows, columns: Columns, facts: Facts) -> tuple[np.ndarray, np.ndarray]:
        """(rows, labels) and (rows,) bool: which labels a row has, and whether that is known."""
        found = self._read(rows, columns, facts)
        if found is None:
            return np.zeros((len(rows), len(facts["labels"])), dtype=bool), np.zeros(len(rows), dtype=bool)
        return found.has(facts["labels"]), self._known(found)

    def decode(
        self, outputs: Outputs, features: pa.Table, rows: Rows, columns: Columns, facts: Facts, tokenizer: Any
    ) -> Predictions:
        """Every label's probability, and the labels whose probability reaches their threshold."""
        logits = np.stack(outputs["logits"]).astype(np.float64)  # (rows, labels)
        return self._choose(-np.logaddexp(0, -logits), -np.logaddexp(0, logits), rows, columns, facts)

    def combine(self, each: Sequence[Predictions], rows: Rows, columns: Columns, facts: Facts) -> Predictions:
        """See `Combines`: the labels whose mean probability reaches the mean of the models' thresholds."""
        means = np.stack([average(each, f"probability_{label}") for label in facts["labels"]], axis=1)
        own = [json.loads((one.table.schema.metadata or {}).get(_THRESHOLDS, b"null")) for one in each]
        thresholds = np.mean(own, axis=0).tolist() if all(own) else self.thresholds(facts)
        return self._choose(log_of(means), log_of(1 - means), rows, columns, {**facts, "thresholds": thresholds})

    def _choose(
        self, log_present: np.ndarray, log_absent: np.ndarray, rows: Rows, columns: Columns, facts: Facts
    ) -> Predictions:
        """The predictions by the logarithms of the probabilities that a label is there or not, each (rows, labels)."""
        labels, separator, weights = facts["labels"], facts["separator"], facts.get("class_weights")
        probabilities = np.exp(log_present)
        thresholds = self.thresholds(facts)
        chosen = probabilities >= np.array(thresholds)
        has, known = self._has_labels(rows, columns, facts)
        actual = pa.array(join_labels(has, labels, separator), pa.string(), mask=~known)
        table = {"prediction": pa.array(join_labels(chosen, labels, separator), pa.string()), "actual": actual}
        for index, label in enumerate(labels):
            table[f"probability_{label}"] = pa.array(probabilities[:, index])
        present = log_present * np.array(weights) if weights else log_present
        loss = np.where(has, -present, -log_absent).sum(axis=1)
        marked = pa.table(table).replace_schema_metadata({SEPARATOR: separator, _THRESHOLDS: json.dumps(thresholds)})
        return Predictions(marked, {"loss": (loss * known, known * float(len(labels)))})

    def thresholds(self, facts: Facts) -> list[float]:
        """The probability from which each label is predicted."""
        own, labels = self.settings.thresholds, facts["labels"]
        if isinstance(own, dict):
            return [own.get(label, UNTUNED) for label in labels]
        return facts.get("thresholds") or [UNTUNED] * len(labels) if own == "tuned" else [float(own)] * len(labels)

    def tune(self, predictions: Predictions, rows: Rows, columns: Columns, facts: Facts) -> Facts:
        """See `TunesPredictions`: the thresholds with which each label's F1 is highest on these rows, if there are enough."""
        has, known = self._has_labels(rows, columns, facts)
        chances = [predictions.table[f"probability_{label}"].to_numpy()[known] for label in facts["labels"]]
        tuned = [_best_threshold(chance, has[known, place]) for place, chance in enumerate(chances)]
        if not any(tuned):
            return {}
        note = message(
            "the thresholds of {tuned} of {labels} labels were tuned on the {rows} validation rows, so F1 and exact match on "
            "these rows are a little too good; with too few rows a label keeps 0.5",
            tuned=sum(one is not None for one in tuned),
            labels=len(tuned),
            rows=int(known.sum()),
        )
        return {"thresholds": [UNTUNED if one is None else one for one in tuned], "notes": [note]}

    def score(self, predictions: Predictions, facts: Facts) -> dict[str, float]:
        """Micro, macro, weighted and sample F1, mean average precision, exact match, and the F1 of each label."""
        return measure(self.metrics, predictions, facts, self.settings)

    def trivial_scores(self, rows: Rows, columns: Columns, facts: Facts) -> dict[str, float]:
        """Those of the same labels for every row, of each metric the best; the loss is that of the labels' shares."""
        has, known = self._has_labels(rows, columns, facts)
        has = has[known]
        if not len(has):
            return {}
        counts = np.sort(has.sum(axis=0))[::-1]
        predicted = np.arange(1, len(counts) + 1) * len(has)
        share = counts / len(has)
        inner = share[(share > 0) & (share < 1)]
        found = {
            "f1_micro": (2 * counts.cumsum() / np.maximum(1, predicted + counts.sum())).max(),
            "mean_average_precision": share[share > 0].mean() if share.any() else 0.0,
            "exact_match": np.unique(np.packbits(has, axis=1), axis=0, return_counts=True)[1].max() / len(has),
        }
        if not facts.get("class_weights"):
            found["loss"] = -(inner * np.log(inner) + (1 - inner) * np.log(1 - inner)).sum() / len(share)
        return {name: float(value) for name, value in found.items()}


def _best_threshold(chance: np.ndarray, has: np.ndarray) -> float | None:
    """The threshold with the highest F1, in the middle between two probabilities; None if too few rows have the label, or lack it."""
    positive = int(has.sum())
    if min(positive, len(has) - positive) < FEWEST:
        return None
    order = np.argsort(-chance, kind="stable")
    ordered, right = chance[order], has[order].cumsum()
    f1 = 2 * right / (np.arange(1, len(has) + 1) + positive)
    ends = np.append(ordered[1:] < ordered[:-1], True)  # rows of the same probability are predicted together
    last = int(np.where(ends, f1, -1).argmax())
    below = ordered[last + 1] if last + 1 < len(ordered) else 0.0
    return float((ordered[last] + below) / 2)


def _check_names(setting: str, given: dict[str, float], labels: list[str]) -> None:
    unknown = sorted(set(given) - set(labels))
    if unknown:
        raise InputError(
            "task.{setting}: {unknown} is not a label; the labels are {labels}",
            f"task.{setting}",
            setting=setting,
            unknown=repr(unknown[0]),
            labels=", ".join(labels),
        )


def _separator_in_label(label: str, separator: str | None) -> InputError:
    return InputError(
        "task.label_separator: the label {label} contains {separator}, which is to stand between labels; set it to another "
        "separator, for example //",
        "task.label_separator",
        label=repr(label),
        separator=repr(separator or " ".join(SEPARATORS)),
    )
