"""Several texts are the padded batch that a model gets; ids and pieces find back to text, whatever is wrong with them."""

from pathlib import Path

import numpy as np
import pytest

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.tokens.batches import BatchQuestion, TokenGrid
from backend.tokenizers import batch
from backend.tokenizers.decoding import decode_rows, pieces_to_text
from backend.tokenizers.loading import open_tokenizer

BERT_TINY = str(resource("demo", "bert-tiny"))
TEXTS = ["a film", "", "a longer film, unbelievably long"]


def grid_of(**asked) -> TokenGrid:
    return batch.grid(open_tokenizer(BERT_TINY), BatchQuestion(tokenizer="", **{"texts": TEXTS, **asked}))


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"padding": "max_length", "max_length": 12},
        {"padding_side": "left", "pad_to_multiple_of": 8},
        {"max_length": 6, "truncation": "only_first"},
    ],
)
def test_a_batch_is_that_of_transformers(asked: dict):
    found = grid_of(**asked)
    given = {"padding": True, "return_tensors": "np", "verbose": False, "return_token_type_ids": True, **asked}
    given["truncation"] = asked.get("truncation", "max_length" in asked)
    own = open_tokenizer(BERT_TINY)(TEXTS, **given)
    shape = (found.rows, found.width)
    assert np.array_equal(np.reshape(found.ids, shape), own["input_ids"])
    assert np.array_equal(np.reshape(found.mask, shape), own["attention_mask"])
    assert np.array_equal(np.reshape(found.types, shape), own["token_type_ids"])
    assert found.lengths == own["attention_mask"].sum(1).tolist()


def test_what_is_cut_off_is_counted():
    assert grid_of(max_length=4).left_out == [0, 0, 8]


def test_without_padding_shorter_rows_have_empty_cells():
    found = grid_of(padding="")
    assert found.lengths == [4, 2, 12]
    assert found.ids[4 : found.width] == [-1] * 8


def test_a_tokenizer_without_padding_token_is_filled_as_in_training(byte_level: Path):
    question = BatchQuestion(tokenizer="", texts=["fox", "lazy dog over there"], padding_side="left")
    found = batch.grid(open_tokenizer(str(byte_level)), question)
    assert found.pad_id == 0
    assert found.ids[: found.width - found.lengths[0]] == [0] * (found.width - found.lengths[0])
    assert found.mask[found.width - found.lengths[0] : found.width] == [1] * found.lengths[0]
    assert "no padding token" in found.notes[0]


def test_pieces_of_all_ids_are_told():
    found = grid_of(texts=["a film"])
    assert dict(zip(found.piece_ids, found.pieces, strict=True))[2143] == "film"
    assert found.special_ids == [101, 102]


def test_a_batch_that_nobody_could_look_at_is_refused():
    with pytest.raises(InputError, match="too many for one batch"):
        grid_of(texts=["a " * 2000] * 200)


def test_nothing_is_a_batch_too():
    assert grid_of(texts=[]).rows == 0


def test_several_lists_of_ids_decode_at_once():
    found = decode_rows(open_tokenizer(BERT_TINY), [[101, 2143, 1010, 102], [99999, 2143], []], skip_special=True)
    assert [row.text for row in found.rows] == ["film,", "⟨no token 99999⟩film", ""]
    assert found.rows[0].with_special == "[CLS] film, [SEP]"
    assert found.rows[1].missing == [0]
    assert found.rows[1].pieces == ["", "film"]


def test_spaces_before_punctuation_are_cleaned_up_where_asked(unigram: Path):
    tokenizer = open_tokenizer(str(unigram))
    (row,) = decode_rows(tokenizer, [tokenizer("dog . fox")["input_ids"]], clean_up=True).rows
    assert (row.text, row.with_special, row.cleaned) == ("dog. fox", "dog . fox", "dog. fox")


def test_pieces_become_ids_and_text():
    found = pieces_to_text(open_tokenizer(BERT_TINY), ["un", "##believable", "abcxyz", "[SEP]", "\ud800"])
    assert found.ids == [4895, -1, -1, 102, -1]
    assert found.unknown == [1, 2, 4]
    assert found.text.startswith("un⟨no piece ##believable⟩⟨no piece abcxyz⟩")
