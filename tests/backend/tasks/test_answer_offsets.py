"""Where an answer stands, as tables write it."""

from backend.tasks._question_answering_features import Answers, Unreadable, _read


def test_an_offset_of_nan_is_an_unknown_one() -> None:
    assert _read("red", float("nan")) == Answers(("red",), (None,))


def test_an_offset_without_end_is_no_number() -> None:
    found = _read('{"text": ["red"], "answer_start": [1e400]}', None)
    assert isinstance(found, Unreadable)
    assert "no number" in str(found)
