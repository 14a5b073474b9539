"""Multiple choice: which of several endings or answers belongs to a text."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from backend.contract.catalog import Column
from backend.contract.heads import IGNORE, Head, HeadFacts
from backend.contract.messages import message
from backend.contract.metrics import Metric
from backend.contract.spec import Section
from backend.contract.spec.training import ADVANCED
from backend.data.rows import Rows
from backend.metrics.metric import Sums, measure, metrics_of
from backend.tasks._choices import (
    CHOICE_COLUMNS,
    Written,
    check_count,
    check_labels,
    detect_label_style,
    read_choices,
    read_in_parts,
)
from backend.tasks._texts import is_blank, list_reasons, strings
from backend.tasks.task import (
    Columns,
    Facts,
    Limit,
    Outputs,
    Predictions,
    SplitBy,
    Use,
    average,
    iterate_chunks,
    log_of,
)


class Settings(Section):
    """The `task` section of multiple choice."""

    type: Annotated[Literal["multiple_choice"], Field(title="Task")] = "multiple_choice"
    """Always `multiple_choice`."""
    max_length: Annotated[
        int | None, Field(title="Max length", ge=4, le=1_000_000, json_schema_extra={"unit": "tokens"})
    ] = 128
    """A text combined with one of its choices is truncated to this many tokens. Empty uses the model's limit."""
    first_choice: Annotated[Literal["auto", "0", "1"], Field(title="Choice numbering", json_schema_extra=ADVANCED)] = (
        "auto"
    )
    """Whether numeric labels start at 0 or 1. `auto` detects it from the smallest or largest label."""


class MultipleChoice:
    """One of several choices; see `backend.tasks.task.Task` for the protocol."""

    title: ClassVar[str] = "Multiple choice"
    description: ClassVar[str] = "Picks the right one of several endings or answers for a text."
    head: Head = Head.MULTIPLE_CHOICE
    columns: ClassVar[tuple[Column, ...]] = (
        Column("text", "Text", "The text before every choice: a context or a question.", holds="text", usual_names=["text", "sent1", "ctx_a", "premise", "context", "article", "passage", "question", "goal", "ctx", "sentence", "prompt", "query"]),
        Column(
            "text_pair", "Text that every choice starts with", "The text that every choice starts with.", required=False,
            usual_names=["text_pair", "sent2", "ctx_b", "question"], holds="text",
        ),
        *CHOICE_COLUMNS,
        Column("label", "Correct choice", "The number, letter or text of the correct choice.", needed_to_predict=False, usual_names=["label", "answerkey", "answer", "correct", "target", "gold"]),
    )  # fmt: skip
    metrics: ClassVar[tuple[Metric, ...]] = metrics_of("multiple_choice")
    default_metric: ClassVar[str] = "accuracy"
    evaluates_by: Literal["outputs", "generate"] = "outputs"
    limits: ClassVar[tuple[Limit, ...]] = (Limit(what=message("texts with their longest choices")),)
    defaults: ClassVar[dict[str, Any]] = {"evaluation": {"best_metric": "accuracy"}}
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "text": "She opened her umbrella",
            "choices": ["because it began to rain.", "because the sun went down.", "and ate it with a spoon."],
        },
        {"text": "The glass fell to the floor", "choices": ["and broke.", "and flew away.", "and sang a song."]},
    )
    trained_architecture: ClassVar[str] = "ForMultipleChoice"
    row_view: ClassVar[str] = "choice"
    hub_filter: ClassVar[str] = "fill-mask"
    Settings: ClassVar[type[Section]] = Settings

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @property
    def split_by(self) -> SplitBy:
        """At random: the position of the right choice has no meaning."""
        return "random"

    def label_column(self, columns: Columns) -> str | None:
        """The column with the right choice."""
        return columns.get("label")

    def unusable(self, rows: Rows, columns: Columns, use: Use) -> list[tuple[int, str]]:
        """Rows without text or, if labels are needed, without a label. Raises InputError if no column holds choices."""
        read_choices(rows, columns, range(0))
        found = {"no text": is_blank(rows.table[columns["text"]])}
        if use != "predicting":
            found["no label"] = is_blank(rows.table[columns["label"]])
        return list_reasons(found)

    def fit(self, rows: Rows, columns: Columns, model_labels: tuple[str, ...] = ()) -> Facts:
        """The number of choices and the form of the labels. Raises InputError that names a row that differs."""
        count = check_count(rows, columns, "train", None)
        written = detect_label_style(rows, columns, count, self.settings.first_choice)
        check_labels(rows, columns, "train", written)
        return {"choices": count, "labels_are": written, "notes": [written.sentence]}

    def facts_of_model(self, labels: tuple[str, ...]) -> Facts:
        """The form of the labels is not stored in a model; indices from 0 are usual."""
        return {"choices": None, "labels_are": Written.FROM_0}

    def check(self, rows: Rows, columns: Columns, facts: Facts, split: str) -> None:
        """Raises InputError for a row with another number of choices, or whose label is not one of them."""
        check_count(rows, columns, split, facts["choices"])
        check_labels(rows, columns, split, Written(facts["labels_are"]))

    def head_facts(self, facts: Facts) -> HeadFacts:
        """A head with one score per choice."""
        return HeadFacts(self.head)

    def encode(self, rows: Rows, columns: Columns, tokenizer: Any, facts: Facts) -> Iterator[pa.RecordBatch]:
        """One feature per row: its text with each choice, one after another; `choice_lengths` says where each ends.

        `labels` is the right choice's index, -100 if it is unknown.
        """
        written, count = Written(facts["labels_are"]), check_count(rows, columns, "--data", facts["choices"])
        for chunk in iterate_chunks(len(rows)):
            choices = read_choices(rows, columns, chunk)
            endings = [choice for one in choices.endings() for choice in one]
            texts = strings(rows.table[columns["text"]].slice(chunk.start, len(chunk))).to_pylist()
            repeated = [text for text in texts for _ in range(count)]
            encoded = tokenizer(
                repeated, endings, truncation="longest_first", max_length=facts["max_length"],
                return_attention_mask=False,
            )  # fmt: skip
            lengths = np.array([len(one) for one in encoded["input_ids"]], np.int32)
            arrays = {
                "row": pa.array(np.arange(chunk.start, chunk.stop, dtype=np.int32)),
                "part": pa.array(np.zeros(len(chunk), dtype=np.int32)),
                "choice_lengths": pa.array(list(lengths.reshape(-1, count)), pa.list_(pa.int32())),
                "labels": pa.array(_ids(choices.numbers(written))),
            }
            for name in ("input_ids", "token_type_ids"):
                if name in encoded:
                    arrays[name] = pa.array(_join_choices(encoded[name], count), pa.list_(pa.int32()))
            yield pa.RecordBatch.from_pydict(arrays)

    def decode(
        self, outputs: Outputs, features: pa.Table, rows: Rows, columns: Columns, facts: Facts, tokenizer: Any
    ) -> Predictions:
        """The most likely choice, in the form of the labels, and every choice's probability."""
        logits = np.stack(outputs["logits"]).astype(np.float64)  # (rows, choices)
        log_probabilities = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        return self._choose(log_probabilities, rows, columns, facts)

    def combine(self, each: Sequence[Predictions], rows: Rows, columns: Columns, facts: Facts) -> Predictions:
        """See `Combines`: the choice with the largest mean probability."""
        names = [name for name in each[0].table.column_names if name.startswith("probability_")]
        return self._choose(log_of(np.stack([average(each, name) for name in names], axis=1)), rows, columns, facts)

    def _choose(self, log_probabilities: np.ndarray, rows: Rows, columns: Columns, facts: Facts) -> Predictions:
        """The predictions by (rows, choices) probabilities."""
        best, written = log_probabilities.argmax(axis=1), Written(facts["labels_are"])
        ids, called, actual = [np.zeros(0, np.int64)], [], []
        for part in read_in_parts(rows, columns):
            ids.append(_ids(part.numbers(written)))
            called += part.label_texts(best[len(called) : len(called) + len(part.texts)].tolist(), written)
            actual += [None if number == IGNORE else label for number, label in zip(ids[-1], part.labels, strict=True)]
        ids = np.concatenate(ids)
        known = np.flatnonzero(ids != IGNORE)
        loss, is_known = np.zeros(len(ids)), (ids != IGNORE).astype(np.float64)
        loss[known] = -log_probabilities[known, ids[known]]
        table = {"prediction": pa.array(called, pa.string()), "actual": pa.array(actual, pa.string())}
        for index in range(log_probabilities.shape[1]):
            table[f"probability_{index}"] = pa.array(np.exp(log_probabilities[:, index]))
        return Predictions(
            pa.table(table), {"loss": (loss, is_known), "accuracy": ((best == ids).astype(np.float64), is_known)}
        )

    def sums_of(self, table: pa.Table, rows: Rows, columns: Columns) -> Sums:
        """See `RebuildsSums`."""
        right = pc.equal(table["prediction"], table["actual"])
        known = right.is_valid().to_numpy().astype(np.float64)
        return {"accuracy": (pc.fill_null(right, False).to_numpy().astype(np.float64), known)}

    def right_outputs(self, rows: Rows, columns: Columns, facts: Facts) -> np.ndarray:
        """See `GivesProbabilities`."""
        written = Written(facts["labels_are"])
        return np.concatenate([_ids(part.numbers(written)) for part in read_in_parts(rows, columns)])

    def score(self, predictions: Predictions, facts: Facts) -> dict[str, float]:
        """Loss, and the share of rows whose right choice was the most likely."""
        return measure(metrics_of("multiple_choice"), predictions, facts, self.settings)

    def trivial_scores(self, rows: Rows, columns: Columns, facts: Facts) -> dict[str, float]:
        """Those of the choice that is right most often, counted by its place."""
        ids = self.right_outputs(rows, columns, facts)
        known = ids[ids != IGNORE]
        return {"accuracy": float(np.bincount(known).max() / len(known))} if len(known) else {}


def _ids(numbers: list[int | None]) -> np.ndarray:
    """(rows,) int64, -100 if the label is unknown or missing."""
    return np.array([IGNORE if number is None else number for number in numbers], dtype=np.int64)


def _join_choices(lists: list[list[int]], count: int) -> list[list[int]]:
    starts = range(0, len(lists), count)
    return [[number for one in lists[start : start + count] for number in one] for start in starts]


TASK = MultipleChoice
