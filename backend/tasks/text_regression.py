"""Text regression: one number per text or pair of texts, such as a similarity or a rating."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.heads import Head, HeadFacts
from backend.contract.metrics import Metric
from backend.contract.spec import Section
from backend.data.rows import Rows
from backend.metrics.metric import measure, metrics_of
from backend.tasks import _texts
from backend.tasks.task import Columns, Facts, Outputs, Predictions, SplitBy, Use, average, split_key

_HIDDEN = -1.0
"""What the hub's data sets write in every row of a split whose scores are kept secret (STS-B's test rows)."""


class Settings(Section):
    """The `task` section of text regression."""

    type: Annotated[Literal["text_regression"], Field(title="Task")] = "text_regression"
    """Always `text_regression`."""
    max_length: Annotated[
        int | None, Field(title="Max length", ge=4, le=1_000_000, json_schema_extra={"unit": "tokens"})
    ] = 128
    """Longer texts are truncated to this many tokens. Empty uses the model's limit."""


class TextRegression:
    """One number per text or pair; see `backend.tasks.task.Task` for the protocol."""

    title: ClassVar[str] = "Text regression"
    description: ClassVar[str] = "Predicts a number for texts or pairs of texts: similarity, rating, difficulty."
    head: Head = Head.SEQUENCE_REGRESSION
    columns: ClassVar[tuple[Column, ...]] = (
        *_texts.text_columns("The text to score."),
        Column(
            "label",
            "Score",
            "The number to predict.",
            needed_to_predict=False,
            holds="number",
            usual_names=["score", "label", "labels", "similarity", "rating", "stars", "target", "value", "number"],
        ),
    )
    metrics: ClassVar[tuple[Metric, ...]] = metrics_of("text_regression")
    default_metric: ClassVar[str] = "combined"
    evaluates_by: Literal["outputs", "generate"] = "outputs"
    defaults: ClassVar[dict[str, Any]] = {"evaluation": {"best_metric": "combined"}}
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"text": "A plane is taking off.", "text_pair": "An air plane is taking off."},
        {"text": "A cat sleeps on the sofa.", "text_pair": "Stock prices fell today."},
    )
    trained_architecture: ClassVar[str] = "ForSequenceClassification"
    row_view: ClassVar[str] = "number"
    hub_filter: ClassVar[str] = "fill-mask"
    Settings: ClassVar[type[Section]] = Settings

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @property
    def split_by(self) -> SplitBy:
        """At random."""
        return "random"

    def label_column(self, columns: Columns) -> str | None:
        """None: numbers are not labels to stratify or count."""
        return None

    def unusable(self, rows: Rows, columns: Columns, use: Use) -> list[tuple[int, str]]:
        """Rows without text or, if scores are needed, without a score."""
        scores = _texts.label_values(rows, columns)
        missing = (
            _texts.is_blank(scores) if use != "predicting" and scores is not None else np.zeros(len(rows), dtype=bool)
        )
        return _texts.list_reasons({"no score": missing, "no text": _texts.missing_text(rows, columns)})

    def fit(self, rows: Rows, columns: Columns, model_labels: tuple[str, ...] = ()) -> Facts:
        """Learns nothing. Raises InputError for a score that is not a number, and if all are the same."""
        self.check(rows, columns, {}, "train")
        scores = _as_numbers(rows.table[columns["label"]])
        if np.ptp(scores) == 0:
            raise InputError(
                "data.columns.label: every row of the column {columns} has the score {scores:g}; there is "
                "nothing to learn, so choose another column or more data",
                "data.columns.label",
                columns=repr(columns["label"]),
                scores=scores[0],
            )
        return {}

    def facts_of_model(self, labels: tuple[str, ...]) -> Facts:
        """A model from elsewhere needs no facts."""
        return {}

    def check(self, rows: Rows, columns: Columns, facts: Facts, split: str) -> None:
        """Raises InputError for a score that is not a number."""
        values = _texts.label_values(rows, columns)
        if values is None:
            return
        strange = np.flatnonzero(np.isnan(_as_numbers(values)) & ~_texts.is_blank(values))
        if len(strange):
            row = int(strange[0])
            raise InputError(
                "{split}: {rows} has the score {values}, which is not a number; correct the row, choose "
                "another data.columns.label, or choose the task text_classification if the labels are "
                "words",
                split_key(split),
                split=split_key(split),
                rows=rows.place(row),
                values=repr(values[row].as_py()),
            )

    def head_facts(self, facts: Facts) -> HeadFacts:
        """A head with one output."""
        return HeadFacts(self.head)

    def encode(self, rows: Rows, columns: Columns, tokenizer: Any, facts: Facts) -> Iterator[pa.RecordBatch]:
        """One feature per row; `labels` is the score, NaN if it is unknown."""
        scores = _scores(rows, columns).astype(np.float32)
        return _texts.encode(rows, columns, tokenizer, facts["max_length"], scores)

    def decode(
        self, outputs: Outputs, features: pa.Table, rows: Rows, columns: Columns, facts: Facts, tokenizer: Any
    ) -> Predictions:
        """The number itself; `loss` is the squared error."""
        # float32 as the model returns it: its shortest decimal text is what people want to read in the CSV.
        return _measured(np.asarray(outputs["logits"], dtype=np.float32).reshape(len(rows)), rows, columns)

    def combine(self, each: Sequence[Predictions], rows: Rows, columns: Columns, facts: Facts) -> Predictions:
        """See `Combines`: the mean."""
        return _measured(average(each, "prediction").astype(np.float32), rows, columns)

    def score(self, predictions: Predictions, facts: Facts) -> dict[str, float]:
        """Mean squared error, both correlations and their mean, as for GLUE's STS-B."""
        return measure(metrics_of("text_regression"), predictions, facts, self.settings)

    def trivial_scores(self, rows: Rows, columns: Columns, facts: Facts) -> dict[str, float]:
        """Those of the mean for every row."""
        known = _scores(rows, columns)
        known = known[~np.isnan(known)]
        error = {"loss": float(known.var())} if len(known) else {}
        return {"pearson": 0.0, "spearman": 0.0, "combined": 0.0, **error}


def _measured(predicted: np.ndarray, rows: Rows, columns: Columns) -> Predictions:
    """The predictions with these (rows,) float32 numbers."""
    actual = _scores(rows, columns)
    known = ~np.isnan(actual)
    error = np.where(known, predicted.astype(np.float64) - actual, 0.0)
    table = pa.table({"prediction": predicted, "actual": pa.array(actual, pa.float64(), mask=~known)})
    return Predictions(table, {"loss": (error**2, known.astype(np.float64))})


def _scores(rows: Rows, columns: Columns) -> np.ndarray:
    """(rows,) float64, NaN if the score is unknown or missing, or hidden in all rows."""
    values = _texts.label_values(rows, columns)
    scores = np.full(len(rows), np.nan) if values is None else _as_numbers(values)
    return np.full(len(rows), np.nan) if (scores == _HIDDEN).all() else scores


def _as_numbers(values: pa.ChunkedArray) -> np.ndarray:
    """(rows,) float64, NaN if a cell is missing or not a finite number."""
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        numbers = pc.fill_null(values.cast(pa.float64()), np.nan).to_numpy()
    else:
        numbers = np.array([_number(text) for text in _texts.strings(values).to_pylist()], dtype=np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


TASK = TextRegression
