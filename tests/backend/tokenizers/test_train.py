"""A new tokenizer knows its texts, keeps them whole, and is opened by transformers."""

import pytest
from transformers import AutoTokenizer

from backend.contract.errors import InputError
from backend.tokenizers import train as training
from backend.tokenizers.train import TokenizerTraining, train

TEXTS = ["The cat sat on the mat.", "The cat saw the other cat.", "¿Dónde está el niño?", "සිංහල අකුරු"] * 30
KINDS = ("byte_bpe", "bpe", "wordpiece", "unigram")


def quiet(stage: str, done: int, total: int, unit: str) -> None:
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
    train(TEXTS, TokenizerTraining(vocabulary=300), lambda *words: told.append(words), len(TEXTS))
    assert told[0] == ("Reading the texts", len(TEXTS), len(TEXTS), "texts")


WHOLE = ("byte_bpe", "bpe", "unigram")


@pytest.mark.parametrize("pre_tokenizer", ["usual", "whitespace", "punctuation", "none"])
@pytest.mark.parametrize("kind", WHOLE)
def test_texts_come_back_whole_whatever_the_borders(kind, pre_tokenizer):
    tokenizer = made(kind, pre_tokenizer=pre_tokenizer, split_digits=True)
    assert tokenizer.decode(tokenizer(TEXTS[0], add_special_tokens=False)["input_ids"]) == TEXTS[0]


@pytest.mark.parametrize(
    ("kind", "pre_tokenizer", "pieces"),
    [
        ("byte_bpe", "usual", ["mat", "."]),
        ("byte_bpe", "whitespace", ["mat."]),
        ("bpe", "usual", ["▁mat."]),
        ("bpe", "punctuation", ["▁mat", "."]),
        ("wordpiece", "usual", ["mat", "."]),
        ("wordpiece", "whitespace", ["mat."]),
    ],
)
def test_pieces_do_not_reach_over_the_chosen_borders(kind, pre_tokenizer, pieces):
    tokenizer = made(kind, pre_tokenizer=pre_tokenizer, min_frequency=1)
    assert [piece.lstrip("Ġ") for piece in tokenizer.tokenize("The cat sat on the mat.")][-len(pieces) :] == pieces


def test_without_borders_a_piece_holds_several_words():
    assert any(" " in piece.replace("Ġ", " ").strip() for piece in made("byte_bpe", pre_tokenizer="none").get_vocab())


def test_word_pieces_need_borders():
    with pytest.raises(InputError, match="pre_tokenizer: WordPiece"):
        made("wordpiece", pre_tokenizer="none")


def test_accents_are_stripped():
    tokenizer = made("byte_bpe", strip_accents=True)
    assert tokenizer("Dónde está")["input_ids"] == tokenizer("Donde esta")["input_ids"]


def test_a_normaliser_that_is_none_keeps_spaces():
    assert (
        made("unigram", normaliser="none").decode(made("unigram", normaliser="none")("cat  sat")["input_ids"][:-1])
        == "cat  sat"
    )


def test_more_special_tokens_are_saved_and_never_split(tmp_path):
    made("byte_bpe", special_tokens=["<speaker>"]).save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again.tokenize("The<speaker>cat")[1] == "<speaker>"
    assert "<speaker>" in again.all_special_tokens


@pytest.mark.parametrize(("kind", "vocabulary"), [("byte_bpe", 100), ("unigram", 20), ("bpe", 2), ("wordpiece", 2)])
def test_a_vocabulary_without_room_is_refused_by_name(kind, vocabulary):
    with pytest.raises(InputError, match=r"^vocabulary: .*; (set|choose)"):
        made(kind, vocabulary=vocabulary)


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_signs_without_room_are_unknown_and_the_size_holds(kind):
    tokenizer = made(kind, vocabulary=30)
    assert len(tokenizer) <= 30
    assert tokenizer.unk_token_id in tokenizer(" ".join(TEXTS[:4]))["input_ids"]


def test_an_empty_special_token_is_refused():
    with pytest.raises(InputError, match=r"^special_tokens"):
        made("byte_bpe", special_tokens=[" "])


@pytest.mark.parametrize("kind", ["byte_bpe", "bpe", "wordpiece"])
def test_long_text_is_handed_over_in_parts_with_whole_words(kind: str, monkeypatch: pytest.MonkeyPatch):
    def pieces() -> set[str]:
        settings = TokenizerTraining(kind=kind, vocabulary=400, use="encoder_decoder")  # type: ignore[arg-type]
        return set(train(["\n ".join(TEXTS)], settings, quiet).get_vocab())

    whole = pieces()
    monkeypatch.setattr(training, "MAX_PART", 40)
    assert pieces() == whole


def test_word_that_is_longer_than_a_part_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(training, "MAX_PART", 6)
    settings = TokenizerTraining(kind="bpe", vocabulary=100, use="decoder")
    with pytest.raises(InputError, match="a word of more than 6 characters"):
        train(["some wonderful words"], settings, quiet)
