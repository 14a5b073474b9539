"""Says why a column cannot play a role, as a phrase after its name: IDs and dates are neither labels nor texts."""

import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.catalog import Column
from backend.contract.messages import message
from backend.contract.rpc.data import ColumnSummary
from backend.data.column_summary import LOOKED_AT

SCORES = 20
"""More different fractions than this are scores and no labels."""
FEW_ROWS = 20
"""Among so few rows, each may well have its own label."""
_CERTAIN_ROWS, _MOSTLY = 100, 0.9
"""From so many rows on, labels of which nearly all are different are IDs with a few duplicates."""

_NUMBER = r"^[-+]?(\d+[.,]?\d*|[.]\d+)([eE][-+]?\d+)?$"
_POINTED = r"^[-+]?(\d+[.]?\d*|[.]\d+)([eE][-+]?\d+)?$"
_THOUSANDS = r"^[-+]?[1-9]\d{0,2},\d{3}$"
"""1,234: in English a whole number; in German it may be a fraction, which other cells of the column then show."""
_TIME = r"([T ,]+\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?)?( ?(Z|UTC|GMT|[-+]\d{2}:?\d{2}))?"
_MONTH = r"(Jan|Feb|Mar|Mär|Apr|May|Mai|Jun|Jul|Aug|Sep|Oct|Okt|Nov|Dec|Dez)\p{L}*\.?"
_DATES = (
    r"\d{4}-\d{1,2}-\d{1,2}",  # 2023-05-31
    r"\d{4}/\d{1,2}/\d{1,2}",
    r"\d{1,2}/\d{1,2}/(\d{4}|\d{2})",  # 5/31/2023
    r"\d{1,2}\. ?\d{1,2}\. ?\d{4}",  # 31.5.2023
    r"\d{2}\.\d{2}\.\d{2}",  # unlike a version such as 1.2.10
    r"\d{1,2}-\d{1,2}-\d{4}",
    r"(\p{L}{2,9}\.?,? )?\d{1,2}(st|nd|rd|th|\.)?[ -]" + _MONTH + r",?[ -]\d{4}",  # Wed, 31 May 2023
    r"(\p{L}{2,9}\.?,? )?" + _MONTH + r" \d{1,2}(st|nd|rd|th)?,? \d{4}",  # May 31, 2023
)
_DATE = f"^({'|'.join(_DATES)}){_TIME}$"
_NUMBERED = r"^[A-Za-z]{0,12}[-_ #:./]{0,2}(\d+)$"
_UUID = r"^\{?[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\}?$"


def unfit(part: Column, column: ColumnSummary, table: pa.Table) -> str:
    """Why a column of `table` does not fit a role; empty if it does."""
    if column.rows and column.empty == column.rows:
        return (
            message("is empty in every row")
            if column.rows == len(table)
            else message("is empty in the first {rows:,} rows", rows=column.rows)
        )
    check = {"text": _unfit_text, "label": _unfit_label, "number": _unfit_number, "tags": _unfit_tags,
             "words": _unfit_words, "messages": _unfit_messages}.get(part.holds)  # fmt: skip
    return check(column, table) if check else ""


def _unfit_label(column: ColumnSummary, table: pa.Table) -> str:
    if column.distinct is None:
        return message("contains {kind}, but labels are single values", kind=_plural(column.kind))
    if column.rows == len(table) and column.distinct == 1:
        return message("contains a single value, {examples}", examples=repr(column.examples[0]))
    if holds_dates(table[column.name]):
        return message("contains dates, for example {date}", date=repr(column.examples[0]))
    if holds_scores(column, table[column.name]):
        return message("contains scores, for example {score}", score=column.examples[0])
    filled = column.rows - column.empty
    if filled > FEW_ROWS and column.distinct == filled:
        return different_everywhere(column)
    if filled >= _CERTAIN_ROWS and column.distinct > _MOSTLY * filled:
        return message(
            "contains {distinct} different values in {filled} rows",
            distinct=f"{column.distinct:,}",
            filled=f"{filled:,}",
        )
    return ""


def different_everywhere(column: ColumnSummary) -> str:
    """That no two rows share a value of the column; empty if some do, or there are fewer than two."""
    filled = column.rows - column.empty
    if filled < 2 or column.distinct != filled:
        return ""
    return message("has a different value in each of {rows:,} rows", rows=filled)


def holds_dates(column: pa.ChunkedArray) -> bool:
    """Whether every filled cell is a date, with or without a time."""
    if pa.types.is_temporal(column.type):
        return not pa.types.is_duration(column.type)
    return _all_match(column, _DATE)


def holds_ids(column: pa.ChunkedArray) -> bool:
    """Whether the cells are numbers or UUIDs behind at most a prefix that all share, and no two are the same."""
    cells = _filled(column)
    if len(cells) <= FEW_ROWS or pc.count_distinct(cells).as_py() < len(cells):
        return False
    if _all_match(column, _UUID):
        return True
    prefixes = pc.replace_substring_regex(cells, r"\d+$", "")
    return _all_match(column, _NUMBERED) and pc.count_distinct(prefixes).as_py() == 1


def counts_rows(column: pa.ChunkedArray) -> bool:
    """Whether the cells are whole numbers, each one more than the one before it."""
    cells = _filled(column)
    if len(cells) <= FEW_ROWS or not _all_match(column, r"^\d{1,18}$"):
        return False
    numbers = cells.cast(pa.int64()).combine_chunks()
    return bool(pc.all(pc.equal(pc.subtract(numbers[1:], numbers[:-1]), 1)).as_py())


def holds_scores(column: ColumnSummary, cells: pa.ChunkedArray) -> bool:
    """Whether the cells are too many different numbers for labels, some of them fractions."""
    if column.distinct is None or column.distinct <= SCORES:
        return False
    if column.kind == "text":
        fractions = pc.match_substring_regex(_filled(cells), r"[.]\d*[1-9]")
        return _all_match(cells, _POINTED) and bool(pc.any(fractions).as_py())
    return column.kind == "numbers"


def holds_fractions(column: ColumnSummary, cells: pa.ChunkedArray) -> bool:
    """Whether the cells are at least three different numbers, some of them fractions, which few labels are."""
    if column.distinct is None or column.distinct < 3 or column.kind not in ("text", "numbers"):
        return False
    filled = _filled(cells)
    clear = filled.filter(pc.invert(pc.match_substring_regex(filled, _THOUSANDS)))
    return _all_match(cells, _NUMBER) and bool(pc.any(pc.match_substring_regex(clear, r"[.,]\d*[1-9]")).as_py())


def _filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The first cells that are not empty, as text without spaces at both ends; none if they are nested."""
    first = column.slice(0, LOOKED_AT)
    if pa.types.is_nested(first.type) or pa.types.is_binary(first.type) or pa.types.is_large_binary(first.type):
        return pa.chunked_array([], pa.string())
    cells = pc.utf8_trim_whitespace(first.cast(pa.string()).drop_null())
    return cells.filter(pc.not_equal(cells, ""))


def _all_match(column: pa.ChunkedArray, pattern: str) -> bool:
    # The first few rule out most columns; matching thousands of long texts takes a hundred times as long.
    few = _filled(column.slice(0, FEW_ROWS))
    if len(few) > 0 and not pc.all(pc.match_substring_regex(few, pattern)).as_py():
        return False
    cells = _filled(column)
    return len(cells) > 0 and bool(pc.all(pc.match_substring_regex(cells, pattern)).as_py())


def _unfit_number(column: ColumnSummary, table: pa.Table) -> str:
    if column.kind in ("numbers", "whole numbers"):
        return ""
    if column.kind != "text":
        return message("contains {kind}, not numbers", kind=_plural(column.kind))
    cells = pc.utf8_trim_whitespace(pc.fill_null(table[column.name].slice(0, LOOKED_AT), ""))
    odd = cells.filter(pc.invert(pc.or_(pc.match_substring_regex(cells, _NUMBER), pc.equal(cells, ""))))
    return (
        message("has no numbers, for example {odd}", odd=repr(odd[0].as_py()[:40]))
        if len(odd) > column.rows // 2
        else ""
    )


def _unfit_text(column: ColumnSummary, table: pa.Table) -> str:
    nested = column.kind.startswith("list") or column.kind in ("structure", "other")
    return message("contains {kind}, not text", kind=_plural(column.kind)) if nested else ""


def _unfit_words(column: ColumnSummary, table: pa.Table) -> str:
    return (
        ""
        if column.kind in ("text", "list of text", "list of numbers", "list")
        else message("contains {kind}, not lists", kind=column.kind)
    )


def _unfit_tags(column: ColumnSummary, table: pa.Table) -> str:
    if column.kind == "text" and holds_dates(table[column.name]):
        return message("contains dates, for example {date}", date=repr(column.examples[0]))
    if column.kind == "text" and holds_ids(table[column.name]):
        return different_everywhere(column)
    return _unfit_words(column, table)


def _unfit_messages(column: ColumnSummary, table: pa.Table) -> str:
    return (
        ""
        if column.kind in ("list", "text")
        else message("contains {kind}, not lists of messages", kind=_plural(column.kind))
    )


def _plural(kind: str) -> str:
    return {"list of text": message("lists of text"), "list of numbers": message("lists of numbers"), "list": "lists", "structure": "structures",
            "other": message("no text")}.get(kind, kind)  # fmt: skip
