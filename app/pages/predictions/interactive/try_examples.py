"""Owns examples to ask about: rows of a run's validation data in a mixed order, or those of the task."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.core.predictions.example_rows import EXAMPLES
from app.core.predictions.interactive_answers import run_of
from app.core.runs.run_task import RunTask
from app.services.prediction_rows import PredictionRows
from backend.contract.run.folder import RunFolder

STRIDE = 7919
"""A prime: neighbouring rows of a file are often alike."""


class Examples:
    """Counts what it has given of each run and task."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def next(self, target: str, task: RunTask) -> tuple[Mapping[str, Any] | None, Mapping[str, str]]:
        """A row, and which column plays which part; no row where there is none."""
        run = RunFolder(run_of(target))
        path = run.predictions("validation", "parquet")
        if task.columns and path.is_file():
            return self._of_file(run, path), task.columns
        rows = EXAMPLES.get(task.kind, [])
        number = self._count(task.kind)
        return (rows[number % len(rows)] if rows else None), {}

    def _of_file(self, run: RunFolder, path: Path) -> Mapping[str, Any] | None:
        try:
            run.check()
            rows = PredictionRows(path)
        except (OSError, ValueError):
            return None
        number = self._count(str(path))
        row = rows.pages.row(number * STRIDE % rows.row_count) if rows.row_count else None
        rows.close()
        return row

    def _count(self, key: str) -> int:
        number = self._given.get(key, 0)
        self._given[key] = number + 1
        return number
