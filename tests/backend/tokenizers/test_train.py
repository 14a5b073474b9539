"""A new tokenizer knows its texts, keeps them whole, and is opened by transformers."""

import pytest
from transformers import AutoTokenizer

from backend.contract.errors import InputError
from backend.tokenizers.train import TokenizerTraining, train

TEXTS = ["The cat sat on the mat.", "The cat saw the other cat.", "¿Dónde está el niño?", "සිංහල අකුරු"] * 30
KINDS = ("byte_bpe", "bpe", "wordpiece", "unigram")


def quiet(done: int, total: int, unit: str) -> None:
    """Nobody listens."""


def made(kind: str, **changes):
    """A small tokenizer of that kind."""
    return train(
        TEXTS, TokenizerTraining(kind=kind, **({"vocabulary": 400, "use": "encoder_decoder"} | changes)), quiet
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_saved_tokenizer_gives_the_same_ids(kind, tmp_path):
    tokenizer = made(kind)
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again(TEXTS[:4])["input_ids"] == tokenizer(TEXTS[:4])["input_ids"]


@pytest.mark.parametrize("kind", ["byte_bpe", "bpe", "unigram"])
def test_texts_come_back_whole(kind):
    tokenizer = made(kind)
    assert tokenizer.decode(tokenizer(TEXTS[2])["input_ids"], skip_special_tokens=True) == TEXTS[2]


@pytest.mark.parametrize("kind", KINDS)
def test_texts_that_were_seen_hold_nothing_unknown(kind):
    tokenizer = made(kind)
    ids = [token for text in TEXTS[:4] for token in tokenizer(text)["input_ids"]]
    assert tokenizer.unk_token_id not in ids


def test_byte_level_pieces_know_signs_that_were_never_seen():
    tokenizer = made("byte_bpe")
    assert tokenizer.decode(tokenizer("日本 🙂")["input_ids"], skip_special_tokens=True) == "日本 🙂"


@pytest.mark.parametrize(
    ("use", "pieces"),
    [
        ("decoder", ["The", "Ġcat"]),
        ("encoder", ["[CLS]", "The", "Ġcat", "[SEP]"]),
        ("encoder_decoder", ["The", "Ġcat", "</s>"]),
    ],
)
def test_the_use_decides_what_stands_around_a_text(use, pieces):
    tokenizer = made("byte_bpe", use=use)
    assert tokenizer.convert_ids_to_tokens(tokenizer("The cat")["input_ids"]) == pieces


def test_the_second_text_of_a_pair_has_its_own_type():
    tokenizer = made("wordpiece", use="encoder")
    assert tokenizer("cat", "mat", return_token_type_ids=True)["token_type_ids"] == [0, 0, 0, 1, 1]


def test_lower_case_tells_no_difference():
    tokenizer = made("byte_bpe", lowercase=True)
    assert tokenizer("THE CAT")["input_ids"] == tokenizer("the cat")["input_ids"]


def test_the_vocabulary_is_not_larger_than_asked_for():
    assert len(made("byte_bpe", vocabulary=300)) == 300


def test_rare_pieces_are_not_made():
    assert len(made("bpe", min_frequency=31)) < len(made("bpe"))


def test_empty_texts_are_refused():
    with pytest.raises(InputError, match="no text"):
        train(["", "  "], TokenizerTraining(), quiet)


def test_progress_counts_texts():
    told = []
    train(TEXTS, TokenizerTraining(vocabulary=300), lambda done, total, unit: told.append((done, total)), len(TEXTS))
    assert told[-1] == (len(TEXTS), len(TEXTS))
