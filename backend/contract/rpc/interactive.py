"""Answers for the Try tab: predictions for typed rows, the loaded models, and a row added to training data."""

from typing import Any

import msgspec


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `answer {target, task, rows, settings}` and `burnish predict --input`: predictions for typed rows."""

    task: str
    model: str
    device: str
    rows: list[dict[str, Any]]
    """One per typed row: the inputs by role, `prediction`, and the task's own columns as in `predictions.csv`."""
    note: str = ""
    """A sentence worth reading before the answer is believed; empty where there is none."""
    cuts: list[str] = []
    """What of the typed rows the model did not read, in sentences."""
    seconds: float = 0
    memory_mb: float = 0
    """What the process with the open model takes of the machine's memory."""
    device_memory_mb: float | None = None
    """What it has taken of the accelerator's at most; None on a processor."""


class OpenModels(msgspec.Struct, frozen=True):
    """Answer of `open_models {}` and of `let_go {target}`, which unloads idle models (all without a target)."""

    targets: list[str]
    """Runs, checkpoints, folders and hub ids as given in the query."""


class AddedRow(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `add_row {path, task, columns, row, right, defuse, bom}` and of `burnish predict --append`."""

    path: str
    columns: list[str]
    """Of the file, in its order."""
    rows: int | None
    """In the file now; None of a file that is too large to be counted."""
    created: bool = False
    """Whether the file was made for this row."""
