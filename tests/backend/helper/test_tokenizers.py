"""Tokenizers are compared, trained and extended by the helper, on real data; long answers come as an Arrow file."""

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.rpc.protocol import Progress
from backend.contract.tokens import options
from backend.helper.worker import QUERIES
from backend.tokenizers.loading import open_named

BERT_TINY = str(resource("demo", "bert-tiny"))
REVIEWS = {"source": "files", "train": str(resource("demo", "sentiment", "train.csv"))}

TEXT, DATA = (QUERIES[query].answer for query in ("compare_text", "compare_data"))
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
    with pytest.raises(InputError, match="it has no tokenizer"):
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


def test_a_tokenizer_is_compared_with_itself_and_other_options():
    spaced = options.format_name(BOTH[1], options={"add_prefix_space": True})
    found = TEXT({"tokenizers": [BOTH[1], spaced], "text": "house"}, silent)
    assert ["".join(token.piece for token in found.tokens if token.tokenizer == n) for n in (0, 1)] == [
        "house",
        "Ġhouse",
    ]


def test_the_data_of_a_run_is_compared_whatever_its_source():
    found = DATA({"tokenizers": BOTH, "data": {"source": "demo", "name": "sentiment"}, "column": "text"}, silent)
    assert (found.total.rows, found.column) == (2400, "text")


def ask(query, arguments):
    """The answer, and what was told before."""
    told: list[Progress] = []
    return QUERIES[query].answer(arguments, told.append), told


def test_a_tokenizer_is_trained_measured_and_written(tmp_path: Path):
    settings = {"kind": "wordpiece", "use": "encoder", "vocabulary": 900}
    question = {"data": REVIEWS, "columns": ["text"], "settings": settings, "output": str(tmp_path / "made")}
    made, told = ask("train_tokenizer", {**question, "compare_with": BERT_TINY})
    assert [one.tokenizer for one in made.compression] == [str(tmp_path / "made"), BERT_TINY]
    assert made.held_out
    assert (made.rows, made.compression[0].rows) == (2280, 120)
    assert len(AutoTokenizer.from_pretrained(made.path)) == made.vocabulary == 900
    stages = list(dict.fromkeys(one.text for one in told if one.text))
    assert stages[:3] == ["Reading the data", "Reading the texts", "Learning the pieces"]
    assert stages[-1] == "Measuring"


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"settings": {"vocabulary": 0}}, "tokenizer.vocabulary", "greater than or equal to 2"),
        ({"settings": {"vocabulary": 20}}, "vocabulary", "the 256 bytes"),
        ({"columns": ["review"]}, "data.columns", "no column 'review'; the columns are text, label"),
        ({"data": {"source": "files", "train": "/nowhere.csv"}}, "data.train", "no such file"),
        ({"output": " "}, "output", "specify the folder"),
        ({"output": BERT_TINY}, "output", "already contains a tokenizer; choose"),
        ({"compare_with": "/nowhere"}, "model.tokenizer", "no such folder"),
    ],
)
def test_each_mistake_names_its_field_and_nothing_is_written(changes, field, sentence, tmp_path: Path):
    question = {"data": REVIEWS, "columns": ["text"], "settings": {}, "output": str(tmp_path / "made")}
    with pytest.raises(InputError, match=sentence) as caught:
        ask("train_tokenizer", {**question, **changes})
    assert caught.value.field == field
    assert list(tmp_path.iterdir()) == []


def test_proposed_tokens_are_answered_from_an_open_tokenizer():
    found, _ = ask("propose_tokens", {"tokenizer": BERT_TINY, "add": ["zyzzyva"], "special": ["<review>"]})
    assert [one.pieces for one in found.tokens] == [["z", "##y", "##zzy", "##va"], ["<", "review", ">"]]


def test_a_list_that_is_too_long_is_refused():
    with pytest.raises(InputError, match="add: 50,001 values are too many"):
        ask("propose_tokens", {"tokenizer": BERT_TINY, "add": ["a"] * 50_001})


def test_proposed_tokens_are_counted_in_a_column():
    about = {"tokenizer": BERT_TINY, "add": ["service was", "the"], "data": REVIEWS, "columns": ["text"]}
    found, told = ask("count_proposed", about)
    assert found.counts["service was"] == 23
    assert found.tokens_before - found.tokens_after == 23
    assert (told[-1].done, told[-1].total) == (2400, 2400)


def test_a_runs_name_is_a_tokenizer_wherever_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BURNISH_RUNS", str(tmp_path))
    (tmp_path / "reviews").mkdir()
    (tmp_path / "reviews" / "spec.yaml").write_text(f"model: {{name_or_path: {BERT_TINY}}}")
    about = {"tokenizer": "reviews", "add": ["zyzzyva"], "data": REVIEWS, "columns": ["text"]}
    assert ask("count_proposed", about)[0].counts == {"zyzzyva": 0}
    assert ask("extend_tokenizer", {**about, "output": str(tmp_path / "own")})[0].added == 1
    assert open_named("reviews").get_vocab() == open_named(BERT_TINY).get_vocab()


def test_the_open_tokenizer_stays_as_it_is(tmp_path: Path):
    about = {"tokenizer": BERT_TINY, "add": ["zyzzyva"]}
    made, _ = ask("extend_tokenizer", {**about, "output": str(tmp_path / "own")})
    assert (made.added, made.vocabulary) == (1, 30523)
    found, _ = ask("propose_tokens", about)
    assert found.tokens[0].problem == ""
