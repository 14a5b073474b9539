"""Owns `burnish tokenizer train`: a new tokenizer from the texts of a file."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.commands.screen import Screen
from backend.contract.errors import InputError
from backend.contract.spec import validated

if TYPE_CHECKING:
    from backend.data.rows import Rows

OPTIONS = ("kind", "use", "vocabulary", "min_frequency")


def add_train(actions: Any) -> None:
    """The words after `burnish tokenizer train`."""
    train = actions.add_parser("train", help="make a new tokenizer from the texts of a file", allow_abbrev=False)
    train.add_argument("--data", metavar="FILE", nargs="+", required=True, help="files, folders or patterns with texts")
    train.add_argument("--column", metavar="NAME", nargs="+", help="the columns with the texts; else every text column")
    train.add_argument(
        "--output", metavar="DIR", type=Path, required=True, help="the new folder, or an existing one without tokenizer"
    )
    train.add_argument("--kind", metavar="KIND", help="byte_bpe, bpe, wordpiece or unigram (byte_bpe)")
    train.add_argument("--use", metavar="USE", help="decoder, encoder or encoder_decoder (decoder)")
    train.add_argument("--vocabulary", metavar="N", type=int, help="most pieces (8000)")
    train.add_argument("--min-frequency", metavar="N", type=int, help="least frequency of a piece (2)")
    train.add_argument("--lowercase", action="store_true", help="make no difference between upper and lower case")
    train.set_defaults(execute_action=_train)


def _train(arguments: Namespace) -> int:
    if (arguments.output / "tokenizer.json").exists():
        raise InputError(f"--output: {arguments.output} holds a tokenizer already; name a new folder")
    from backend.tokenizers.train import TokenizerTraining, train  # loads the tokenizers library

    given: dict[str, Any] = {name: value for name in OPTIONS if (value := getattr(arguments, name)) is not None}
    settings = validated(TokenizerTraining, {**given, "lowercase": arguments.lowercase}, "--tokenizer")
    screen = Screen()
    rows = _rows(arguments.data)
    columns = _columns(rows, arguments.column)
    screen.line(f"{len(rows):,} rows of {', '.join(columns)}")
    made = train(_texts(rows, columns), settings, lambda done, total, unit: None, len(rows) * len(columns))
    made.save_pretrained(arguments.output)
    print(f"{len(made):,} pieces: {arguments.output.absolute()}")
    return 0


def _rows(paths: list[str]) -> "Rows":
    from backend.contract.spec import DataSection
    from backend.data.sources.files import Files, Settings
    from backend.run.material import reading

    rows = Files(Settings()).read("train", DataSection(train=[str(Path(path).absolute()) for path in paths]), reading())
    assert rows is not None
    return rows


def _columns(rows: "Rows", wanted: list[str] | None) -> list[str]:
    import pyarrow as pa

    there = rows.table.column_names
    if missing := [name for name in wanted or [] if name not in there]:
        raise InputError(f"--column: there is no column {missing[0]!r}; there are {', '.join(there)}")
    return wanted or [name for name in there if pa.types.is_string(rows.table.schema.field(name).type)]


def _texts(rows: "Rows", columns: list[str]) -> Any:
    for name in columns:
        for chunk in rows.table[name].chunks:
            yield from (str(text) for text in chunk.to_pylist() if text)
