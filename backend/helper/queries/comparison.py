"""Owns `compare_text` and `compare_data`: two to four tokenizers on one text and on a column of data."""

from typing import Any

from backend.contract.rpc.queries import Progress
from backend.contract.tokens.comparison import DataComparison, TextComparison
from backend.helper.queries.tokens import _tokenizer
from backend.helper.query import Arguments, Query, Tell, needed, reporting


def _compare_text(arguments: Arguments, tell: Tell) -> TextComparison:
    from backend.tokenizers.compare import compare_text

    text = needed(arguments, "text")
    return compare_text(_tokenizers(arguments, tell), text, bool(arguments.get("special_tokens", True)))


def _compare_data(arguments: Arguments, tell: Tell) -> DataComparison:
    from backend.inspect.text_column import read_text_column
    from backend.tokenizers.compare_data import compare_data

    language = arguments.get("language_column")
    column = read_text_column(
        needed(arguments, "data", (str, list, dict)),
        str(arguments.get("column") or ""),
        None if language is None else str(language),
        reporting(tell),
    )
    total = len(column)
    tokenizers = _tokenizers(arguments, tell)
    tell(Progress(text="Comparing the data"))
    return compare_data(
        tokenizers,
        column.texts(),
        column.languages(),
        lambda done: tell(Progress(done, total, "rows")),
        column.name,
        column.language,
    )


def _tokenizers(arguments: Arguments, tell: Tell) -> list[tuple[str, Any]]:
    from backend.tokenizers.compare import check_number

    names = [str(name) for name in needed(arguments, "tokenizers", list)]
    check_number(names)
    opened = []
    for number, name in enumerate(names, start=1):
        tell(Progress(text=f"Opening tokenizer {number} of {len(names)}…"))
        opened.append((name, _tokenizer({"tokenizer": name})))
    return opened


QUERIES = (
    Query("compare_text", _compare_text, warm_by="tokenizers", as_table=True),
    Query("compare_data", _compare_data, warm_by="tokenizers"),
)
