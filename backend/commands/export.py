"""`burnish export`: a run's curves, predictions or model as files; `burnish trackers`: its curves in other tools, while it runs."""

import csv
import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from backend.commands.command import Command, add_action, add_changes, add_json, requested_run
from backend.commands.follow import format_metrics
from backend.commands.screen import ProgressScreen
from backend.contract.errors import InputError
from backend.contract.output_file import output_errors, whole_file
from backend.contract.safe_files import user_path
from backend.contract.safe_text import one_line

if TYPE_CHECKING:
    from backend.contract.run.curves import Curves

SUFFIXES = {".csv": "csv", ".parquet": "parquet"}


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or folder of a run")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--csv", metavar="FILE", help="write a CSV file; - writes to stdout")
    target.add_argument("--tensorboard", metavar="DIR", type=Path, help="write an event file for TensorBoard")
    target.add_argument(
        "--predictions", metavar="FILE", type=Path, help="write all or some predictions as .csv or .parquet"
    )
    target.add_argument("--model", metavar="DIR", type=Path, help="copy the model to a new folder")
    target.add_argument(
        "--onnx", metavar="DIR", type=Path, help="write the model as ONNX to a new folder, and prove it"
    )
    _model_arguments(parser)
    _onnx_arguments(parser)
    _predictions_arguments(parser)


def _export(arguments: Namespace) -> int:
    if arguments.predictions:
        return export_predictions(arguments)
    if arguments.model:
        return export_model(arguments)
    if arguments.onnx:
        return _export_onnx(arguments)
    if arguments.tensorboard:
        return _export_event_file(arguments)
    from backend.contract.run.curves import Curves

    curves = Curves(requested_run(arguments.run).events, arguments.run)
    if arguments.csv == "-":
        _write(curves, sys.stdout)
        return 0
    path = Path(arguments.csv).absolute()
    with whole_file(path, "--csv") as beside, beside.open("w", encoding="utf-8", newline="") as file:
        count = _write(curves, file)
    print(f"{count} steps: {path}")
    return 0


def _export_event_file(arguments: Namespace) -> int:
    from backend.contract.run.curves import Curves
    from backend.mirrors import tensorboard

    folder = arguments.tensorboard.absolute()
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--tensorboard {folder} is a file; name a folder")
    curves = Curves(requested_run(arguments.run).events, arguments.run)
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


def _model_arguments(parser: ArgumentParser) -> None:
    """Add the options of `--model`."""
    parser.add_argument(
        "--dtype", choices=("float32", "float16"), default="float32", help="number format of --model (default: float32)"
    )
    parser.add_argument(
        "--merged",
        action="store_true",
        help="with --model: merge an adapter into its base model; RUN may be a checkpoint",
    )


def export_model(arguments: Namespace) -> int:
    """Export the model folder and report its path. Raises InputError."""
    from backend.inference.model_export import export_merged, export_saved

    target = arguments.model.absolute()
    if not arguments.merged:
        export_saved(requested_run(arguments.run), target, arguments.dtype)
    elif arguments.dtype != "float32":
        raise InputError("--dtype: a merged model is written in float32; leave --dtype out, then copy it with --model")
    else:
        export_merged(arguments.run, target)
    print(f"model: {target}")
    return 0


def _onnx_arguments(parser: ArgumentParser) -> None:
    own = parser.add_argument_group("with --onnx")
    own.add_argument("--int8", action="store_true", help="also write a model in 8 bits, if it answers as well")
    own.add_argument(
        "--max-loss",
        metavar="SHARE",
        type=float,
        default=0.01,
        help="the share of the task's metric that the model in 8 bits may lose (default: 0.01)",
    )
    own.add_argument("--json", action="store_true", help="print the result as JSON")


def _export_onnx(arguments: Namespace) -> int:
    """Export as ONNX and report how the files answer the validation rows. Raises InputError."""
    from backend.inference.onnx_export import export_onnx

    screen = ProgressScreen()
    try:
        found = export_onnx(
            requested_run(arguments.run),
            arguments.onnx.absolute(),
            int8=arguments.int8,
            max_loss=arguments.max_loss,
            report=screen.report("comparing"),
            say=screen.line,
        )
    finally:
        screen.close()
    if arguments.json:
        print(json.dumps(msgspec.to_builtins(found)))
        return 0
    print(f"on the {found.rows} validation rows:")
    for one in found.models:
        changed = f"  {one.changed:.1%} of the answers changed" if one.file else ""
        print(f"{one.file or 'PyTorch':<16} {one.megabytes:8.1f} MB {one.rows_per_second:8.0f} rows/s{changed}")
        print(f"{'':<16} {format_metrics(one.metrics, one.intervals)}")
        if one.refused:
            print(f"{'':<16} not kept: {one.refused}")
    print(f"ONNX: {found.folder}")
    return 0


def _predictions_arguments(parser: ArgumentParser) -> None:
    """Add the options of `--predictions`."""
    own = parser.add_argument_group("with --predictions")
    own.add_argument(
        "--split",
        metavar="NAME",
        default="validation",
        help="validation, test, or the name of another file (default: validation)",
    )
    rightness = own.add_mutually_exclusive_group()
    rightness.add_argument("--wrong", action="store_true", help="only rows with a wrong prediction")
    rightness.add_argument("--right", action="store_true", help="only rows with a correct prediction")
    own.add_argument("--text", metavar="TEXT", help="only rows with this text in a column (ignoring case)")
    own.add_argument("--pair", nargs=2, metavar=("ACTUAL", "PREDICTED"), help="only rows with this pair of labels")
    own.add_argument("--sort", metavar="COLUMN", help="sort by a column, confidence, or error")
    own.add_argument("--descending", action="store_true", help="highest first")
    own.add_argument("--columns", metavar="A,B", help="only these columns, in this order")
    own.add_argument("--bom", action="store_true", help="add a UTF-8 byte order mark to a CSV, for Excel")
    own.add_argument(
        "--defuse", action="store_true", help="escape formulas: add an apostrophe before cells starting with = + - @"
    )


def export_predictions(arguments: Namespace) -> int:
    """Export the predictions and report their path. Raises InputError."""
    from backend.helper.queries import prediction_filter, predictions  # load pyarrow

    run, output = requested_run(arguments.run), user_path(arguments.predictions).absolute()
    kind = SUFFIXES.get(output.suffix.lower())
    if kind is None:
        raise InputError(f"--predictions {output.name}: name a file that ends in .csv or .parquet")
    parquet = run.predictions(arguments.split, "parquet")
    if not parquet.is_file():
        there = ", ".join(run.prediction_names()) or "none yet; a run writes them when it finishes"
        raise InputError(f"--split {arguments.split}: {arguments.run} has no such predictions; there are {there}")
    wanted = _filters(arguments)
    rows = prediction_filter.select_rows({"parquet": str(parquet), **wanted}) if wanted else None
    written = predictions.export(
        predictions.ExportRequest(
            parquet=str(parquet),
            output=output,
            rows=rows,
            columns=arguments.columns.split(",") if arguments.columns else None,
            format=kind,
            bom=arguments.bom,
            defuse=arguments.defuse,
        )
    )
    print(f"{written.rows} {'row' if written.rows == 1 else 'rows'}: {Path(written.path)}")
    return 0


def _filters(arguments: Namespace) -> dict[str, Any]:
    wanted: dict[str, Any] = {"right": arguments.right} if arguments.right or arguments.wrong else {}
    if arguments.text:
        wanted["text"] = arguments.text
    if arguments.pair:
        wanted |= dict(zip(("actual", "prediction"), arguments.pair, strict=True))
    if arguments.sort:
        wanted |= {"sort_by": arguments.sort, "descending": arguments.descending}
    return wanted


def _trackers_arguments(parser: ArgumentParser) -> None:
    add_json(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    adding = add_action(actions, "add", "set up a tracker, or change its settings")
    _add_tracker(adding)
    add_changes(adding, "every_run=true")
    _add_tracker(add_action(actions, "remove", "forget a tracker; what was sent stays there"))
    sending = add_action(actions, "send", "send a run's curves until it ends; what was sent before is not sent again")
    sending.add_argument("run", metavar="RUN", help="name or folder of a run")
    _add_tracker(sending)


def _add_tracker(parser: ArgumentParser) -> None:
    parser.add_argument("tracker", metavar="TRACKER", help="tensorboard, mlflow, wandb or trackio")


def _trackers(arguments: Namespace) -> int:
    from backend.contract import spec_file
    from backend.mirrors import mirror  # loads pydantic

    if arguments.action == "send":
        state = mirror.send(
            requested_run(arguments.run), arguments.tracker, lambda words: print(words, file=sys.stderr)
        )
        print(f"sent to {arguments.tracker}: {state.run_id}")
        return 0
    found = mirror.read_trackers()
    if arguments.action is None:
        return _list_trackers({name: one.model_dump() for name, one in found.items()}, arguments.json)
    if arguments.action == "remove":
        mirror.find_tracker(arguments.tracker)
        del found[arguments.tracker]
        mirror.write_trackers(found)
        print(f"{arguments.tracker} is removed; what was sent stays there")
        return 0
    before = found[arguments.tracker].model_dump() if arguments.tracker in found else {}
    found[arguments.tracker] = mirror.check_settings(
        arguments.tracker, spec_file.apply_changes(before, arguments.changes)
    )
    mirror.write_trackers(found)
    print(
        f"{arguments.tracker} is saved in {mirror.trackers_file()}; send a run with: burnish trackers send RUN {arguments.tracker}"
    )
    return 0


def _list_trackers(found: dict[str, dict[str, Any]], as_json: bool) -> int:
    from backend import registry

    if as_json:
        print(json.dumps({"trackers": found}))
        return 0
    if not found:
        print("there are no trackers yet; add one with: burnish trackers add NAME")
    for name, one in registry.all_of("mirror").items():
        if name in found:
            settings = ", ".join(f"{key} {value}" for key, value in found[name].items() if value not in ("", False))
            print(one_line(f"{name:<12} {settings}{', every run' if found[name]['every_run'] else ''}"))
        else:
            print(f"{name:<12} not set up  {one.description}")
    return 0


COMMANDS = (
    Command("export", "export a run's curves, predictions or model", _arguments, _export),
    Command("trackers", "send curves to TensorBoard, MLflow, W&B or Trackio", _trackers_arguments, _trackers),
)
