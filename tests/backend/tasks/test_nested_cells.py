"""A cell of brackets without end is text like any other, wherever a task looks for a list in it."""

import pytest

from backend.tasks._chat import messages_of
from backend.tasks._question_answering_features import Answers, _read
from backend.tasks._token_classification_features import _split_words

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("cell", [DEEP, "[" * 100_000])
def test_an_answer_of_brackets_is_plain_text(cell: str) -> None:
    assert _read(cell, None) == Answers((cell,), (None,))


def test_messages_of_brackets_are_none() -> None:
    assert messages_of(DEEP) == "messages that are not a JSON list"


def test_words_of_brackets_are_words() -> None:
    assert _split_words(DEEP) == [DEEP]
