"""Owns `burnish export RUN --predictions FILE`: which rows of a run's predictions are written, in which order, and how."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from backend.commands.named_run import named_run
from backend.contract.errors import InputError
from backend.contract.safe_files import user_path

SUFFIXES = {".csv": "csv", ".parquet": "parquet"}


def add_arguments(parser: ArgumentParser) -> None:
    """The options that belong to `--predictions`."""
    own = parser.add_argument_group("with --predictions")
    own.add_argument(
        "--split",
        metavar="NAME",
        default="validation",
        help="validation, test, or the name of another file (validation)",
    )
    rightness = own.add_mutually_exclusive_group()
    rightness.add_argument("--wrong", action="store_true", help="only rows whose prediction is wrong")
    rightness.add_argument("--right", action="store_true", help="only rows whose prediction is right")
    own.add_argument("--text", metavar="TEXT", help="only rows with this text in a column, whatever its case")
    own.add_argument("--pair", nargs=2, metavar=("ACTUAL", "PREDICTED"), help="only rows of this label pair")
    own.add_argument(
        "--sort", metavar="COLUMN", help="a column, confidence, or error; the highest first with --descending"
    )
    own.add_argument("--descending", action="store_true", help="the highest first")
    own.add_argument("--columns", metavar="A,B", help="only these columns, in this order")
    own.add_argument("--bom", action="store_true", help="begin a CSV with a byte order mark, for spreadsheets")
    own.add_argument("--defuse", action="store_true", help="an apostrophe before cells that begin with = + - @")


def export(arguments: Namespace) -> int:
    """Write them and say where. Raises InputError."""
    from backend.helper.queries import prediction_filter, predictions  # load pyarrow

    run, output = named_run(arguments.run), user_path(arguments.predictions).absolute()
    kind = SUFFIXES.get(output.suffix.lower())
    if kind is None:
        raise InputError(f"--predictions {output.name}: name a file that ends in .csv or .parquet")
    parquet = run.predictions(arguments.split, "parquet")
    if not parquet.is_file():
        there = ", ".join(run.predicted()) or "none yet; a run writes them when it ends"
        raise InputError(f"--split {arguments.split}: {arguments.run} has no such predictions; there are {there}")
    wanted = _wanted(arguments)
    rows = prediction_filter.chosen_rows({"parquet": str(parquet), **wanted}) if wanted else None
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


def _wanted(arguments: Namespace) -> dict[str, Any]:
    wanted: dict[str, Any] = {"right": arguments.right} if arguments.right or arguments.wrong else {}
    if arguments.text:
        wanted["text"] = arguments.text
    if arguments.pair:
        wanted |= dict(zip(("actual", "prediction"), arguments.pair, strict=True))
    if arguments.sort:
        wanted |= {"sort_by": arguments.sort, "descending": arguments.descending}
    return wanted
