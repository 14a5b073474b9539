"""Adds an answered row to the user's own file, under the training data's column names."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.output_file import check_appended
from backend.contract.rpc.interactive import AddedRow
from backend.contract.safe_files import user_path
from backend.data.appended_row import NewRow, append_row

SPANS, TAGS = "answers", "tags"
"""Roles of right answers that are more than a word: a place in the context, one tag for each word."""


def answer_role(roles: Sequence[Column]) -> str | None:
    """The role of the right answer: needed to train or evaluate, but not to predict."""
    found = [role.name for role in roles if role.required and not role.needed_to_predict]
    return found[0] if found else SPANS if any(role.name == SPANS for role in roles) else None


def add(
    path: Path,
    roles: Sequence[Column],
    columns: Mapping[str, str],
    answered: Mapping[str, Any],
    right: str | None = None,
    *,
    defuse: bool = False,
    bom: bool = False,
) -> AddedRow:
    """Append an answered row (role → value, and `prediction`). Raises InputError, also for a file in a run's folder.

    `columns` says which column has which role; roles without one use their own name. `right` is the right answer
    according to the user.
    """
    answer = answer_role(roles)
    if right and answer is None:
        raise InputError("this task has no column for a correct answer; add the row without one")
    inputs = {
        columns.get(role.name, role.name): answered.get(role.name)
        for role in roles
        if role.name != answer and (role.name in answered or role.name in columns)
    }
    new = NewRow(
        inputs,
        ("predicted" if "prediction" in inputs else "prediction", answered.get("prediction")),
        None if answer is None else (columns.get(answer, answer), _convert_answer(answer, right, answered)),
    )
    file = user_path(path).absolute()
    check_appended(file)
    appended = append_row(file, new, defuse=defuse, bom=bom)
    return AddedRow(path=str(file), columns=appended.columns, rows=appended.rows, created=appended.created)


def _convert_answer(role: str, right: str | None, answered: Mapping[str, Any]) -> Any:
    """The right answer in its column's type. Raises InputError if it cannot be converted."""
    if not right:
        return None
    if role == SPANS:
        start = str(answered.get("context") or "").find(right)
        if start < 0:
            raise InputError("the correct answer does not occur verbatim in the context; copy it from there", "answers")
        return {"text": [right], "answer_start": [start]}
    if role == TAGS:
        words = answered.get("tokens")
        count = len(words.split() if isinstance(words, str) else words or ())
        if len(right.split()) != count:
            raise InputError(
                "there are {count} words and {right} tags; enter one tag for each word, separated by spaces",
                "tags",
                count=count,
                right=len(right.split()),
            )
    return right
