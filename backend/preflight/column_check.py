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
from backend.tasks._labels import MANY
from backend.tasks.task import Columns, Task, used_columns
from backend.tasks.text_classification import label_words

_SCORES_ADVICE = message("choose the task text_regression, or list them in task.labels if each one is a class")
_SEVERAL_ADVICE = message("set task.labels_per_row to many if rows have several labels, or choose another column")
_LISTS = ("list of text", "list of numbers")
_SWITCHES = {
    "text_regression": message("Switch to text regression"),
    "text_classification": message("Switch to text classification"),
    "causal_lm": message("Switch to causal language modeling"),
    "seq2seq_lm": message("Switch to sequence to sequence"),
}
"""Tasks for data without the column that the chosen task needs, and the text of the button."""
_SAID = {
    "text_regression": message("Switch to text regression, or list the values in task.labels if each one is a class."),
    "text_classification": message("No other column has numbers. Choose another file, or use these as labels."),
    "causal_lm": message("No column looks like labels. Choose another file, or train on the texts alone."),
    "seq2seq_lm": message("No column looks like labels. Choose another file, or train a model to write these texts."),
}
"""What the window says beside that button."""
_ANSWERS = ("label", "labels", "number", "tags")
"""What the column of an answer holds."""
_ANOTHER_COLUMN, _LEAVE_OUT = message("choose another column"), message("choose another column, or none")
_ANOTHER_FILE = message("choose another file")
_WITHOUT_LABELS = {
    "": _ANOTHER_FILE,
    "causal_lm": message("choose another file, or the task causal_lm to train on the texts alone"),
    "seq2seq_lm": message("choose another file, or the task seq2seq_lm if these are texts to be written"),
}
"""What to do without labels, by the task that the data is for."""
_NO_NUMBERS = message("no other column contains numbers, so choose another file")
_LABELS = message(
    "no other column contains numbers, so choose another file, or the task text_classification if these are labels"
)
_TEXT_WORDS = 3
"""A column with fewer words in its median cell contains names, not texts."""


@dataclass(frozen=True)
class WrongColumn:
    """A chosen column that does not fit its role; `why` follows its name. `likely` may be only a reason."""

    role: Column
    column: str
    why: str
    likely: GuessReason | None
    advice: str
    """What to do if no other column is likely."""
    task: str = ""
    """The task that the data is for if no other column is likely."""
    has_several: bool = False
    """Whether its cells are lists of labels."""

    @property
    def fix(self) -> Fix | None:
        """Switch to the task that the data is for, or use the likely column; None if there is neither."""
        if self.has_several:
            said = message(
                "“{column}” {why}. A row may have several labels, if the task says so.",
                column=self.column,
                why=self.why,
            )
            changes = {"task.labels_per_row": MANY, "data.columns.labels": self.column}
            return Fix(message("Several labels per row"), changes, sentence=said)
        if self.task:
            said = message("“{column}” {why}. {advice}", column=self.column, why=self.why, advice=_SAID[self.task])
            return switch_task(self.task, said)
        if self.likely is None or self.likely.column is None:
            return None
        sentence = message(
            "“{column}” {why}. “{likely}” is probably meant.",
            column=self.column,
            why=self.why,
            likely=self.likely.column,
        )
        changes = {f"data.columns.{self.role.name}": self.likely.column}
        return Fix(message("Use “{column}”", column=self.likely.column), changes, sentence=sentence)

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
    if (shown := _find_shown_answer(roles, columns)) is not None:
        return shown
    for role in roles:
        name = columns.get(role.name)
        if name is None or name not in guess.summaries:
            continue
        summary = guess.summaries[name]
        if role.instead_of == "labels" and summary.kind in _LISTS:
            return WrongColumn(role, name, guess.unfit(role, summary), None, _SEVERAL_ADVICE, has_several=True)
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
        advice, task = (_SCORES_ADVICE, "text_regression") if has_scores else _advise(role, guess, columns, summary)
        return WrongColumn(role, name, why, likely, advice, task if likely is None else "")
    return None


def _find_shown_answer(roles: list[Column], columns: Mapping[str, str]) -> WrongColumn | None:
    """An input whose column is also that of the answer, which the model would then read instead of learning it."""
    answers = {columns[role.name]: role for role in roles if role.holds in _ANSWERS and role.name in columns}
    for role in roles:
        answer = answers.get(columns.get(role.name, ""))
        if answer is not None and role.holds not in _ANSWERS:
            why = message("is also the {answer}, which the model would then read", answer=answer.title.lower())
            return WrongColumn(role, columns[role.name], why, None, _ANOTHER_COLUMN if role.required else _LEAVE_OUT)
    return None


def find_missing_labels(roles: list[Column], guess: ColumnGuess, columns: Mapping[str, str]) -> InputError | None:
    """That the label has no column and none could be it; None if one could, or one is chosen."""
    role = next((one for one in roles if one.holds == "label" and one.required and one.name not in columns), None)
    if role is None or len(guess.table) <= column_fit.FEW_ROWS or _others(role, guess, columns):
        return None
    key, task = f"data.columns.{role.name}", _task_without_labels(guess)
    return InputError(
        "{key}: none of the columns ({there}) looks like labels, so {advice}",
        key,
        fix=switch_task(task, _SAID[task]) if task else None,
        key=key,
        there=", ".join(guess.table.column_names),
        advice=_WITHOUT_LABELS[task],
    )


def switch_task(task: str, sentence: str) -> Fix:
    """The button that changes the task.

    The window switches the task as a whole: settings of the old one that the new one lacks go with it.
    """
    return Fix(_SWITCHES[task], {"task.type": task}, sentence=sentence)


def _has_scores(summary: ColumnSummary, table: pa.Table) -> bool:
    cells = table[summary.name]
    return column_fit.holds_scores(summary, cells) or column_fit.holds_fractions(summary, cells)


def _others(role: Column, guess: ColumnGuess, columns: Mapping[str, str]) -> list[str]:
    """The columns that are not in use and could play the role."""
    used = set(columns.values())
    return [name for name, one in guess.summaries.items() if name not in used and not guess.unfit(role, one)]


def _advise(role: Column, guess: ColumnGuess, columns: Mapping[str, str], summary: ColumnSummary) -> tuple[str, str]:
    """What to do if no column is likely, and the task that the data is for instead; empty if none is."""
    if others := _others(role, guess, columns):
        return _advise_column(role, ", ".join(others)), ""
    if role.holds == "number":
        task = "" if column_fit.different_everywhere(summary) else "text_classification"
        return (_LABELS if task else _NO_NUMBERS), task
    if role.holds != "label":
        return _ANOTHER_FILE, ""
    if summary.rows - summary.empty <= column_fit.FEW_ROWS:
        return message("add rows so that labels occur more than once, or list the labels in task.labels"), ""
    task = _task_without_labels(guess, summary)
    return message("no other column looks like labels, so {advice}", advice=_WITHOUT_LABELS[task]), task


def _advise_column(role: Column, there: str) -> str:
    if role.holds == "number":
        return message(
            "choose another column ({there}), or the task text_classification if these are labels", there=there
        )
    if role.holds == "label":
        return message(
            "choose another column ({there}), or list the labels in task.labels if these are labels", there=there
        )
    return message("choose another column ({there})", there=there)


def _task_without_labels(guess: ColumnGuess, label: ColumnSummary | None = None) -> str:
    """The task for texts without labels; sequence to sequence if the `label` is a text; empty without texts."""
    long = [name for name, one in guess.summaries.items() if (one.median_words or 0) >= _TEXT_WORDS]
    texts = [name for name in long if not column_fit.holds_dates(guess.table[name])]
    if label is None or label.name not in texts:
        return "causal_lm" if texts else ""
    return "seq2seq_lm" if len(texts) > 1 else ""


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
