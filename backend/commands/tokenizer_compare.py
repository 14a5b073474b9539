"""Owns `burnish tokenizer compare`: two to four tokenizers on a text, or on a column of data."""

import json
from argparse import Namespace
from typing import TYPE_CHECKING, Any

import msgspec

from backend.commands.command import add_json
from backend.commands.screen import Screen
from backend.contract.errors import InputError
from backend.contract.places import is_offline
from backend.contract.tokens.comparison import DataComparison, LanguageCounts, TextComparison

if TYPE_CHECKING:
    from backend.tokenizers.compare import Tokenizers

MEASURES = ("rows", "words", "characters")


def add_compare(actions: Any) -> None:
    """The words after `burnish tokenizer compare`."""
    parser = actions.add_parser("compare", help="compare two to four tokenizers", allow_abbrev=False)
    parser.add_argument("tokenizers", metavar="TOKENIZER", nargs="+", help="folders, tokenizer.json, hub ids or runs")
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--text", metavar="TEXT", help="compare on this text, line by line")
    given.add_argument(
        "--data", metavar="FILE", nargs="+", help="compare on a column of these files, folders or patterns"
    )
    parser.add_argument("--column", metavar="NAME", default="", help="the column of --data (the one with most text)")
    parser.add_argument(
        "--language-column", metavar="NAME", default="", help="counts by language (a column called language or lang)"
    )
    parser.add_argument(
        "--no-special-tokens", action="store_true", help="with --text: leave out what is added around it"
    )
    add_json(parser)
    parser.set_defaults(execute_action=_compare)


def _compare(arguments: Namespace) -> int:
    if arguments.data is None and (arguments.column or arguments.language_column):
        raise InputError("--column: it is a column of --data; give --data instead of --text")
    opened = _opened(arguments.tokenizers)
    if arguments.text is not None:
        from backend.tokenizers.compare import compare_text

        _told_text(compare_text(opened, arguments.text, not arguments.no_special_tokens), arguments.json)
    else:
        _told_data(_on_data(opened, arguments), arguments.json)
    return 0


def _opened(names: list[str]) -> "Tokenizers":
    from backend.tokenizers import loading  # loads transformers
    from backend.tokenizers.compare import check_number

    check_number(names)
    return [(name, loading.open_named(name, offline=is_offline())) for name in names]


def _on_data(opened: "Tokenizers", arguments: Namespace) -> DataComparison:
    from backend.inspect.text_column import read_text_column
    from backend.tokenizers.compare import compare_data

    column = read_text_column(arguments.data, arguments.column, arguments.language_column)
    screen = Screen()
    screen.begin(f"comparing on {column.name}", len(column), "rows")
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


def _told_text(found: TextComparison, as_json: bool) -> None:
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


def _told_data(found: DataComparison, as_json: bool) -> None:
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
    """The counts with tokens per row, word and character of each tokenizer."""
    values = msgspec.to_builtins(found)
    for counts, language in zip([values["total"], *values["languages"]], [found.total, *found.languages], strict=True):
        for each in MEASURES:
            counts[f"tokens_per_{each[:-1]}"] = [
                _divided(language, number, each) for number in range(len(found.tokenizers))
            ]
    return values


def _divided(language: LanguageCounts, number: int, by: str) -> float | None:
    whole = getattr(language, by)
    return round(language.tokens[number] / whole, 6) if whole else None


def _rate(language: LanguageCounts, number: int, by: str) -> str:
    value = _divided(language, number, by)
    return "–" if value is None else f"{value:.3f}"
