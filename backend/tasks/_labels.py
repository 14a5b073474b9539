"""Labels of texts: the settings and columns of text classification, and how labels are written, ordered and named."""

from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator, model_validator

from backend.contract.catalog import Column
from backend.contract.messages import message
from backend.contract.spec import Section
from backend.contract.spec.training import ADVANCED, DECODING, LATER
from backend.metrics.many_labels import MANY
from backend.tasks import _texts

Weight = Annotated[float, Field(gt=0, le=1e6)]
Threshold = Annotated[float, Field(ge=0, le=1)]
_WHEN_MANY: dict[str, Any] = {"when": {"labels_per_row": [MANY]}}
_LABEL_NAMES = ["label", "labels", "class", "category", "sentiment", "target", "answer", "stars", "rating", "gold_label", "is_duplicate", "quality"]  # fmt: skip
_LABELS_NAMES = ["labels", "tags", "categories", "genres", "topics", "classes", "emotions", "keywords", "label", "tag", "category", "genre", "topic"]  # fmt: skip


class Settings(Section):
    """The `task` section of text classification."""

    type: Annotated[Literal["text_classification"], Field(title="Task")] = "text_classification"
    """Always `text_classification`."""
    labels_per_row: Annotated[Literal["one", "many"], Field(title="Labels per row", json_schema_extra=LATER)] = "one"
    """`many` lets a row have any number of the labels, or none: a list, a text with a separator, or a column for each
    label."""
    labels: Annotated[list[str] | None, Field(title="Labels", min_length=2, json_schema_extra=ADVANCED)] = None
    """All labels, in the order of their IDs. Empty uses those of the training data, sorted."""
    label_separator: Annotated[
        str | None,
        Field(title="Label separator", min_length=1, max_length=5, json_schema_extra={**LATER, **_WHEN_MANY}),
    ] = None
    """What stands between the labels of a row, also in `predictions.csv`. Empty looks for `;`, `|` or `,` in the
    training data."""
    rows_without_labels: Annotated[
        Literal["none", "unknown"],
        Field(title="Rows without labels", json_schema_extra={**ADVANCED, **LATER, **_WHEN_MANY}),
    ] = "none"
    """`none`: an empty cell means that none of the labels applies. `unknown`: nobody knows its labels, so the row is
    neither trained nor measured."""
    thresholds: Annotated[
        Literal["tuned"] | Threshold | dict[str, Threshold],
        Field(title="Thresholds", json_schema_extra={**DECODING, **_WHEN_MANY}),
    ] = "tuned"
    """The probability from which a label is predicted. `tuned` chooses one for each label after training, with which
    its F1 is highest on the validation rows; a number is for all labels, or set one for each."""
    max_length: Annotated[
        int | None, Field(title="Max length", ge=4, le=1_000_000, json_schema_extra={"unit": "tokens"})
    ] = 128
    """Longer texts are truncated to this many tokens. Empty uses the model's limit."""
    class_weights: Annotated[
        Literal["balanced"] | dict[str, Weight] | None, Field(title="Class weights", json_schema_extra=ADVANCED)
    ] = None
    """`balanced` gives rare labels the same weight as frequent ones; or set a weight above 0 for each label. Empty
    weights every row equally. If rows have many labels, a label's weight counts in the rows that have it."""

    @field_validator("labels", mode="before")
    @classmethod
    def _labels_are_text(cls, labels: Any) -> Any:
        return [str(label) for label in labels] if isinstance(labels, list) else labels

    @field_validator("labels")
    @classmethod
    def _labels_differ(cls, labels: list[str] | None) -> list[str] | None:
        if labels and len(set(labels)) < len(labels):
            raise ValueError(message("the same label occurs in it twice"))
        return labels

    @model_validator(mode="after")
    def _separator_divides(self) -> "Settings":
        """A separator that is part of a label would cut that label."""
        inside = [one for one in self.labels or () if self.label_separator and self.label_separator in one]
        if self.labels_per_row == MANY and inside:
            raise ValueError(
                message(
                    "label_separator: the label {label} contains {separator}; set another separator, or rename the label",
                    label=repr(inside[0]),
                    separator=repr(self.label_separator),
                )
            )
        return self


COLUMNS = (
    *_texts.text_columns("The text to classify."),
    Column(
        "label", "Label", "The label of the row.", holds="label", needed_to_predict=False, usual_names=_LABEL_NAMES,
        when={"labels_per_row": ["one"]}, instead_of="labels",
    ),
    Column(
        "labels", "Labels", "The labels of the row: a list, or a text with a separator; or list a column for each label.",
        holds="labels", needed_to_predict=False, usual_names=_LABELS_NAMES, when={"labels_per_row": [MANY]}, several=True,
        instead_of="label",
    ),
)  # fmt: skip


def label_words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Labels as text: integers without a decimal point, so that 1 and 1.0 are one label; NaN is not a label."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_floating(column.type) and pc.all(pc.equal(column, pc.round(column))).as_py():
        column = column.cast(pa.int64())
    return pc.fill_null(column.cast(pa.string()), "")


def order_labels(labels: list[str], model_labels: tuple[str, ...], data_labels: list[str]) -> list[str]:
    """The checkpoint's order if it has the same labels (ignoring case), else the data's.

    If neither has an order: numbers by value, words by name.
    """
    labels = data_labels if set(labels) <= set(data_labels) else labels
    own = {label.lower(): label for label in labels}
    if len(own) == len(labels) and sorted(own) == sorted(label.lower() for label in model_labels):
        return [own[label.lower()] for label in model_labels]
    if labels is data_labels:
        return labels
    try:
        return sorted(labels, key=float)
    except ValueError:
        return sorted(labels)


def name_labels(labels: list[str]) -> str:
    """The first dozen labels, for people."""
    listed = ", ".join(labels[:12])
    return message("{labels} and {count} more", labels=listed, count=len(labels) - 12) if len(labels) > 12 else listed


def label_notes(labels: list[str], model_labels: tuple[str, ...]) -> list[str]:
    """A note if the checkpoint has other labels."""
    if not model_labels or sorted(map(str.lower, labels)) == sorted(map(str.lower, model_labels)):
        return []
    return [
        message(
            "the model was trained for other labels ({model_labels}); they are ignored, and a new head is "
            "added for {labels}",
            model_labels=name_labels(list(model_labels)),
            labels=name_labels(labels),
        )
    ]
