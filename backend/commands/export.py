"""Owns `burnish export`: a run's curves as a table or for TensorBoard, its predictions, or its model as a folder."""

import csv
import os
import sys
from argparse import ArgumentParser, Namespace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from backend.commands import exported_model, exported_predictions
from backend.commands.command import Command
from backend.commands.named_run import named_run
from backend.contract.errors import InputError
from backend.contract.run_folder import RunFolder

if TYPE_CHECKING:
    from backend.contract.events import AnyEvent

STEP_COLUMNS = ("epoch", "loss", "learning_rate", "gradient_norm", "rows", "tokens", "seconds")
NO_STEPS = "this run has no steps yet; wait until it trains"
Curves = dict[int, dict[str, Any]]
"""Step → column → value, as the last attempt that reached the step has it."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or folder of a run")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--csv", metavar="FILE", help="write a CSV file; - writes to stdout")
    target.add_argument("--tensorboard", metavar="DIR", type=Path, help="write an event file for TensorBoard")
    target.add_argument(
        "--predictions", metavar="FILE", type=Path, help="write predictions as .csv or .parquet, all or some of them"
    )
    target.add_argument("--model", metavar="DIR", type=Path, help="copy the model into a new folder")
    exported_model.add_arguments(parser)
    exported_predictions.add_arguments(parser)


def _export(arguments: Namespace) -> int:
    if arguments.predictions:
        return exported_predictions.export(arguments)
    if arguments.model:
        return exported_model.export(arguments)
    if arguments.tensorboard:
        return _export_event_file(arguments)
    curves = curves_of(named_run(arguments.run))
    if not curves:
        raise InputError(f"{arguments.run}: {NO_STEPS}")
    if arguments.csv == "-":
        _write(curves, sys.stdout)
        return 0
    path = Path(arguments.csv).absolute()
    try:
        _write_beside(curves, path)
    except OSError as error:
        raise InputError(f"--csv {path}: it cannot be written: {error.strerror}; name another file") from None
    print(f"{len(curves)} steps: {path}")
    return 0


def _export_event_file(arguments: Namespace) -> int:
    from backend.contract import events
    from backend.run import event_files

    path, folder = named_run(arguments.run).events, arguments.tensorboard.absolute()
    with path.open("rb") if path.is_file() else BytesIO() as file:
        records = event_files.records_of(events.decode_all(file))
    if not records:
        raise InputError(f"{arguments.run}: {NO_STEPS}")
    try:
        written = event_files.write(records, folder)
    except OSError as error:
        raise InputError(
            f"--tensorboard {folder}: it cannot be written: {error.strerror}; name another folder"
        ) from None
    print(f"{len(records)} records: {written}\nSee them with: tensorboard --logdir {folder}")
    return 0


def curves_of(folder: RunFolder) -> Curves:
    """Every step and evaluation of the run; what a resume made void is left out."""
    from backend.contract import events

    curves: Curves = {}
    try:
        with folder.events.open("rb") as file:
            for event in events.decode_all(file):
                _apply(event, curves)
    except FileNotFoundError:
        return {}
    return dict(sorted(curves.items()))


def _apply(event: "AnyEvent", curves: Curves) -> None:
    from backend.contract import events

    if isinstance(event, events.StepFinished):
        curves.setdefault(event.step, {}).update({name: getattr(event, name) for name in STEP_COLUMNS})
    elif isinstance(event, events.EvaluationFinished):
        row = curves.setdefault(event.step, {"epoch": event.epoch})
        row.update({f"{event.split}_{name}": value for name, value in event.metrics.items()})
    elif isinstance(event, events.RunResumed):
        for step in [step for step in curves if step > event.from_step]:
            del curves[step]


def _write(curves: Curves, stream: TextIO) -> None:
    measured = {name for row in curves.values() for name in row} - set(STEP_COLUMNS)
    writer = csv.DictWriter(stream, ["step", *STEP_COLUMNS, *sorted(measured)], lineterminator="\n")
    writer.writeheader()
    for step, row in curves.items():
        writer.writerow({"step": step, **row})


def _write_beside(curves: Curves, path: Path) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8", newline="") as file:
            _write(curves, file)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


COMMANDS = (Command("export", "write a run's curves, predictions or model elsewhere", _arguments, _export),)
