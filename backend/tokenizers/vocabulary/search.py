"""Searches and sorts the rows of a vocabulary, or of its merges, in Arrow, so that 256,000 rows are fast."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.tokens.vocabulary import TYPES, SearchBy
from backend.tokenizers.vocabulary.scripts import count_scripts

WRITTEN = ("piece", "text", "left", "right", "result")
"""Columns in which a text or a regular expression is looked for, as far as a table has them."""
MAX_IDS = 10_000_000
"""Of a range such as 5-10; more cannot be meant."""


@dataclass(frozen=True)
class Search:
    """What to find. Text ignores case; a regular expression is RE2's and does not; ids are numbers and ranges such
    as `5, 10-20`; a script is its Unicode name. No `types` means all."""

    text: str = ""
    by: SearchBy = "text"
    types: tuple[str, ...] = ()
    sort_by: str = ""
    descending: bool = False


def find(table: pa.Table, search: Search) -> np.ndarray:
    """The numbers of the matching rows, in the requested order. Raises InputError."""
    keep = np.ones(table.num_rows, dtype=bool)
    if search.text.strip() or (search.text and search.by == "text"):
        keep &= _FINDERS[search.by](table, search.text)
    if search.types:
        keep &= _of_types(table, search.types)
    if not search.sort_by:
        return np.flatnonzero(keep)
    order = _order(table, search.sort_by, search.descending)
    return order[keep[order]]


def _by_text(table: pa.Table, text: str) -> np.ndarray:
    return _in_any_column(table, "match_substring", compute.MatchSubstringOptions(text, ignore_case=True))


def _by_expression(table: pa.Table, text: str) -> np.ndarray:
    try:
        return _in_any_column(table, "match_substring_regex", compute.MatchSubstringOptions(text))
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0].removeprefix("Invalid regular expression: ").strip()
        raise InputError(
            "search: {text} is not a valid regular expression ({reason}); fix it, or search by text",
            "search",
            text=repr(text),
            reason=reason,
        ) from None


def _in_any_column(table: pa.Table, function: str, options: Any) -> np.ndarray:
    found = np.zeros(table.num_rows, dtype=bool)
    for name in WRITTEN:
        if name in table.column_names:
            found |= _flags(compute.call_function(function, [table[name]], options))
    return found


def _by_id(table: pa.Table, text: str) -> np.ndarray:
    ids = table["id"].fill_null(-1).to_numpy()
    found = np.zeros(table.num_rows, dtype=bool)
    for first, last in id_ranges(text):
        found |= (ids >= first) & (ids <= last)
    return found


def id_ranges(text: str) -> list[tuple[int, int]]:
    """The ids of `5, 10-20` as pairs of first and last. Raises InputError."""
    words = [word for word in re.split(r"[\s,;\[\]()]+", text) if word]
    pairs = [re.fullmatch(r"(\d{1,18})(?:(?:-|–|\.\.)(\d{1,18}))?", word) for word in words]
    if wrong := [word for word, pair in zip(words, pairs, strict=True) if pair is None]:
        raise InputError(
            "search: {wrong} is not an ID; enter whole numbers or ranges such as 5, 10-20",
            "search",
            wrong=repr(wrong[0]),
        )
    return [(int(pair[1]), int(pair[2] or pair[1])) for pair in pairs if pair]


def _by_script(table: pa.Table, text: str) -> np.ndarray:
    if "script" not in table.column_names:
        raise InputError("search: merges have no script; search the pieces by script, or the merges by text", "search")
    there = count_scripts(table["script"])
    name = next((one for one in there if _plain(one) == _plain(text)), None)
    if name is None:
        shown = ", ".join(list(there)[:12])
        if len(there) > 12:
            shown = message("{names} and {count} more", names=shown, count=len(there) - 12)
        raise InputError(
            "search: no piece is written in {text}; available: {shown}",
            "search",
            text=repr(text),
            shown=shown or message("no letters"),
        )
    options = compute.MatchSubstringOptions(rf"(^|, ){name}($|,)")
    return _flags(compute.call_function("match_substring_regex", [table["script"]], options))


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


_FINDERS = {"text": _by_text, "regex": _by_expression, "id": _by_id, "script": _by_script}


def _of_types(table: pa.Table, types: tuple[str, ...]) -> np.ndarray:
    if "type" not in table.column_names:
        return np.ones(table.num_rows, dtype=bool)
    if wrong := [name for name in types if name not in TYPES]:
        raise InputError(
            "types: {wrong} is not a piece type; choose one of {types}",
            "types",
            wrong=repr(wrong[0]),
            types=", ".join(TYPES),
        )
    return _flags(compute.is_in(table["type"], pa.array(types)))


def _order(table: pa.Table, sort_by: str, descending: bool) -> np.ndarray:
    if sort_by not in table.column_names:
        raise InputError(
            "sort: {sort_by} is not a column of this table; the columns are {column_names}",
            "sort",
            sort_by=repr(sort_by),
            column_names=", ".join(table.column_names),
        )
    keys = [sort_by]
    if sort_by == "bytes":  # first by how many
        table = table.append_column("byte_count", compute.call_function("binary_length", [table["bytes"]]))
        keys = ["byte_count", "bytes"]
    direction = "descending" if descending else "ascending"
    options = compute.SortOptions([(key, direction) for key in keys])
    return compute.call_function("sort_indices", [table], options).to_numpy()


def _flags(values: Any) -> np.ndarray:
    return compute.fill_null(values, False).to_numpy().astype(bool)
