"""Guesses which column of the data is used for which input of a task, with reasons, and rules out unsuitable columns.

Names come first; the contents decide for required roles that are still open, but only if there is no
ambiguity: with two candidates the user is asked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.catalog import Column
from backend.contract.messages import join, message
from backend.contract.rpc.data import ColumnSummary
from backend.data.column_summary import LOOKED_AT, summarise_columns
from backend.preflight import column_fit

CHOSEN = "as chosen"
MAX_LABELS = 200
"""A column with more different values is not guessed to hold labels."""


@dataclass(frozen=True)
class GuessReason:
    """The column with the reason as a trailing phrase; without a column, why there is none."""

    column: str | None
    reason: str


class ColumnGuess:
    """Guesses columns, reading the table only if needed."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    @cached_property
    def summaries(self) -> dict[str, ColumnSummary]:
        """Column → a summary of its first rows."""
        return summarise_columns(self.table)

    def guesses(self, parts: Sequence[Column], given: Mapping[str, str | None]) -> dict[str, GuessReason]:
        """Role → guess. A role that is `given` a column of the table keeps it; one that is given None has no column."""
        there = self.table.column_names
        found: dict[str, GuessReason] = {}
        for part in parts:
            wanted = given.get(part.name)
            if wanted in there and wanted is not None:
                found[part.name] = GuessReason(wanted, CHOSEN)
            elif wanted is not None or part.name not in given:
                guess = self._by_name(part, _columns_in_use(found))
                if guess is not None:
                    found[part.name] = guess
        for part in parts:
            if part.required and part.name not in found and not (part.name in given and given[part.name] is None):
                guess = self._by_content(part, _columns_in_use(found))
                if guess is not None:
                    found[part.name] = guess
        return found

    def _by_name(self, part: Column, taken: set[str]) -> GuessReason | None:
        """The first usual name; a later one if only that column can hold labels, and the reason says so."""
        first = guess_by_name(part.usual_names, self.table.column_names, taken)
        if first is None:
            return None
        guess = GuessReason(first, "a common name")
        if part.holds != "label" or not (why := self.unfit(part, self.summaries[first])):
            return guess
        later = self._first_fitting_name(part, taken)
        if later is None:
            return guess
        return GuessReason(later, message("a common name; “{first}” {why}", first=first, why=why))

    def _first_fitting_name(self, part: Column, taken: set[str]) -> str | None:
        fitting = [name for name, column in self.summaries.items() if not self.unfit(part, column)]
        return guess_by_name(part.usual_names, fitting, taken)

    def likely(self, part: Column, taken: set[str]) -> GuessReason | None:
        """The column that fits a role best, described by its content; only the reason if several fit alike."""
        name = self._first_fitting_name(part, taken)
        if name is None or (part.holds == "text" and (self.summaries[name].median_words or 0) < 2):
            return self._by_content(part, taken)
        return GuessReason(name, _describe(part, self.summaries[name]))

    def _by_content(self, part: Column, taken: set[str]) -> GuessReason | None:
        free = [column for name, column in self.summaries.items() if name not in taken and not self.unfit(part, column)]
        if part.holds == "text":
            return _longest(free)
        if part.holds == "label":
            return _only([column for column in free if _is_label(column)], _values)
        if part.holds == "number":
            numbers = [column for column in free if column.empty < column.rows]
            return _only([one for one in numbers if not column_fit.counts_rows(self.table[one.name])], _numbers)
        if part.holds in ("words", "tags"):
            return self._listed(part, free)
        return (
            _only([column for column in free if column.kind == "list"], _messages) if part.holds == "messages" else None
        )

    def _listed(self, part: Column, free: list[ColumnSummary]) -> GuessReason | None:
        """Among lists of text, the one with few distinct members holds the tags, the one with many the words."""
        lists = [column for column in free if column.kind == "list of text"]
        counts = {column.name: _different_members(self.table[column.name]) for column in lists}
        few = {name: count for name, count in counts.items() if count <= MAX_LABELS}
        wanted = {name: count for name, count in counts.items() if (name in few) == (part.holds == "tags")}
        if len(wanted) != 1:
            return None
        [(name, count)] = wanted.items()
        return GuessReason(
            name,
            (
                message("lists with {count} different tags", count=_grouped(count))
                if name in few
                else message("lists with {count} different words", count=_grouped(count))
            ),
        )

    def unfit(self, part: Column, column: ColumnSummary) -> str:
        """Why a column does not fit a role, as a phrase after its name; empty if it does."""
        return column_fit.unfit(part, column, self.table)

    def unfit_columns(self, parts: Sequence[Column]) -> dict[str, dict[str, str]]:
        """Role → column → why it does not fit that role."""
        found = {
            part.name: {name: why for name, column in self.summaries.items() if (why := self.unfit(part, column))}
            for part in parts
        }
        return {part: columns for part, columns in found.items() if columns}


def guess_by_name(usual_names: list[str], there: list[str], taken: set[str]) -> str | None:
    """The first usual name that occurs in the data, ignoring case."""
    by_name = {name.lower().strip(): name for name in reversed(there) if name not in taken}
    return next((by_name[name] for name in usual_names if name in by_name), None)


def guessed_columns(parts: Sequence[Column], guesses: Mapping[str, GuessReason]) -> str:
    """The guessed columns with the reasons, as one sentence; empty if there are none."""
    found = [(part.name, guess) for part in parts if (guess := guesses.get(part.name)) and guess.reason != CHOSEN]
    sentences = [
        message("{part} is {column} ({reason})", part=part, column=guess.column, reason=guess.reason)
        for part, guess in found
        if guess.column
    ]
    return message("columns guessed: {guesses}", guesses=join(", ", sentences)) if sentences else ""


def _columns_in_use(found: Mapping[str, GuessReason]) -> set[str]:
    return {guess.column for guess in found.values() if guess.column}


def _longest(free: list[ColumnSummary]) -> GuessReason | None:
    """The column with the longest texts, if it is clear which that is."""
    texts = sorted((column for column in free if column.median_words), key=lambda column: -(column.median_words or 0))
    texts = [column for column in texts if not _is_label(column)]
    if not texts:
        return None
    first = texts[0]
    words = message("about {value} words", value=_grouped(max(2, round(first.median_words or 0))))
    if len(texts) == 1:
        return GuessReason(first.name, message("the only column of texts ({words})", words=words))
    if (first.median_words or 0) >= 2 * (texts[1].median_words or 0):
        return GuessReason(first.name, message("the longest texts ({words})", words=words))
    return GuessReason(None, _could_be([column.name for column in texts]))


def _only(free: list[ColumnSummary], words: Callable[[ColumnSummary], str]) -> GuessReason | None:
    if len(free) == 1:
        return GuessReason(free[0].name, words(free[0]))
    return GuessReason(None, _could_be([column.name for column in free])) if free else None


def _could_be(names: list[str]) -> str:
    listed = join(", ", [message("“{name}”", name=name) for name in names[:-1][:3]])
    return message("could be {columns} or “{names}”", columns=listed, names=names[-1])


def _is_label(column: ColumnSummary) -> bool:
    """Few distinct values, each of them frequent."""
    filled = column.rows - column.empty
    if column.distinct is None or not 2 <= column.distinct <= min(MAX_LABELS, filled // 2):
        return False
    return (column.median_words or 0) <= 4 and not (column.kind == "numbers" and column.distinct > column_fit.SCORES)


def _values(column: ColumnSummary) -> str:
    return message("{distinct} different values in {rows} rows", distinct=column.distinct, rows=_grouped(column.rows))


def _numbers(_: ColumnSummary) -> str:
    return message("the only column of numbers")


def _describe(part: Column, column: ColumnSummary) -> str:
    if part.holds == "text":
        return message("about {value} words", value=_grouped(max(2, round(column.median_words or 0))))
    return _values(column)


def _messages(_: ColumnSummary) -> str:
    return message("the only column of lists of messages")


def _different_members(column: pa.ChunkedArray) -> int:
    return int(pc.count_distinct(pc.list_flatten(column.slice(0, LOOKED_AT))).as_py())


def _grouped(value: int) -> str:
    return f"{value:,}"
