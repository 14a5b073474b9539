"""Owns `file_parts` and `predict_file`: a run's predictions of a file that a person drops on it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.places import runs_folder
from backend.contract.rpc.predictions import FileFit, FilePart, PredictedFile
from backend.contract.rpc.queries import Progress
from backend.contract.run.folder import RunFolder, find_run
from backend.contract.safe_files import user_path
from backend.helper.query import Arguments, Query, Tell, needed, reporting

LISTED = 100
FIRST_CHARACTERS = 120


def _parts(arguments: Arguments, tell: Tell) -> FileFit:
    from backend.data.column_summary import cell_text  # these load the data room and a framework
    from backend.inference.spec import spec_of
    from backend.preflight.column_guess import ColumnGuess
    from backend.preflight.datasets import make_source, make_task, reading
    from backend.tasks.task import used_columns

    folder, data = _run(arguments), _data(arguments)
    spec = spec_of(str(folder.path), None, setting_changes(arguments.get("settings") or {}), data)
    rows = make_source(spec).read_file(data, spec.data, reading(reporting(tell)))
    there, given = rows.table.column_names, spec.data.columns
    wanted = [column for column in used_columns(make_task(spec)) if column.required or given.get(column.name)]
    needed_ones = [column for column in wanted if column.required and column.needed_to_predict]
    guesses = ColumnGuess(rows.table).guesses(needed_ones, given)
    parts = []
    for column in wanted:
        guess, own = guesses.get(column.name), given.get(column.name)
        found = guess.column if guess else own if own in there else None
        parts.append(
            FilePart(name=column.name, title=column.title, column=found or "", needed=column in needed_ones)
        )  # fmt: skip
    first = {name: cell_text(rows.table[name][0].as_py(), FIRST_CHARACTERS) for name in there} if len(rows) else {}
    return FileFit(columns=list(there), rows=len(rows), parts=parts, first=first)


def _predict(arguments: Arguments, tell: Tell) -> PredictedFile:
    tell(Progress(text="Starting"))
    from backend.inference import predict  # loads the framework
    from backend.inference.further_file import free_name

    folder, data = _run(arguments), _data(arguments)
    name = free_name(folder, data)
    csv, parquet = folder.predictions(name), folder.predictions(name, "parquet")
    changes = [
        *column_changes(arguments.get("columns") or {}),
        *setting_changes(arguments.get("settings") or {}),
    ]
    result = predict.predict(
        str(folder.path), data, csv, None, changes, reporting(tell), parquet=parquet,
        say=lambda stage: tell(Progress(text=stage)),
    )  # fmt: skip
    return PredictedFile(
        name=name,
        csv=str(csv),
        parquet=str(parquet),
        rows=result.rows,
        skipped=[f"{one.place}: {one.reason}" for one in result.skipped[:LISTED]],
        skipped_count=len(result.skipped),
        metrics=result.metrics,
        seconds=result.timing.seconds,
        notes=list(result.notes),
    )


def column_changes(columns: Mapping[str, Any]) -> list[str]:
    """Part → column (none: no column plays it) as `--set` has them."""
    return [f"data.columns.{part}={json.dumps(column or None)}" for part, column in columns.items()]


def setting_changes(settings: Mapping[str, Any]) -> list[str]:
    """Dotted keys of a spec and their values as `--set` has them."""
    return [f"{key}={json.dumps(value)}" for key, value in settings.items()]


def _run(arguments: Arguments) -> RunFolder:
    name = needed(arguments, "run")
    run = find_run(name, runs_folder())
    if run is None:
        raise InputError(f"{name}: there is no such run any more", "run")
    return run.whole()


def _data(arguments: Arguments) -> Path:
    return user_path(needed(arguments, "data")).absolute()


QUERIES = (
    Query("file_parts", _parts),
    Query("predict_file", _predict, takes_device=True),
)
