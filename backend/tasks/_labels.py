"""Owns labels as people write them: as words, in the order of their ids, and what is said of them."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

_MAX_FRACTIONS = 20
"""More different numbers with fractions than this are scores and no labels."""


def as_words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Labels as words: whole numbers without a decimal point, so that 1 and 1.0 are one label; NaN is none."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_floating(column.type) and pc.all(pc.equal(column, pc.round(column))).as_py():
        column = column.cast(pa.int64())
    return pc.fill_null(column.cast(pa.string()), "")


def in_order(labels: list[str], model_labels: tuple[str, ...], data_labels: list[str]) -> list[str]:
    """The checkpoint's order where it names the same labels (whatever their case), else the data's own.

    Where neither has one: numbers by value, words by name.
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


def listed(labels: list[str]) -> str:
    """The first dozen, for people."""
    return ", ".join(labels[:12]) + (f" and {len(labels) - 12} more" if len(labels) > 12 else "")


def are_scores(labels: Iterable[str]) -> bool:
    """More numbers than one would use as classes, some of them with a fraction."""
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return False
    return len(numbers) > _MAX_FRACTIONS and any(number % 1 for number in numbers)


def notes(labels: list[str], model_labels: tuple[str, ...]) -> list[str]:
    """What a person should know where the checkpoint names other labels."""
    if not model_labels or sorted(map(str.lower, labels)) == sorted(map(str.lower, model_labels)):
        return []
    return [
        f"the model was trained for other labels ({listed(list(model_labels))}); they are ignored, and a new head is made "
        f"for {listed(labels)}"
    ]
