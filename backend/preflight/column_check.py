"""Refuses a column that cannot play its role (an ID or a date as the label), and names the one that is probably meant."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from backend.contract.catalog import Column
from backend.contract.errors import Fix, InputError
from backend.contract.messages import message
from backend.contract.rpc.data import ColumnSummary
from backend.contract.spec import DataSection
from backend.data.formats.class_labels import names_in_order
from backend.data.rows import Rows
from backend.preflight import column_fit
from backend.preflight.column_guess import ColumnGuess, GuessReason
from backend.tasks.task import Columns, Task, used_columns
from backend.tasks.text_classification import label_words

_SCORES_ADVICE = message("choose the task text_regression, or list them in task.labels if each one is a class")


@dataclass(frozen=True)
class WrongColumn:
    """A chosen column that does not fit its role; `why` follows its name. `likely` may be only a reason."""

    role: Column
    column: str
    why: str
    likely: GuessReason | None
    advice: str
    """What to do if no other column is likely."""
    has_scores: bool = False
    """Text regression is the task that such a column is for."""

    @property
    def fix(self) -> Fix | None:
        """Switch to the task that the column is for, or use the likely column; None if there is neither.

        The window switches the task as a whole: settings of the old one that the new one lacks go with it.
        """
        if self.has_scores:
            return Fix(message("Switch to text regression"), {"task.type": "text_regression"})
        if self.likely is None or self.likely.column is None:
            return None
        changes = {f"data.columns.{self.role.name}": self.likely.column}
        return Fix(message("Use “{column}”", column=self.likely.column), changes)

    def error(self) -> InputError:
        """What is wrong and what to do; the field is the role's column."""
        key = f"data.columns.{self.role.name}"
        problem = message(
            "{key}: “{column}” {why}, so it cannot be the {title}",
            key=key,
            column=self.column,
            why=self.why,
            title=self.role.title.lower(),
        )
        if self.likely is None:
            return InputError("{problem}; {advice}", key, fix=self.fix, problem=problem, advice=self.advice)
        if self.likely.column is None:
            return InputError(
                "{problem}, which {reason}; choose one of them", key, problem=problem, reason=self.likely.reason
            )
        return InputError(
            "{problem}; “{likely}” ({reason}) probably is, so use that column",
            key,
            fix=self.fix,
            problem=problem,
            likely=self.likely.column,
            reason=self.likely.reason,
        )


def check_columns(task: Task, data: DataSection, rows: Mapping[str, Rows], columns: Columns) -> None:
    """Raises InputError if a chosen column cannot play its role, before anything is said that follows from that."""
    wrong = find_wrong_column(
        list(used_columns(task)),
        ColumnGuess(rows["train"].table),
        columns,
        labels_are_listed=bool(getattr(task.settings, "labels", None)),
        held_out=rows["validation"].table if "validation" in rows else None,
        is_split=isinstance(data.validation, float | int),
    )
    if wrong is not None:
        raise wrong.error()


def find_wrong_column(
    roles: list[Column],
    guess: ColumnGuess,
    columns: Mapping[str, str],
    *,
    labels_are_listed: bool = False,
    held_out: pa.Table | None = None,
    is_split: bool = False,
) -> WrongColumn | None:
    """The first role whose column cannot play it; with `is_split`, even few rows need a label that occurs twice.

    Labels that are listed in the settings or named in the file are right, and so are those that `held_out` rows share.
    """
    table = guess.table
    for role in roles:
        name = columns.get(role.name)
        if name is None or name not in guess.summaries:
            continue
        summary = guess.summaries[name]
        why = _mistaken_text(summary, table) if role.holds == "text" else ""
        if role.holds in ("number", "tags"):
            why = guess.unfit(role, summary)
        elif role.holds == "label" and not (labels_are_listed or names_in_order(table.schema.field(name))):
            why = guess.unfit(role, summary) or (column_fit.different_everywhere(summary) if is_split else "")
            if (
                held_out is not None
                and not column_fit.holds_dates(table[name])
                and _share_labels(table, held_out, name)
            ):
                why = ""
        if not why:
            continue
        has_scores = role.holds == "label" and _has_scores(summary, table)
        likely = None if has_scores else guess.likely(role, set(columns.values()))
        may_be_meant = role.holds == "text" or (role.holds == "label" and summary.distinct == 1)
        if may_be_meant and (likely is None or likely.column is None):
            continue  # the only text may be numbers, and of a single label the task says that more rows are needed
        advice = _SCORES_ADVICE if has_scores else _advise(role, table)
        return WrongColumn(role, name, why, likely, advice, has_scores)
    return None


def _has_scores(summary: ColumnSummary, table: pa.Table) -> bool:
    cells = table[summary.name]
    return column_fit.holds_scores(summary, cells) or column_fit.holds_fractions(summary, cells)


def _advise(role: Column, table: pa.Table) -> str:
    there = ", ".join(table.column_names)
    if role.holds == "number":
        return message(
            "choose another column ({there}), or the task text_classification if these are labels", there=there
        )
    if role.holds == "label":
        return message(
            "choose another column ({there}), or list the labels in task.labels if these are labels", there=there
        )
    return message("choose another column ({there})", there=there)


def _mistaken_text(column: ColumnSummary, table: pa.Table) -> str:
    """That the column has IDs or dates, of which a model can learn nothing."""
    if column_fit.holds_dates(table[column.name]):
        return message("contains dates, for example {date}", date=repr(column.examples[0]))
    if column_fit.holds_ids(table[column.name]):
        return message("contains IDs, for example {id}", id=repr(column.examples[0]))
    return ""


def _share_labels(table: pa.Table, held_out: pa.Table, column: str) -> bool:
    """Whether all labels of the rows to validate on are among those to train on, as with one row per label."""
    if column not in held_out.column_names or len(held_out) == 0:
        return False
    known = set(label_words(table[column]).to_pylist())
    return set(label_words(held_out[column]).to_pylist()) <= known
