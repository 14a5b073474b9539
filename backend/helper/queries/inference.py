"""Answers queries for predictions: of typed rows, a prompt or a whole file; the last model stays loaded."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.contract import consents
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.places import runs_folder
from backend.contract.rpc.generation import GenerationSettings
from backend.contract.rpc.interactive import AddedRow, Answer
from backend.contract.rpc.predictions import CombinedGroup, FileFit, FilePart, PredictedFile
from backend.contract.rpc.protocol import Progress
from backend.contract.run.folder import RunFolder, find_run
from backend.contract.run.group import RunGroup, find_group
from backend.contract.safe_files import user_path
from backend.helper.query import DEVICE_GIVEN_UP, Arguments, Query, ReportProgress, reporting, require

if TYPE_CHECKING:
    from backend.inference.interactive import InteractivePredictor

LISTED = 100
FIRST_CHARACTERS = 120
_DECODING = {field.name for field in fields(GenerationSettings) if field.compare}
"""Settings that an open model accepts; any other means opening the model again."""


def _answer(arguments: Arguments, report: ReportProgress, stop_requested: Callable[[], bool]) -> Answer:
    settings: dict[str, Any] = arguments.get("settings") or {}
    target, task = require(arguments, "target"), str(arguments.get("task") or "")
    opening = {name: value for name, value in settings.items() if name not in _DECODING}
    _remember(report)
    answerer = _open_predictor(target, task, json.dumps(opening, sort_keys=True), _version(target))
    texts: list[str] = []

    def say(piece: str) -> None:
        texts.append(piece)
        report(Progress(done=len(texts), unit="pieces", text=piece))

    decoding = {name: value for name, value in settings.items() if name in _DECODING}
    return answerer.answer(require(arguments, "rows", list), decoding, say, stop_requested)


_present: dict[str, ReportProgress] = {}


def _remember(report: ReportProgress) -> None:
    """Set who receives download progress; not part of the cache key of a loaded model."""
    _present["report"] = report


@lru_cache(maxsize=1)
def _open_predictor(target: str, task: str, settings: str, version: str) -> "InteractivePredictor":
    from backend.hardware import claims
    from backend.inference import interactive  # loads the framework

    changes = [f"task.{name}={json.dumps(value)}" for name, value in json.loads(settings).items()]
    answerer = interactive.InteractivePredictor(target, task or None, changes, reporting(_present["report"]))
    if not answerer.device.startswith("cpu"):
        claims.ClaimWatcher(lambda: os._exit(DEVICE_GIVEN_UP))
    return answerer


def _version(target: str) -> str:
    """A value that changes when a run rewrites or calibrates its model, or the user approves code or withdraws approval."""
    from backend.models.calibration import NAME  # loads numpy

    run = find_run(target, runs_folder())
    folder = run.model if run is not None else user_path(target)
    return " ".join(map(str, (*map(_changed_at, (folder / "config.json", folder / NAME)), consents.changed_at())))


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _generate(arguments: Arguments, report: ReportProgress) -> dict[str, str]:
    from backend.inference import predict  # loads the framework

    settings = arguments.get("settings") or {}
    changes = [f"task.{name}={json.dumps(value)}" for name, value in settings.items() if name != "seed"]
    pieces = []
    for piece in predict.generate(
        require(arguments, "target"), require(arguments, "prompt"), changes=changes, seed=settings.get("seed")
    ):
        pieces.append(piece)
        report(Progress(done=len(pieces), unit="pieces", text=piece))
    return {"text": "".join(pieces)}


def _file_parts(arguments: Arguments, report: ReportProgress) -> FileFit:
    from backend.data.column_summary import cell_text  # these load the data room and a framework
    from backend.inference.new_file import read_new_file
    from backend.preflight.column_guess import ColumnGuess
    from backend.preflight.datasets import make_task
    from backend.tasks.task import spread_columns, used_columns

    folder, data = _run(arguments), _data(arguments)
    changes = setting_changes(arguments.get("settings") or {})
    if (group := RunGroup(folder.path)).exists():
        folder = next(iter(group.made_runs()), folder)
    found = read_new_file(str(folder.path), data, None, changes, reporting(report))
    spec, rows = found.spec, found.rows
    there = rows.table.column_names
    given, used = spread_columns(used_columns(make_task(spec)), spec.data.columns)
    wanted = [column for column in used if column.required or given.get(column.name)]
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


def _predict_file(arguments: Arguments, report: ReportProgress) -> PredictedFile:
    report(Progress(text="Starting"))
    from backend.inference import ensemble, predict  # load the framework
    from backend.inference.predictions_file import free_name

    folder, data = _run(arguments), _data(arguments)
    name = free_name(folder, data)
    csv, parquet = folder.predictions(name), folder.predictions(name, "parquet")
    changes = [
        *column_changes(arguments.get("columns") or {}),
        *setting_changes(arguments.get("settings") or {}),
    ]
    say: Callable[[str], None] = lambda stage: report(Progress(text=stage))  # noqa: E731
    if (group := RunGroup(folder.path)).exists():
        together = ensemble.predict(group, data, csv, changes, reporting(report), parquet, say).together
        assert together is not None
        result = together
    else:
        result = predict.predict(
            str(folder.path), data, csv, None, changes, reporting(report), parquet=parquet, say=say
        )  # fmt: skip
    return PredictedFile(
        name=name,
        csv=str(csv),
        parquet=str(parquet),
        rows=result.rows,
        skipped=[message("{place}: {reason}", place=one.place, reason=one.reason) for one in result.skipped[:LISTED]],
        skipped_count=len(result.skipped),
        metrics=result.metrics,
        intervals=result.intervals,
        seconds=result.timing.seconds,
        notes=list(result.notes),
    )


def _combine_group(arguments: Arguments, report: ReportProgress) -> CombinedGroup:
    """Write the group's own predictions, if its runs have newer ones."""
    from backend.inference import ensemble  # loads the framework

    group = RunGroup(require(arguments, "group"))
    return CombinedGroup(written=[str(path) for path in ensemble.write_predictions(group)])


def column_changes(columns: Mapping[str, Any]) -> list[str]:
    """Role → column (none: no column has it) in the form of `--set`."""
    return [f"data.columns.{part}={json.dumps(column or None)}" for part, column in columns.items()]


def setting_changes(settings: Mapping[str, Any]) -> list[str]:
    """Dotted spec keys and their values in the form of `--set`."""
    return [f"{key}={json.dumps(value)}" for key, value in settings.items()]


def _run(arguments: Arguments) -> RunFolder:
    name = require(arguments, "run")
    if (group := find_group(require(arguments, "run"), runs_folder())) is not None:
        return RunFolder(group.path)
    run = find_run(name, runs_folder())
    if run is None:
        raise InputError("{name}: this run no longer exists", "run", name=name)
    return run.main_folder()


def _data(arguments: Arguments) -> Path:
    return user_path(require(arguments, "data")).absolute()


def _add_row(arguments: Arguments, report: ReportProgress) -> AddedRow:
    from backend import registry
    from backend.contract.spec import validate
    from backend.inference import feedback_file
    from backend.tasks.task import used_columns

    section: dict[str, Any] = require(arguments, "task", dict)
    kind = registry.find("task", str(section.get("type")), "task.type")
    known = {name: value for name, value in section.items() if name in kind.Settings.model_fields}
    return feedback_file.add(
        Path(require(arguments, "path")),
        used_columns(kind(validate(kind.Settings, known, "task"))),
        arguments.get("columns") or {},
        require(arguments, "row", dict),
        arguments.get("right"),
        defuse=bool(arguments.get("defuse")),
        bom=bool(arguments.get("bom")),
    )


QUERIES = (
    Query("answer", _answer, warm_by="target", can_stop=True),
    Query("generate", _generate, takes_device=True),
    Query("add_row", _add_row),
    Query("file_parts", _file_parts),
    Query("predict_file", _predict_file, takes_device=True),
    Query("combine_group", _combine_group),
)
