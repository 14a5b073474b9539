"""Answers `slices`: how well each part of a predictions file is answered, and which of its rows a slice has."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from backend.contract.errors import InputError
from backend.contract.rpc.predictions import SliceReport
from backend.contract.rpc.protocol import Progress
from backend.contract.run.folder import RunFolder
from backend.helper.queries import predictions
from backend.helper.query import Arguments, Query, ReportProgress, require

if TYPE_CHECKING:
    import numpy as np

    from backend.inspect.run_comparison import PredictedRows
    from backend.inspect.slices import Slice

_START = "predictions"


def report(path: str, metric: str | None = None, say: ReportProgress = lambda progress: None) -> SliceReport:
    """The slices of a predictions file. Raises InputError."""
    from backend.inspect import slices  # loads scipy

    predicted, found = _cut(path, predictions.version(Path(path)))
    return slices.report(predicted, metric, found, lambda done, total: say(Progress(done, total, "slices")))


def rows_of(path: str, number: int) -> "np.ndarray":
    """The numbers of a slice's rows. Raises InputError."""
    found = _cut(path, predictions.version(Path(path)))[1]
    if not 0 <= number < len(found):
        raise InputError(
            "there is no slice {number}; the slices are numbered from 0 to {last}", number=number, last=len(found) - 1
        )
    return found[number].rows


@lru_cache(maxsize=2)
def _cut(path: str, version: str) -> "tuple[PredictedRows, list[Slice]]":
    from backend.inspect import slices

    file = Path(path)
    folder = RunFolder(file.parent)
    split = file.stem.removeprefix(_START).removeprefix("_") or "validation"
    predicted = slices.open_rows(folder, split, predictions.read)
    return predicted, slices.cut(predicted)


def _slices(arguments: Arguments, say: ReportProgress) -> SliceReport:
    return report(require(arguments, "parquet"), arguments.get("metric"), say)


QUERIES = (Query("slices", _slices, warm_by="parquet"),)
