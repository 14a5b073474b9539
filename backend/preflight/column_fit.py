"""Says why a column cannot play a role, as a phrase after its name."""

import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.catalog import Column
from backend.contract.messages import message
from backend.contract.rpc.data import ColumnSummary
from backend.data.column_summary import LOOKED_AT

_NUMBER = r"^[-+]?(\d+[.,]?\d*|[.]\d+)([eE][-+]?\d+)?$"


def unfit(part: Column, column: ColumnSummary, table: pa.Table) -> str:
    """Why a column of `table` does not fit a role; empty if it does."""
    if column.rows and column.empty == column.rows:
        return (
            message("is empty in every row")
            if column.rows == len(table)
            else message("is empty in the first {rows:,} rows", rows=column.rows)
        )
    check = {"text": _unfit_text, "label": _unfit_label, "number": _unfit_number, "tags": _unfit_words,
             "words": _unfit_words, "messages": _unfit_messages}.get(part.holds)  # fmt: skip
    return check(column, table) if check else ""


def _unfit_label(column: ColumnSummary, table: pa.Table) -> str:
    if column.distinct is None:
        return message("contains {kind}, but labels are single values", kind=_plural(column.kind))
    filled = column.rows - column.empty
    whole = column.rows == len(table)
    if whole and column.distinct == 1:
        return message("contains a single value, {examples}", examples=repr(column.examples[0]))
    if filled > 1000 and column.distinct > 0.9 * filled:
        return message(
            "contains {distinct} different values in {filled} rows",
            distinct=f"{column.distinct:,}",
            filled=f"{filled:,}",
        )
    return ""


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


def _unfit_messages(column: ColumnSummary, table: pa.Table) -> str:
    return (
        ""
        if column.kind in ("list", "text")
        else message("contains {kind}, not lists of messages", kind=_plural(column.kind))
    )


def _plural(kind: str) -> str:
    return {"list of text": message("lists of text"), "list of numbers": message("lists of numbers"), "list": "lists", "structure": "structures",
            "other": message("no text")}.get(kind, kind)  # fmt: skip
