"""Calibrates a trained classifier: fits a temperature on rows with known labels, measures it, and saves it in `model/`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.output_file import output_errors
from backend.contract.rpc.predictions import CalibrationReport
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import open_unlinked
from backend.data.sources.source import Report
from backend.inspect.run_comparison import PredictedRows, open_run
from backend.models import calibration as calibration_file
from backend.preflight.datasets import ignore_progress
from backend.statistics.calibration import HIGHEST, LOWEST, Calibrated, calibrate
from backend.statistics.resampling import group_numbers
from backend.tasks.task import log_of, right_outputs

FEWEST_ROWS = 50
"""Rows on which a temperature can be fitted and measured."""
_OWN, _TAKEN = "probability_", "predicted_"


@dataclass(frozen=True)
class LabelledRows:
    """What a model says of rows with known labels."""

    log_probabilities: np.ndarray
    """(rows, labels)"""
    actual: np.ndarray
    """(rows,) label numbers."""
    groups: np.ndarray | None


def read_run(run: RunFolder) -> LabelledRows:
    """The validation rows, as the training run predicted them when it ended. Raises InputError."""
    return _labelled(open_run(run, run.name, _read))


def _read(path: str) -> pa.Table:
    with open_unlinked(Path(path)) as source, parquet.ParquetFile(source) as file:
        return file.read()


def answer_rows(
    target: str, data: Path, changes: list[str], report: Report = ignore_progress, say: Callable[[str], None] = print
) -> LabelledRows:
    """Another labelled file, predicted without the calibration that the model may have. Raises InputError, RunFailed."""
    from backend.inference.predict import answer_file  # loads the framework, which takes seconds

    answered = answer_file(target, data, None, changes, report, say, labelled=True, calibrated=False)
    session, rows = answered.session, answered.rows
    actual = right_outputs(session.task, rows, session.columns, session.facts)
    column = session.group_column(rows)
    groups = None if column is None else group_numbers(rows.table[column])
    return _known(answered.predictions.table, actual, groups)


def _labelled(predicted: PredictedRows) -> LabelledRows:
    actual = right_outputs(predicted.task, predicted.rows, predicted.columns, dict(predicted.facts))
    return _known(predicted.outputs, actual, predicted.groups)


def _known(outputs: pa.Table, actual: np.ndarray | None, groups: np.ndarray | None) -> LabelledRows:
    """The rows whose label is known. Raises InputError if these are too few, or if there are no probabilities."""
    names = [name for name in outputs.column_names if name.removeprefix(_TAKEN).startswith(_OWN)]
    if actual is None or len(names) < 2:
        raise InputError("only a task that predicts one label per row, with a probability for each, can be calibrated")
    probabilities = np.stack([outputs[name].to_numpy() for name in names], axis=1)  # (rows, labels)
    known = np.flatnonzero((actual >= 0) & np.isfinite(probabilities).all(axis=1))
    if len(known) < FEWEST_ROWS:
        raise InputError(
            "{rows} rows with known labels are too few to calibrate a model; use {fewest} or more",
            rows=len(known),
            fewest=FEWEST_ROWS,
        )
    own = None if groups is None else np.unique(groups[known], return_inverse=True)[1]
    return LabelledRows(log_of(probabilities[known]), actual[known], own)


def measure(rows: LabelledRows) -> Calibrated:
    """What a temperature does to the probabilities of these rows. Raises InputError if none can be fitted."""
    found = calibrate(rows.log_probabilities, rows.actual, rows.groups)
    if found.temperature <= LOWEST:
        raise InputError(
            "these {rows} rows are answered so well that no temperature can be fitted; use more rows, or harder ones",
            rows=len(rows.actual),
        )
    if found.temperature >= HIGHEST:
        raise InputError(
            "the model's probabilities say nothing about these rows, so no temperature can be fitted; train it longer first"
        )
    return found


def save(model: Path, found: Calibrated, rows: LabelledRows) -> Path:
    """Let the model in this folder predict with the fitted temperature; returns the file. Raises InputError."""
    with output_errors(model, "", model):
        return calibration_file.write(model, calibration_file.of_temperature(found.temperature, len(rows.actual)))


def remove(model: Path) -> bool:
    """Let the model predict as it was trained; whether it had a calibration. Raises InputError."""
    with output_errors(model, "", model):
        return calibration_file.remove(model)


def describe(model: Path, found: Calibrated, rows: LabelledRows) -> CalibrationReport:
    """The result, and what the model in this folder has now. Raises InputError if that is damaged."""
    own = calibration_file.read(model)
    return CalibrationReport(
        temperature=found.temperature,
        applied=own.temperature if own is not None else None,
        before=found.before,
        after=found.after,
        change=found.change,
        change_interval=found.change_interval,
        rows=len(rows.actual),
        parts=found.parts,
        accuracy=float((rows.log_probabilities.argmax(axis=1) == rows.actual).mean()),
        sentence=_say(found),
    )


def _say(found: Calibrated) -> str:
    values = {"before": found.before.error, "after": found.after.error}
    low, high = found.change_interval or (-np.inf, np.inf)
    if high < 0:
        return message(
            "a temperature lowers the expected calibration error from {before:.3f} to {after:.3f}, by more than chance",
            **values,
        )
    if low > 0:
        return message(
            "a temperature raises the expected calibration error from {before:.3f} to {after:.3f}; leave the model as it is",
            **values,
        )
    return message(
        "a temperature changes the expected calibration error from {before:.3f} to {after:.3f}, which may be chance",
        **values,
    )
