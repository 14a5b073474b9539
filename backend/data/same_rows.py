"""Owns which rows have the same inputs, within a split and across two, by a number per row."""

from typing import Any

import numpy as np
import pyarrow as pa

from backend.data.sources.source import Report

_CHUNK = 10_000


def row_numbers(table: pa.Table, inputs: list[str], report: Report) -> np.ndarray:
    """(rows,) int64, equal where the inputs are; only within one process, which is all that a look needs."""
    numbers = np.zeros(table.num_rows, dtype=np.int64)
    for start in range(0, table.num_rows, _CHUNK):
        part = table.slice(start, _CHUNK)
        columns = [map(_value, part[name].to_pylist()) for name in inputs]
        numbers[start : start + part.num_rows] = np.fromiter(
            map(hash, zip(*columns, strict=True)), dtype=np.int64, count=part.num_rows
        )
        report(start + part.num_rows, table.num_rows, "rows")
    return numbers


def repeated(numbers: np.ndarray) -> int:
    """Rows whose inputs an earlier row has."""
    return len(numbers) - len(np.unique(numbers))


def shared(numbers: np.ndarray, known: np.ndarray) -> int:
    """Rows whose inputs are among the known ones."""
    return int(np.isin(numbers, known).sum())


def _value(cell: Any) -> Any:
    return cell if isinstance(cell, str | int | float | bool | None) else repr(cell)
