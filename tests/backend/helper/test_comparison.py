"""Comparisons are answered for two to four tokenizers; long ones come as an Arrow file."""

from pathlib import Path

import msgspec
import pytest

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.tokens import name
from backend.helper import large_answer
from backend.helper.queries.comparison import QUERIES

TEXT, DATA = (query.answer for query in QUERIES)
BOTH = [str(resource("demo", name)) for name in ("bert-tiny", "austen-gpt2")]


def silent(progress: object) -> None:
    """Nobody listens."""


def test_a_text_is_compared():
    found = TEXT({"tokenizers": BOTH, "text": "unbelievable"}, silent)
    assert [counts.tokenizer for counts in found.counts] == BOTH
    assert found.places == 1


@pytest.mark.parametrize("tokenizers", [BOTH[:1], [*BOTH, *BOTH, *BOTH]])
def test_another_number_is_told(tokenizers: list[str]):
    with pytest.raises(InputError, match="2 to 4 can be compared"):
        TEXT({"tokenizers": tokenizers, "text": "a"}, silent)


def test_what_is_no_tokenizer_is_told(tmp_path: Path):
    with pytest.raises(InputError, match="there is no tokenizer in it"):
        TEXT({"tokenizers": [BOTH[0], str(tmp_path)], "text": "a"}, silent)


def test_a_column_is_compared_by_language(tmp_path: Path):
    data = tmp_path / "texts.csv"
    data.write_text("id,sentence,lang\n1,the house is old,en\n2,la casa,es\n3,a dog,en\n", encoding="utf-8")
    told: list = []
    found = DATA({"tokenizers": BOTH, "data": str(data), "language_column": ""}, told.append)
    assert (found.column, found.language_column) == ("sentence", "lang")
    assert [(one.language, one.rows) for one in found.languages] == [("en", 2), ("es", 1)]
    assert told[-1].done == 3


def test_no_language_column_may_be_wanted(tmp_path: Path):
    data = tmp_path / "texts.csv"
    data.write_text("sentence,lang\nthe house is old,en\n", encoding="utf-8")
    found = DATA({"tokenizers": BOTH, "data": str(data), "language_column": None}, silent)
    assert (found.language_column, found.languages) == ("", [])


def test_a_long_comparison_is_the_same_from_an_arrow_file():
    from app.services.backend_client import ArrowAnswer
    from app.services.comparison_answer import comparison_of

    found = TEXT({"tokenizers": BOTH, "text": "The old house.\nA dog"}, silent)
    again = comparison_of(ArrowAnswer(large_answer.written(found)))
    assert msgspec.json.encode(again) == msgspec.json.encode(found)


def test_a_tokenizer_is_compared_with_itself_and_other_options():
    spaced = name.written(BOTH[1], options={"add_prefix_space": True})
    found = TEXT({"tokenizers": [BOTH[1], spaced], "text": "house"}, silent)
    assert ["".join(token.piece for token in found.tokens if token.tokenizer == n) for n in (0, 1)] == [
        "house",
        "Ġhouse",
    ]


def test_the_data_of_a_run_is_compared_whatever_its_source():
    found = DATA({"tokenizers": BOTH, "data": {"source": "demo", "name": "sentiment"}, "column": "text"}, silent)
    assert (found.total.rows, found.column) == (2400, "text")
