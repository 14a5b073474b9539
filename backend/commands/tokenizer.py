"""Runs `burnish tokenizer`: `vocab` and `compare` inspect tokenizers; training and viewing rows are separate files."""

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from backend.commands.command import Command, add_action, add_json
from backend.commands.screen import ProgressScreen
from backend.commands.tokenizer_rows import add_lengths, add_rows
from backend.commands.tokenizer_train import add_extend, add_train
from backend.contract.errors import InputError
from backend.contract.safe_files import user_path
from backend.contract.tokens.comparison import DataComparison, LanguageCounts, TextComparison
from backend.contract.tokens.vocabulary import TYPES

if TYPE_CHECKING:
    import pyarrow as pa

    from backend.tokenizers.compare import Tokenizers
    from backend.tokenizers.vocabulary.tables import VocabularyTables

SHOWN_ROWS = 50
"""Rows on a screen, unless another number is asked for."""
NOT_SPECIAL = tuple(name for name in TYPES if name != "special")
MEASURES = ("rows", "words", "characters")


def _arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_train(actions)
    add_extend(actions)
    _add_vocab(actions)
    _add_compare(actions)
    add_lengths(actions)
    add_rows(actions)


def _execute(arguments: Namespace) -> int:
    return arguments.execute_action(arguments)


# Pieces and merges


def _add_vocab(actions: Any) -> None:
    """The arguments of `burnish tokenizer vocab`."""
    parser = add_action(actions, "vocab", "show, search and export the pieces of a tokenizer")
    parser.add_argument("tokenizer", metavar="TOKENIZER", help="folder, tokenizer.json, Hub ID or run")
    parser.add_argument("--revision", default="main", help="branch, tag or commit of a Hub ID")
    parser.add_argument("--search", metavar="TEXT", default="", help="only rows with this text (ignoring case)")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--regex", action="store_true", help="--search is a regular expression (RE2)")
    source.add_argument("--id", action="store_true", help="--search is a list of ids and ranges such as 5,10-20")
    source.add_argument("--script", action="store_true", help="--search is a Unicode script such as Sinhala or Han")
    parser.add_argument("--non-special", action="store_true", help="exclude special tokens")
    parser.add_argument("--type", choices=TYPES, action="append", help="only pieces of this type (may be repeated)")
    parser.add_argument("--merges", action="store_true", help="show the merges of a BPE instead of the pieces")
    parser.add_argument("--sort", metavar="COLUMN", default="", help="sort by a column of the table")
    parser.add_argument("--descending", action="store_true", help="largest first")
    parser.add_argument("--data", metavar="FILE", nargs="+", help="count how often each piece occurs in these texts")
    parser.add_argument(
        "--column", metavar="NAME", default="", help="the column of --data (default: the one with the most text)"
    )
    parser.add_argument(
        "--limit", metavar="N", type=int, help=f"maximum number of rows; on a terminal {SHOWN_ROWS}, otherwise all"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="write a CSV file")
    parser.add_argument(
        "--defuse",
        action="store_true",
        help=("escape formulas: add an apostrophe before cells that a spreadsheet would run"),
    )
    add_json(parser)
    parser.set_defaults(execute_action=_vocab)


def _vocab(arguments: Namespace) -> int:
    from backend.tokenizers.vocabulary.search import Search, find

    read, table = _read_table(arguments)
    by = next((name for name in ("regex", "id", "script") if getattr(arguments, name)), "text")
    if by != "text" and not arguments.search.strip():
        raise InputError(f"--{by}: it says what --search is; give --search too")
    types = tuple(arguments.type or ()) or (NOT_SPECIAL if arguments.non_special else ())
    if arguments.non_special:
        types = tuple(name for name in types if name != "special")
    rows = find(table, Search(arguments.search, by, types, arguments.sort, arguments.descending))  # type: ignore[arg-type]
    if arguments.limit is not None and arguments.limit < 0:
        raise InputError(f"--limit: {arguments.limit} is not a number of rows; give 0 or more")
    pieces = table.take(rows[: arguments.limit])
    if arguments.output is not None:
        return _write_table(pieces, arguments)
    if arguments.json:
        name = "merges" if arguments.merges else "pieces"
        facts = {
            "kind": read.kind,
            "size": read.size,
            "missing": read.missing,
            "types": read.types(),
            "found": len(rows),
        }
        print(json.dumps({**facts, name: pieces.to_pylist()}, ensure_ascii=False))
        return 0
    if arguments.limit is None and sys.stdout.isatty():
        pieces = pieces.slice(0, SHOWN_ROWS)
    _print_table(pieces)
    more = f", {pieces.num_rows:,} shown (--limit, --output)" if pieces.num_rows < len(rows) else ""
    noun = "merges" if arguments.merges else "rows" if read.missing else "pieces"
    spare = f", {read.missing:,} of them ids without a piece" if noun == "rows" else ""
    print(f"{len(rows):,} of {table.num_rows:,} {noun}{spare} ({read.kind}){more}")
    return 0


def _read_table(arguments: Namespace) -> "tuple[VocabularyTables, pa.Table]":
    from backend.tokenizers import loading  # loads transformers
    from backend.tokenizers.vocabulary.tables import read_vocabulary

    tokenizer = loading.open_named(arguments.tokenizer, arguments.revision)
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

    from backend.inspect.column_texts import read_text_column
    from backend.tokenizers.token_counts import count_pieces, counts_of_ids

    column = read_text_column(arguments.data, arguments.column, None)
    screen = ProgressScreen()
    screen.start_stage(f"counting the pieces of {column.name}", len(column), "rows")
    counts = count_pieces(tokenizer, column.texts(), lambda done: screen.advance(done, len(column)))
    screen.close()
    return pa.array(counts_of_ids(pieces["id"].to_numpy(), counts))


def _write_table(table: "pa.Table", arguments: Namespace) -> int:
    from backend.data.csv_file import write_csv

    path = user_path(arguments.output).absolute()
    write_csv(table, path, arguments.defuse, option="--output")
    if arguments.json:
        print(json.dumps({"path": str(path), "rows": table.num_rows}, ensure_ascii=False))
    else:
        print(f"{table.num_rows:,} rows: {path}")
    return 0


def _print_table(table: "pa.Table") -> None:
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


# Several tokenizers side by side


def _add_compare(actions: Any) -> None:
    """The arguments of `burnish tokenizer compare`."""
    parser = add_action(actions, "compare", "compare two to four tokenizers")
    parser.add_argument("tokenizers", metavar="TOKENIZER", nargs="+", help="folders, tokenizer.json, Hub IDs or runs")
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--text", metavar="TEXT", help="compare on this text, line by line")
    given.add_argument(
        "--data", metavar="FILE", nargs="+", help="compare on a column of these files, folders or patterns"
    )
    parser.add_argument(
        "--column", metavar="NAME", default="", help="the column of --data (default: the one with the most text)"
    )
    parser.add_argument(
        "--language-column", metavar="NAME", default="", help="column to count by language (default: language or lang)"
    )
    parser.add_argument("--no-special-tokens", action="store_true", help="with --text: do not add special tokens")
    add_json(parser)
    parser.set_defaults(execute_action=_compare)


def _compare(arguments: Namespace) -> int:
    if arguments.data is None and (arguments.column or arguments.language_column):
        raise InputError("--column: it is a column of --data; give --data instead of --text")
    opened = _open_tokenizers(arguments.tokenizers)
    if arguments.text is not None:
        from backend.tokenizers.compare import compare_text

        _print_text_comparison(compare_text(opened, arguments.text, not arguments.no_special_tokens), arguments.json)
    else:
        _print_data_comparison(_on_data(opened, arguments), arguments.json)
    return 0


def _open_tokenizers(names: list[str]) -> "Tokenizers":
    from backend.tokenizers import loading  # loads transformers
    from backend.tokenizers.compare import check_number

    check_number(names)
    return [(name, loading.open_named(name)) for name in names]


def _on_data(opened: "Tokenizers", arguments: Namespace) -> DataComparison:
    from backend.inspect.column_texts import read_text_column
    from backend.tokenizers.compare import compare_data

    column = read_text_column(arguments.data, arguments.column, arguments.language_column)
    screen = ProgressScreen()
    screen.start_stage(f"comparing on {column.name}", len(column), "rows")
    found = compare_data(
        opened,
        column.texts(),
        column.languages(),
        lambda done: screen.advance(done, len(column)),
        column.name,
        column.language,
    )
    screen.close()
    return found


def _print_text_comparison(found: TextComparison, as_json: bool) -> None:
    if as_json:
        print(json.dumps(text_as_json(found), ensure_ascii=False))
        return
    for line in range(found.lines):
        for number in range(len(found.counts)):
            cells = (
                f"*{token.piece}*" if token.differs else token.piece
                for token in found.tokens
                if (token.tokenizer, token.line) == (number, line)
            )
            print(f"{line + 1 if number == 0 else '':>4} {chr(65 + number)}  {' '.join(cells)}")
    for number, one in enumerate(found.counts):
        print(
            f"{chr(65 + number)}  {one.tokens} tokens, {one.differing} differ, {one.unknown} unknown  {one.tokenizer}"
        )
    print(f"{found.places} places differ (between stars), {found.characters} characters, {found.words} words")


def text_as_json(found: TextComparison) -> dict[str, Any]:
    """Each tokenizer's counts and, under `lines`, its tokens line by line."""
    tokenizers = [{**msgspec.to_builtins(counts), "lines": [[] for _ in range(found.lines)]} for counts in found.counts]
    for token in found.tokens:
        tokenizers[token.tokenizer]["lines"][token.line].append(
            {"id": token.id, "piece": token.piece, "text": token.text, "start": token.start, "end": token.end,
             "special": token.special, "differs": token.differs}
        )  # fmt: skip
    whole = {name: getattr(found, name) for name in ("characters", "words", "places")}
    return {"tokenizers": tokenizers, **whole}


def _print_data_comparison(found: DataComparison, as_json: bool) -> None:
    if as_json:
        print(json.dumps(data_as_json(found), ensure_ascii=False))
        return
    print(f"{'':20}  {'tokens':>12}  {'per row':>9}  {'per word':>9}  {'per char.':>9}  {'unknown':>9}")
    for language in [*found.languages, found.total]:
        print(f"{language.language or 'all'}: {language.rows:,} rows")
        for number, name in enumerate(found.tokenizers):
            rates = "  ".join(f"{_rate(language, number, each):>9}" for each in MEASURES)
            print(f"  {name[-18:]:18}  {language.tokens[number]:>12,}  {rates}  {language.unknown[number]:>9,}")


def data_as_json(found: DataComparison) -> dict[str, Any]:
    """Each tokenizer's counts, with tokens per row, word and character."""
    values = msgspec.to_builtins(found)
    for counts, language in zip([values["total"], *values["languages"]], [found.total, *found.languages], strict=True):
        for each in MEASURES:
            counts[f"tokens_per_{each[:-1]}"] = [
                _tokens_per(language, number, each) for number in range(len(found.tokenizers))
            ]
    return values


def _tokens_per(language: LanguageCounts, number: int, by: str) -> float | None:
    whole = getattr(language, by)
    return round(language.tokens[number] / whole, 6) if whole else None


def _rate(language: LanguageCounts, number: int, by: str) -> str:
    value = _tokens_per(language, number, by)
    return "–" if value is None else f"{value:.3f}"


COMMANDS = (Command("tokenizer", "inspect, compare, train and extend tokenizers", _arguments, _execute),)
