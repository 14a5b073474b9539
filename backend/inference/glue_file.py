"""Owns `index<TAB>prediction`, the file that the GLUE benchmark's server takes."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from backend.data.rows import Rows
from backend.tasks.task import Predictions

INDEX_NAMES = ("index", "id")
"""The columns of GLUE's test files that number their rows; without one a file's rows are numbered from 0."""


def paths(rows: Rows, path: Path) -> list[Path]:
    """The file, or one for each of several: `mnli.tsv` becomes `mnli_test_matched.tsv` and `mnli_test_mismatched.tsv`."""
    if len(rows.files) == 1:
        return [path]
    return [path.with_name(f"{path.stem}_{Path(file).stem}{path.suffix}") for file in rows.files]


def write(rows: Rows, predictions: Predictions, path: Path) -> list[Path]:
    """Write the prediction of every row under its index: a label by its name, a score with three decimals.

    Beside and renamed: an older file is whole until the new one is.
    """
    written = paths(rows, path)
    answers = predictions.table["prediction"].to_pylist()
    for number, one in enumerate(written):
        own = np.flatnonzero(rows.file_index == number)
        indices = _indices(rows, own, rows.files[number])
        lines = [f"{index}\t{_text(answers[row])}\n" for index, row in zip(indices, own, strict=True)]
        beside = one.with_name(f".{one.name}.{os.getpid()}")
        try:
            beside.write_text("index\tprediction\n" + "".join(lines), encoding="utf-8", newline="\n")
            beside.replace(one)
        finally:
            beside.unlink(missing_ok=True)
    return written


def _indices(rows: Rows, own: np.ndarray, file: str) -> list[Any]:
    """The rows' numbers in their file; one that could not be used leaves its number out."""
    column = next((name for name in INDEX_NAMES if name in rows.table.column_names), None)
    if column:
        return rows.table[column].take(own).to_pylist()
    places = [one.place.rpartition(":") for one in rows.skipped]
    unused = np.array([int(line) for name, _, line in places if name == file], dtype=np.int64)
    lines = rows.lines[own]
    return np.searchsorted(np.sort(np.concatenate([lines, unused])), lines).tolist()


def _text(answer: Any) -> str:
    return f"{answer:.3f}" if isinstance(answer, float) else str(answer)
