"""Owns `burnish data import`: data of another layout written out as tables, once."""

import re
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from backend.commands.screen import Screen
from backend.contract.errors import InputError
from backend.contract.output_file import check_output_folder, output_errors
from backend.contract.safe_files import user_path


def add_import(actions: Any) -> None:
    """The action `import` beside the others of `burnish data`."""
    parser: ArgumentParser = actions.add_parser(
        "import",
        help="write a language pair as train.tsv and eval.tsv, both directions, each row with its prefix",
        allow_abbrev=False,
    )
    parser.add_argument("kind", choices=("tatoeba",), help="how the data is stored")
    parser.add_argument("data", metavar="FOLDER", help="folder or archive of the pair, or its name such as eng-sin")
    parser.add_argument("--output", metavar="DIR", type=Path, help="where the tables go (beside the data)")
    parser.add_argument("--languages", metavar="A,B", help="what the prefixes call them, such as english,sinhala")
    parser.set_defaults(execute_action=_import)


def _import(arguments: Namespace) -> int:
    from backend.contract.places import cache_folder, is_offline  # these load the data room
    from backend.contract.spec import validated
    from backend.data.prefixed_tables import language_names, write_tables
    from backend.data.sources.source import Reading
    from backend.data.sources.tatoeba import Settings, pair_folder

    where = user_path(arguments.data)
    output = arguments.output or _beside(where)
    check_output_folder(output, "--output")
    languages = language_names(arguments.languages, re.sub(r"(\.tar)?(\.gz)?$", "", where.absolute().name))
    given = {"folder": str(where)} if where.exists() else {"pair": arguments.data}
    screen = Screen()
    try:
        reading = Reading(cache_folder() / "tables", screen.report("bringing the data"), offline=is_offline())
        folder = pair_folder(validated(Settings, given, "data"), reading)
        with output_errors(output, "--output", output):
            output.mkdir(parents=True, exist_ok=True)
            written = write_tables(folder, output, languages, screen.report("writing"))
    finally:
        screen.close()
    for path, rows in written.items():
        print(
            f"{path.absolute()}: " + ("it is there already, and stays as it is" if rows is None else f"{rows:,} rows")
        )
    return 0


def _beside(where: Path) -> Path:
    if where.is_dir():
        return where
    if where.is_file():
        return where.parent
    raise InputError(f"--output: {where} is no folder here, so say where the tables shall go")
