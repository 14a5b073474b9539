"""Answers `calibration`: how far a run's probabilities come true, and saves or removes the temperature that improves them."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from backend.contract.errors import InputError
from backend.contract.rpc.predictions import CalibrationReport
from backend.contract.run.folder import RunFolder
from backend.helper.queries import predictions
from backend.helper.query import Arguments, Query, ReportProgress, require

if TYPE_CHECKING:
    from backend.inference.calibration import LabelledRows
    from backend.statistics.calibration import Calibrated


def report(run: RunFolder, action: str = "") -> CalibrationReport:
    """What a temperature does to a run's validation rows; `action` is empty, `fit` or `remove`. Raises InputError."""
    from backend.inference import calibration  # loads the framework

    run.check()
    if action == "remove":
        calibration.remove(run.model)
    path = run.predictions("validation", "parquet")
    if not path.is_file():
        raise InputError(
            "{name} has no predictions of validation rows to calibrate it with; name a labelled file with --data",
            name=run.name,
        )
    found, rows = _measure(str(run.path), predictions.version(path))
    if action == "fit":
        calibration.save(run.model, found, rows)
    return calibration.describe(run.model, found, rows)


@lru_cache(maxsize=2)
def _measure(run: str, version: str) -> "tuple[Calibrated, LabelledRows]":
    from backend.inference import calibration

    rows = calibration.read_run(RunFolder(Path(run)))
    return calibration.measure(rows), rows


def _calibration(arguments: Arguments, say: ReportProgress) -> CalibrationReport:
    return report(RunFolder(require(arguments, "run")), str(arguments.get("action") or ""))


QUERIES = (Query("calibration", _calibration, warm_by="run"),)
