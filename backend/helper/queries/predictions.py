"""Owns `export_predictions`: rows of a predictions file as people take them home, as CSV or Parquet."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.contract.arrow_numbers import numbers, whole_numbers
from backend.contract.errors import InputError
from backend.contract.rpc.predictions import AT_THRESHOLD
from backend.contract.rpc.queries import Exported, Progress
from backend.contract.safe_files import user_path
from backend.helper.queries import prediction_pages
from backend.helper.queries.derived_columns import at_threshold, with_column
from backend.helper.query import Arguments, Query, Tell, needed

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("csv", "parquet")


@dataclass(frozen=True)
class Wishes:
    """What is written: of which file, which rows and columns (None: all), and how."""

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


def _export(arguments: Arguments, tell: Tell) -> Exported:
    threshold = arguments.get("threshold")
    wishes = Wishes(
        parquet=needed(arguments, "parquet"),
        output=user_path(needed(arguments, "output")).absolute(),
        rows=_numbers(arguments.get("indices")),
        columns=[str(name) for name in arguments["columns"]] if arguments.get("columns") else None,
        format=str(arguments.get("format") or "csv"),
        bom=bool(arguments.get("bom", False)),
        defuse=bool(arguments.get("defuse", False)),
        threshold=(str(threshold["label"]), float(threshold["value"])) if threshold else None,
    )
    return export(wishes, lambda done, total: tell(Progress(done, total, "rows")))


def export(wishes: Wishes, report: Callable[[int, int], None] = lambda done, total: None) -> Exported:
    """Write beside and rename; of a whole file the CSV is that of the run, to the byte. Raises InputError."""
    from backend.inference import table_file

    if wishes.format not in FORMATS:
        raise InputError(f"{wishes.format!r} cannot be written; choose {' or '.join(FORMATS)}")
    table = _shaped(wishes)
    options = table_file.Options(wishes.format == "csv", wishes.bom, wishes.defuse)
    table_file.write(table, wishes.output, options, report)
    return Exported(path=str(wishes.output), rows=table.num_rows)


def _shaped(wishes: Wishes) -> "pa.Table":
    import numpy as np

    with prediction_pages.open_file(Path(wishes.parquet)) as file:
        own = file.schema_arrow.names
    table = prediction_pages.read(wishes.parquet)
    columns = list(wishes.columns or own)
    for name in columns:
        table = with_column(table, name)
    if wishes.threshold is not None:
        table = at_threshold(table, *wishes.threshold)
        if AT_THRESHOLD in table.column_names and AT_THRESHOLD not in columns:
            columns.insert(columns.index("prediction") + 1 if "prediction" in columns else len(columns), AT_THRESHOLD)
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise InputError(f"{missing[0]!r} is no column of this file; there are {', '.join(own)}")
    table = table.select(columns)
    return table if wishes.rows is None else table.take(whole_numbers(np.asarray(wishes.rows)))


def _numbers(indices: Any) -> Any:
    """Row numbers, from a list or from an Arrow file."""
    import pyarrow as pa

    if not isinstance(indices, str):
        return indices
    with pa.memory_map(indices) as source:
        return numbers(pa.ipc.open_file(source).read_all().column(0)).copy()


QUERIES = (Query("export_predictions", _export),)
