"""Guesses which tasks the data suits better than the chosen one, and says why."""

from collections.abc import Callable, Iterable, Mapping

from backend import registry
from backend.contract.catalog import Column
from backend.contract.messages import join, message
from backend.contract.rpc.data import ColumnSummary, OtherTask
from backend.preflight import column_fit
from backend.preflight.column_guess import ColumnGuess, GuessReason, guess_by_name

_TEXT_WORDS = 2
"""A column with fewer words in its median cell contains names, not texts."""
_LABEL_WORDS = 4
"""A column with more words in its median cell contains texts, not labels."""
_LANGUAGE_MODELS = ("causal_lm", "masked_lm")


def guess_other_tasks(
    task: str, roles: Iterable[Column], guess: ColumnGuess, columns: Mapping[str, str]
) -> list[OtherTask]:
    """The tasks that suit the columns better than `task`.

    If there is a suitable column for each of its roles, they are only a hint: a label column may hold scores, and a language model
    would train on the texts of a labelled table without the labels.

    `columns` are the columns in use by role. Several are offered only if the data does not say which one is meant.
    """
    roles = [role for role in roles if role.required]
    if _is_suitable(roles, guess, columns):
        if task in _LANGUAGE_MODELS and [role.name for role in roles] == ["text"]:
            return _guess_labelled_tasks(guess)
        label = columns.get("label", "")
        may_be_scores = task == "text_classification" and label in guess.summaries and _holds_fractions(guess, label)
        return [OtherTask("text_regression", _describe_scores(guess.summaries[label]))] if may_be_scores else []
    for names, find_reason in _RULES:
        others = [name for name in names if name != task]
        if len(others) == len(names) and (reason := find_reason(guess)):
            return [OtherTask(name, reason) for name in others]
    return []


def _guess_labelled_tasks(guess: ColumnGuess) -> list[OtherTask]:
    """The task for a table of texts whose other column is named for labels or scores, or is the only other one."""
    for name, find_reason in _LABELLED_RULES:
        if reason := find_reason(guess):
            return [OtherTask(name, reason)]
    return []


def describe_other_tasks(others: Iterable[OtherTask]) -> str:
    """The other tasks as an alternative, after what to do for the chosen one; empty if there are none."""
    found = list(others)
    if not found:
        return ""
    tasks = join(" or ", [one.task for one in found])
    return message("or choose {names} as the task, because {reason}", names=tasks, reason=found[0].reason)


def _is_suitable(roles: Iterable[Column], guess: ColumnGuess, columns: Mapping[str, str]) -> bool:
    return all(
        (name := columns.get(role.name)) is not None
        and name in guess.summaries
        and not guess.unfit(role, guess.summaries[name])
        for role in roles
    )


def _find_answers(guess: ColumnGuess) -> str:
    """That there are questions, contexts and answers, each under a usual name."""
    names = _find_named_columns(guess, "question_answering", ("question", "context", "answers"))
    return message("the data has the columns {names}", names=_list_names(names)) if names else ""


def _find_tags(guess: ColumnGuess) -> str:
    """That each row has a list of words and a list of tags."""
    found = _guess_columns(guess, "token_classification")
    words, tags = (found[role].column if role in found else None for role in ("tokens", "tags"))
    if words is None or tags is None or guess.summaries[words].kind != "list of text":
        return ""
    if guess.summaries[tags].kind not in ("list of text", "list of numbers"):
        return ""
    return message("“{column}” contains a tag for each word", column=tags)


def _find_target_texts(guess: ColumnGuess) -> str:
    """That there are texts and target texts, each under a usual name."""
    names = _find_named_columns(guess, "seq2seq_lm", ("source", "target"))
    if not names or not all(_is_text(guess, name) for name in names):
        return ""
    return message("the data has the columns {names}", names=_list_names(names))


def _find_scores(guess: ColumnGuess) -> str:
    found = _guess_columns(guess, "text_regression")
    text, label = (found[role].column if role in found else None for role in ("text", "label"))
    if text is None or label is None or not _is_text(guess, text) or column_fit.holds_ids(guess.table[label]):
        return ""
    return _describe_scores(guess.summaries[label]) if guess.summaries[label].distinct != 1 else ""


def _find_labels(guess: ColumnGuess) -> str:
    found = _guess_columns(guess, "text_classification")
    text, label = (found[role].column if role in found else None for role in ("text", "label"))
    if text is None or label is None or not _is_text(guess, text):
        return ""
    return message(
        "“{column}” contains labels, for example {label}", column=label, label=guess.summaries[label].examples[0]
    )


def _find_repeated_labels(guess: ColumnGuess) -> str:
    """As `_find_labels`, but what describes each text, such as its source, is not a label."""
    columns = guess.table.column_names
    names = _find_named_columns(guess, "text_classification", ("label",))
    if not names and len(columns) == 2:
        names = [name for name in columns if not _is_text(guess, name)]
    return _find_labels(guess) if any(_holds_repeated_words(guess, name) for name in names) else ""


def _find_named_scores(guess: ColumnGuess) -> str:
    return _find_scores(guess) if _find_named_columns(guess, "text_regression", ("label",)) else ""


def _find_running_text(guess: ColumnGuess) -> str:
    names = guess.table.column_names
    is_running_text = len(names) == 1 and _is_text(guess, names[0])
    return message("the data is running text without any labels") if is_running_text else ""


_RULES: tuple[tuple[tuple[str, ...], Callable[[ColumnGuess], str]], ...] = (
    (("question_answering",), _find_answers),
    (("token_classification",), _find_tags),
    (("seq2seq_lm",), _find_target_texts),
    (("text_regression",), _find_scores),
    (("text_classification",), _find_labels),
    (_LANGUAGE_MODELS, _find_running_text),
)
"""Tasks, and the function that finds the reason for them in the data; the first one that finds a reason wins."""
_LABELLED_RULES: tuple[tuple[str, Callable[[ColumnGuess], str]], ...] = (
    ("question_answering", _find_answers),
    ("text_classification", _find_repeated_labels),
    ("text_regression", _find_named_scores),
)
"""The same for texts that a language model could train on; labels come first, as few numbers are labels."""


def _roles_of(task: str) -> dict[str, Column]:
    return {role.name: role for role in registry.find("task", task, "task.type").columns}


def _guess_columns(guess: ColumnGuess, task: str) -> dict[str, GuessReason]:
    """Role → the guess for it, for each required role that has a suitable column."""
    roles = {name: role for name, role in _roles_of(task).items() if role.required}
    found = guess.guesses(list(roles.values()), {})
    return {
        name: one
        for name, one in found.items()
        if one.column is not None and not guess.unfit(roles[name], guess.summaries[one.column])
    }


def _find_named_columns(guess: ColumnGuess, task: str, wanted: tuple[str, ...]) -> list[str]:
    """The columns under usual names for all these roles; empty if one is missing."""
    roles, found = _roles_of(task), list[str]()
    for name in wanted:
        column = guess_by_name(roles[name].usual_names, guess.table.column_names, set(found))
        if column is None or guess.unfit(roles[name], guess.summaries[column]):
            return []
        found.append(column)
    return found


def _is_text(guess: ColumnGuess, name: str) -> bool:
    return (guess.summaries[name].median_words or 0) >= _TEXT_WORDS


def _holds_repeated_words(guess: ColumnGuess, name: str) -> bool:
    column = guess.summaries[name]
    return (column.median_words or 0) <= _LABEL_WORDS and not column_fit.different_everywhere(column)


def _holds_fractions(guess: ColumnGuess, name: str) -> bool:
    return column_fit.holds_fractions(guess.summaries[name], guess.table[name])


def _describe_scores(column: ColumnSummary) -> str:
    return message("“{column}” contains scores, for example {score}", column=column.name, score=column.examples[0])


def _list_names(names: list[str]) -> str:
    quoted = [f"“{name}”" for name in names]
    return message("{first} and {last}", first=", ".join(quoted[:-1]), last=quoted[-1])
