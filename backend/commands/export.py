"""Runs `burnish export`: a run's curves as a table or for TensorBoard, its predictions, or its model as a folder."""

import csv
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from backend.commands import exported_model, exported_predictions
from backend.commands.command import Command
from backend.commands.named_run import named_run
from backend.contract.errors import InputError
from backend.contract.output_file import output_errors, whole_file

if TYPE_CHECKING:
    from backend.mirrors.curves import Curves


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
    from backend.mirrors.curves import Curves

    curves = Curves(named_run(arguments.run).events, arguments.run)
    if arguments.csv == "-":
        _write(curves, sys.stdout)
        return 0
    path = Path(arguments.csv).absolute()
    with whole_file(path, "--csv") as beside, beside.open("w", encoding="utf-8", newline="") as file:
        count = _write(curves, file)
    print(f"{count} steps: {path}")
    return 0


def _export_event_file(arguments: Namespace) -> int:
    from backend.mirrors import tensorboard
    from backend.mirrors.curves import Curves

    folder = arguments.tensorboard.absolute()
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--tensorboard {folder} is a file; name a folder")
    curves = Curves(named_run(arguments.run).events, arguments.run)
    with output_errors(folder, "--tensorboard"):
        written = tensorboard.write(curves, folder)
    print(f"{written.records} records: {written.path}\nSee them with: tensorboard --logdir {folder}")
    return 0


def _write(curves: "Curves", stream: TextIO) -> int:
    columns, count = curves.columns, 0
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for step, row in curves.rows():
        count += 1
        row["step"] = step
        writer.writerow(map(row.get, columns))
    return count


COMMANDS = (Command("export", "write a run's curves, predictions or model elsewhere", _arguments, _export),)
