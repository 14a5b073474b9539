"""Owns `burnish tokenizer vocab`: the pieces or merges of a tokenizer, searched, sorted, and written as a table."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.commands.command import add_json
from backend.commands.screen import Screen
from backend.contract.errors import InputError
from backend.contract.places import is_offline
from backend.contract.safe_files import user_path
from backend.contract.tokens.vocabulary import TYPES

if TYPE_CHECKING:
    import pyarrow as pa

    from backend.tokenizers.vocabulary.tables import VocabularyTables

SHOWN = 50
"""Rows on a screen, unless another number is asked for."""
NOT_SPECIAL = tuple(name for name in TYPES if name != "special")


def add_vocab(actions: Any) -> None:
    """The words after `burnish tokenizer vocab`."""
    parser = actions.add_parser("vocab", help="show, search and export the pieces of a tokenizer", allow_abbrev=False)
    parser.add_argument("tokenizer", metavar="TOKENIZER", help="folder, tokenizer.json, hub id or run")
    parser.add_argument("--revision", default="main", help="branch, tag or commit of a hub id")
    parser.add_argument("--search", metavar="TEXT", default="", help="only rows with this text, whatever its case")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--regex", action="store_true", help="--search is a regular expression (RE2)")
    way.add_argument("--id", action="store_true", help="--search is a list of ids and ranges such as 5,10-20")
    way.add_argument("--script", action="store_true", help="--search is a Unicode script such as Sinhala or Han")
    parser.add_argument("--non-special", action="store_true", help="leave out special tokens")
    parser.add_argument("--type", choices=TYPES, action="append", help="only pieces of this type (may be repeated)")
    parser.add_argument("--merges", action="store_true", help="the merges of a BPE instead of the pieces")
    parser.add_argument("--sort", metavar="COLUMN", default="", help="sort by a column of the table")
    parser.add_argument("--descending", action="store_true", help="the largest first")
    parser.add_argument("--data", metavar="FILE", nargs="+", help="count how often each piece occurs in these texts")
    parser.add_argument("--column", metavar="NAME", default="", help="the column of --data (the one with most text)")
    parser.add_argument("--limit", metavar="N", type=int, help=f"most rows; on a screen {SHOWN}, otherwise all")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write a CSV file")
    parser.add_argument(
        "--defuse", action="store_true", help="put an apostrophe before cells that a spreadsheet would run"
    )
    add_json(parser)
    parser.set_defaults(execute_action=_vocab)


def _vocab(arguments: Namespace) -> int:
    from backend.tokenizers.vocabulary.search import Search, find

    read, table = _table(arguments)
    by = next((name for name in ("regex", "id", "script") if getattr(arguments, name)), "text")
    if by != "text" and not arguments.search.strip():
        raise InputError(f"--{by}: it says what --search is; give --search too")
    types = tuple(arguments.type or ()) or (NOT_SPECIAL if arguments.non_special else ())
    if arguments.non_special:
        types = tuple(name for name in types if name != "special")
    rows = find(table, Search(arguments.search, by, types, arguments.sort, arguments.descending))  # type: ignore[arg-type]
    if arguments.limit is not None and arguments.limit < 0:
        raise InputError(f"--limit: {arguments.limit} is no number of rows; give 0 or more")
    shown = table.take(rows[: arguments.limit])
    if arguments.output is not None:
        return _write(shown, arguments)
    if arguments.json:
        name = "merges" if arguments.merges else "pieces"
        facts = {
            "kind": read.kind,
            "size": read.size,
            "missing": read.missing,
            "types": read.types(),
            "found": len(rows),
        }
        print(json.dumps({**facts, name: shown.to_pylist()}, ensure_ascii=False))
        return 0
    if arguments.limit is None and sys.stdout.isatty():
        shown = shown.slice(0, SHOWN)
    _print(shown)
    more = f", {shown.num_rows:,} shown (--limit, --output)" if shown.num_rows < len(rows) else ""
    noun = "merges" if arguments.merges else "rows" if read.missing else "pieces"
    spare = f", {read.missing:,} of them ids without a piece" if noun == "rows" else ""
    print(f"{len(rows):,} of {table.num_rows:,} {noun}{spare} ({read.kind}){more}")
    return 0


def _table(arguments: Namespace) -> "tuple[VocabularyTables, pa.Table]":
    from backend.tokenizers import loading  # loads transformers
    from backend.tokenizers.vocabulary.tables import read_vocabulary

    tokenizer = loading.open_named(arguments.tokenizer, arguments.revision, is_offline())
    read = read_vocabulary(tokenizer)
    if arguments.merges:
        if read.merges is None:
            raise InputError(
                f"--merges: {arguments.tokenizer} is a {read.kind}, and only a BPE has merges; leave it out"
            )
        return read, read.merges
    if not arguments.data:
        return read, read.pieces
    return read, read.pieces.append_column("frequency", _frequencies(arguments, tokenizer, read.pieces))


def _frequencies(arguments: Namespace, tokenizer: Any, pieces: "pa.Table") -> "pa.Array":
    import pyarrow as pa

    from backend.inspect.text_column import read_text_column
    from backend.tokenizers.token_counts import count_pieces, in_order_of

    column = read_text_column(arguments.data, arguments.column, None)
    screen = Screen()
    screen.begin(f"counting the pieces of {column.name}", len(column), "rows")
    counts = count_pieces(tokenizer, column.texts(), lambda done: screen.advance(done, len(column)))
    screen.close()
    return pa.array(in_order_of(pieces["id"].to_numpy(), counts))


def _write(table: "pa.Table", arguments: Namespace) -> int:
    from backend.data.csv_file import write_csv

    path = user_path(arguments.output).absolute()
    write_csv(table, path, arguments.defuse, option="--output")
    if arguments.json:
        print(json.dumps({"path": str(path), "rows": table.num_rows}, ensure_ascii=False))
    else:
        print(f"{table.num_rows:,} rows: {path}")
    return 0


def _print(table: "pa.Table") -> None:
    names = [name for name in table.column_names if name != "bytes"]
    columns = [[_cell(value) for value in table[name].to_pylist()] for name in names]
    widths = [min(32, max([len(name), *map(len, column)])) for name, column in zip(names, columns, strict=True)]
    for row in [names, *zip(*columns, strict=True)]:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    text = "" if value is None else str(value)
    return text if text.isprintable() else repr(text)[1:-1]
