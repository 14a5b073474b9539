"""Guesses for which other tasks data is made, with the reason, if the chosen one does not suit its columns."""

from collections.abc import Callable, Iterable, Mapping

from backend import registry
from backend.contract.catalog import Column
from backend.contract.messages import join, message
from backend.contract.rpc.data import ColumnSummary, OtherTask
from backend.preflight import column_fit
from backend.preflight.column_guess import ColumnGuess, GuessReason, guess_by_name

RUNNING_TEXT = message("the data is running text without any labels")
_TEXT_WORDS = 2
"""A column whose median is below this contains names, not texts."""


def guess_other_tasks(
    task: str, roles: Iterable[Column], guess: ColumnGuess, columns: Mapping[str, str]
) -> list[OtherTask]:
    """The tasks that suit the columns of the data better than `task`; none if every role of that has a column that fits.

    `columns` are the columns in use by role. Several are offered only if the data does not say which one is meant.
    """
    if _is_suitable(roles, guess, columns):
        label = columns.get("label", "")
        may_be_scores = task == "text_classification" and label in guess.summaries and _is_fraction(guess, label)
        return [OtherTask("text_regression", _scores(guess.summaries[label]))] if may_be_scores else []
    for names, find_reason in _RULES:
        others = [name for name in names if name != task]
        if len(others) == len(names) and (reason := find_reason(guess)):
            return [OtherTask(name, reason) for name in others]
    return []


def other_tasks_advice(others: Iterable[OtherTask]) -> str:
    """The other tasks as the end of a sentence that says what is missing; empty if there are none."""
    found = list(others)
    if not found:
        return ""
    tasks = join(" or ", [one.task for one in found])
    return message("or choose the task {names}, because {reason}", names=tasks, reason=found[0].reason)


def _is_suitable(roles: Iterable[Column], guess: ColumnGuess, columns: Mapping[str, str]) -> bool:
    needed = [role for role in roles if role.required]
    return all(
        (name := columns.get(role.name)) is not None
        and name in guess.summaries
        and not guess.unfit(role, guess.summaries[name])
        for role in needed
    )


def _answers(guess: ColumnGuess) -> str:
    """Questions, contexts and answers, each under a usual name."""
    names = _named(guess, "question_answering", ("question", "context", "answers"))
    return message("the columns {names} are there", names=_listed(names)) if names else ""


def _tags(guess: ColumnGuess) -> str:
    """A list of words and a list of tags in each row."""
    found = _guessed(guess, "token_classification")
    words, tags = (found[role].column if role in found else None for role in ("tokens", "tags"))
    if words is None or tags is None or guess.summaries[words].kind != "list of text":
        return ""
    if guess.summaries[tags].kind not in ("list of text", "list of numbers"):
        return ""
    return message("“{column}” contains a tag for each word", column=tags)


def _target_texts(guess: ColumnGuess) -> str:
    """Texts and what is to be made of them, each under a usual name."""
    names = _named(guess, "seq2seq_lm", ("source", "target"))
    if not names or not all(_is_text(guess, name) for name in names):
        return ""
    return message("the columns {names} are there", names=_listed(names))


def _score_column(guess: ColumnGuess) -> str:
    found = _guessed(guess, "text_regression")
    text, label = (found[role].column if role in found else None for role in ("text", "label"))
    if text is None or label is None or not _is_text(guess, text) or column_fit.holds_ids(guess.table[label]):
        return ""
    return _scores(guess.summaries[label]) if guess.summaries[label].distinct != 1 else ""


def _label_column(guess: ColumnGuess) -> str:
    found = _guessed(guess, "text_classification")
    text, label = (found[role].column if role in found else None for role in ("text", "label"))
    if text is None or label is None or not _is_text(guess, text):
        return ""
    return message(
        "“{column}” contains labels, for example {label}", column=label, label=guess.summaries[label].examples[0]
    )


def _running_text(guess: ColumnGuess) -> str:
    names = guess.table.column_names
    return RUNNING_TEXT if len(names) == 1 and _is_text(guess, names[0]) else ""


_RULES: tuple[tuple[tuple[str, ...], Callable[[ColumnGuess], str]], ...] = (
    (("question_answering",), _answers),
    (("token_classification",), _tags),
    (("seq2seq_lm",), _target_texts),
    (("text_regression",), _score_column),
    (("text_classification",), _label_column),
    (("causal_lm", "masked_lm"), _running_text),
)
"""Tasks, and what speaks for them; the first rule that applies wins."""


def _roles(task: str) -> dict[str, Column]:
    return {role.name: role for role in registry.find("task", task, "task.type").columns}


def _guessed(guess: ColumnGuess, task: str) -> dict[str, GuessReason]:
    """Role → the guess for it, of required roles whose column fits."""
    roles = {name: role for name, role in _roles(task).items() if role.required}
    found = guess.guesses(list(roles.values()), {})
    return {
        name: one
        for name, one in found.items()
        if one.column is not None and not guess.unfit(roles[name], guess.summaries[one.column])
    }


def _named(guess: ColumnGuess, task: str, wanted: tuple[str, ...]) -> list[str]:
    """The columns with usual names of all these roles; empty if one is missing."""
    roles, found = _roles(task), list[str]()
    for name in wanted:
        column = guess_by_name(roles[name].usual_names, guess.table.column_names, set(found))
        if column is None or guess.unfit(roles[name], guess.summaries[column]):
            return []
        found.append(column)
    return found


def _is_text(guess: ColumnGuess, name: str) -> bool:
    return (guess.summaries[name].median_words or 0) >= _TEXT_WORDS


def _is_fraction(guess: ColumnGuess, name: str) -> bool:
    return column_fit.holds_fractions(guess.summaries[name], guess.table[name])


def _scores(column: ColumnSummary) -> str:
    return message("“{column}” contains scores, for example {score}", column=column.name, score=column.examples[0])


def _listed(names: list[str]) -> str:
    quoted = [f"“{name}”" for name in names]
    return message("{first} and {last}", first=", ".join(quoted[:-1]), last=quoted[-1])
