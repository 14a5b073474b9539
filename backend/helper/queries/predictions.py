"""Answers what is asked of a predictions file: its rows for random access, an exported copy, its slices, its calibration."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.contract.arrow_numbers import numbers, whole_numbers
from backend.contract.errors import InputError
from backend.contract.places import cache_folder
from backend.contract.rpc.predictions import (
    AT_THRESHOLD,
    SEPARATOR,
    CalibrationReport,
    PredictionPages,
    SliceReport,
)
from backend.contract.rpc.protocol import ExportedFile, Progress
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import open_unlinked, user_path
from backend.helper.queries.derived_columns import add_all_columns, add_column, apply_threshold
from backend.helper.query import Arguments, Query, ReportProgress, require

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as parquet

    from backend.inference.calibration import LabelledRows
    from backend.inspect.run_comparison import PredictedRows
    from backend.inspect.slices import Slice
    from backend.statistics.calibration import Calibrated

SMALL = 20_000
"""Rows of a file that is read from its Parquet file each time, in some milliseconds."""
KEPT = 3
"""Files whose pages stay on the disk."""
VERSION = 1


def _open_predictions(arguments: Arguments, report: ReportProgress) -> PredictionPages:
    path = Path(require(arguments, "parquet"))
    pages = _pages_of(path, report)
    return PredictionPages(arrow=str(pages), rows=_map_pages(str(pages), pages.stat().st_mtime_ns).num_rows)


def read(path: str, report: ReportProgress = lambda progress: None) -> "pa.Table":
    """All rows of a predictions file with the derived columns. Raises InputError.

    A large file is memory-mapped from the cache, so that nothing is decompressed and little of it is loaded.
    """
    # Not read_table, which would load pandas: that takes longer than a small file.
    with open_file(Path(path)) as file:
        if file.metadata.num_rows <= SMALL:
            return add_all_columns(file.read())
    pages = _pages_of(Path(path), report)
    return _map_pages(str(pages), pages.stat().st_mtime_ns)


def label_separator(path: str) -> str:
    """What stands between the labels of a row; empty if each row has one. Raises InputError."""
    with open_file(Path(path)) as file:
        return separator_of(file.schema_arrow)


def separator_of(schema: "pa.Schema") -> str:
    """What stands between the labels of a row, by the metadata of a table; empty if each row has one."""
    return (schema.metadata or {}).get(SEPARATOR.encode(), b"").decode()


def read_columns(path: str, columns: list[str]) -> "pa.Table":
    """Some columns as stored in the file. Raises InputError."""
    with open_file(Path(path)) as file:
        missing = set(columns) - set(file.schema_arrow.names)
        if missing:
            raise InputError(
                "{path}: these predictions have no {missing} to compare with", path=path, missing=repr(min(missing))
            )
        return file.read(columns=columns)


@contextmanager
def open_file(path: Path) -> Iterator["parquet.ParquetFile"]:
    """A predictions file, opened without following links. Raises InputError, also while it is read."""
    import pyarrow.parquet as parquet

    with _read_errors(path), open_unlinked(path) as source, parquet.ParquetFile(source) as file:
        yield file


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Turn errors from reading a predictions file into one sentence."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InputError(
            "{path}: these predictions cannot be read: {reason}; run burnish predict again", path=path, reason=reason
        ) from None


def version(path: Path) -> str:
    """A value that changes when the file is rewritten. Raises InputError if it is gone."""
    with _read_errors(path), open_unlinked(path) as file:
        status = os.fstat(file.fileno())
        return f"{path.absolute()} {status.st_mtime_ns} {status.st_size}"


def _pages_of(path: Path, report: ReportProgress) -> Path:
    folder = cache_folder() / "pages"
    name = hashlib.sha256(f"{VERSION} {version(path)}".encode()).hexdigest()[:24]
    pages = folder / f"{name}.arrow"
    if not pages.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _forget_older(folder)
        _write(path, pages, report)
    os.utime(pages)
    return pages


def _write(path: Path, pages: Path, report: ReportProgress) -> None:
    import pyarrow as pa

    beside = pages.with_name(f".{pages.name}.{os.getpid()}")
    try:
        with open_file(path) as file:
            total = file.metadata.num_rows
            first = add_all_columns(file.read_row_group(0)).combine_chunks()  # one batch for each row group
            with pa.ipc.new_file(str(beside), first.schema) as writer:
                writer.write_table(first)
                for group in range(1, file.num_row_groups):
                    writer.write_table(add_all_columns(file.read_row_group(group)).combine_chunks())
                    report(Progress(first.num_rows * (group + 1), total, "rows"))
        beside.replace(pages)
    finally:
        beside.unlink(missing_ok=True)


def _forget_older(folder: Path) -> None:
    known = sorted(folder.glob("*.arrow"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in known[KEPT - 1 :]:
        with suppress(OSError):  # another window may have it open, which can prevent deletion
            path.unlink()


@lru_cache(maxsize=2)
def _map_pages(pages: str, written: int) -> "pa.Table":
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(pages)).read_all()


FORMATS = ("csv", "parquet")


@dataclass(frozen=True)
class ExportRequest:
    """What to export: which file, rows and columns (None: all), and how."""

    parquet: str
    output: Path
    rows: Any = None
    """Row numbers in order."""
    columns: list[str] | None = None
    format: str = "csv"
    bom: bool = False
    defuse: bool = False
    threshold: tuple[str, float] | None = None
    """A label and the probability from which it is predicted: one more column says so."""


def _export(arguments: Arguments, report: ReportProgress) -> ExportedFile:
    threshold = arguments.get("threshold")
    request = ExportRequest(
        parquet=require(arguments, "parquet"),
        output=user_path(require(arguments, "output")).absolute(),
        rows=_numbers(arguments.get("indices")),
        columns=[str(name) for name in arguments["columns"]] if arguments.get("columns") else None,
        format=str(arguments.get("format") or "csv"),
        bom=bool(arguments.get("bom", False)),
        defuse=bool(arguments.get("defuse", False)),
        threshold=(str(threshold["label"]), float(threshold["value"])) if threshold else None,
    )
    return export(request, lambda done, total: report(Progress(done, total, "rows")))


def export(request: ExportRequest, report: Callable[[int, int], None] = lambda done, total: None) -> ExportedFile:
    """Write to a temporary file and rename; for a whole file the CSV is identical to the run's. Raises InputError."""
    from backend.inference import predictions_file

    if request.format not in FORMATS:
        raise InputError(
            "{format} cannot be written; choose {formats}", format=repr(request.format), formats=" or ".join(FORMATS)
        )
    table = _export_table(request)
    options = predictions_file.TableOptions(request.format == "csv", request.bom, request.defuse)
    predictions_file.write_table(table, request.output, options, report)
    return ExportedFile(path=str(request.output), rows=table.num_rows)


def _export_table(request: ExportRequest) -> "pa.Table":
    import numpy as np

    with open_file(Path(request.parquet)) as file:
        own = file.schema_arrow.names
    table = read(request.parquet)
    columns = list(request.columns or own)
    for name in columns:
        table = add_column(table, name)
    if request.threshold is not None:
        table = apply_threshold(table, *request.threshold)
        if AT_THRESHOLD in table.column_names and AT_THRESHOLD not in columns:
            columns.insert(columns.index("prediction") + 1 if "prediction" in columns else len(columns), AT_THRESHOLD)
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise InputError(
            "{missing} is not a column of this file; its columns are {own}",
            missing=repr(missing[0]),
            own=", ".join(own),
        )
    table = table.select(columns)
    return table if request.rows is None else table.take(whole_numbers(np.asarray(request.rows)))


def _numbers(indices: Any) -> Any:
    """Row numbers, from a list or from an Arrow file."""
    import pyarrow as pa

    if not isinstance(indices, str):
        return indices
    with pa.memory_map(indices) as source:
        return numbers(pa.ipc.open_file(source).read_all().column(0)).copy()


# Slices

_START = "predictions"


def report_slices(path: str, metric: str | None = None, say: ReportProgress = lambda progress: None) -> SliceReport:
    """How well each part of a predictions file is answered. Raises InputError."""
    from backend.inspect import slices  # loads scipy

    predicted, found = _cut(path, version(Path(path)))
    return slices.report(predicted, metric, found, lambda done, total: say(Progress(done, total, "slices")))


def slice_rows(path: str, number: int) -> "np.ndarray":
    """The numbers of a slice's rows. Raises InputError."""
    found = _cut(path, version(Path(path)))[1]
    if not 0 <= number < len(found):
        raise InputError(
            "there is no slice {number}; the slices are numbered from 0 to {last}", number=number, last=len(found) - 1
        )
    return found[number].rows


@lru_cache(maxsize=2)
def _cut(path: str, written: str) -> "tuple[PredictedRows, list[Slice]]":
    from backend.inspect import slices

    file = Path(path)
    split = file.stem.removeprefix(_START).removeprefix("_") or "validation"
    predicted = slices.open_rows(RunFolder(file.parent), split, read)
    return predicted, slices.cut(predicted)


def _slices(arguments: Arguments, say: ReportProgress) -> SliceReport:
    return report_slices(require(arguments, "parquet"), arguments.get("metric"), say)


# Calibration


def report_calibration(run: RunFolder, action: str = "") -> CalibrationReport:
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
    found, rows = _measure(str(run.path), version(path))
    if action == "fit":
        calibration.save(run.model, found, rows)
    return calibration.describe(run.model, found, rows)


@lru_cache(maxsize=2)
def _measure(run: str, written: str) -> "tuple[Calibrated, LabelledRows]":
    from backend.inference import calibration

    rows = calibration.read_run(RunFolder(Path(run)))
    return calibration.measure(rows), rows


def _calibration(arguments: Arguments, say: ReportProgress) -> CalibrationReport:
    return report_calibration(RunFolder(require(arguments, "run")), str(arguments.get("action") or ""))


QUERIES = (
    Query("calibration", _calibration, warm_by="run"),
    Query("slices", _slices, warm_by="parquet"),
    Query("export_predictions", _export),
    Query("open_predictions", _open_predictions),
)
