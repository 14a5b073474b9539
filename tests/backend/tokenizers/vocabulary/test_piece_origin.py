"""A piece tells which merges make it, as the tokenizer itself would apply them."""

from pathlib import Path

import pyarrow as pa
import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.vocabulary.piece_origin import Merges, merges_of, origin_by_merges, origin_by_score
from backend.tokenizers.vocabulary.tables import read_vocabulary

RANKS = {("a", "b"): 0, ("c", "d"): 1, ("ab", "cd"): 2}


def test_the_tree_has_the_whole_first_and_its_halves_below():
    parts = origin_by_merges("abcd", Merges(RANKS)).parts
    assert [(part.depth, part.piece, part.rank) for part in parts] == [
        (0, "abcd", 2), (1, "ab", 0), (2, "a", None), (2, "b", None), (1, "cd", 1), (2, "c", None), (2, "d", None),
    ]  # fmt: skip


def test_the_lowest_rank_is_merged_first():
    merges = Merges({("b", "c"): 0, ("a", "bc"): 1, ("a", "b"): 2})
    assert origin_by_merges("abc", merges).parts[1].piece == "a"


def test_a_piece_that_no_merge_reaches_says_so():
    found = origin_by_merges("abx", Merges(RANKS))
    assert "on its own it is split into ab + x" in found.sentence


def test_a_single_sign_needs_no_merge():
    assert "no merge produces it" in origin_by_merges("a", Merges(RANKS)).sentence


def test_the_end_of_a_word_belongs_to_its_last_sign():
    merges = Merges({("a", "b</w>"): 0}, suffix="</w>")
    assert [part.piece for part in origin_by_merges("ab</w>", merges).parts] == ["ab</w>", "a", "b</w>"]


def test_what_goes_on_a_word_is_merged_without_its_prefix():
    vocabulary = {"a": 0, "##b": 1, "##c": 2, "##bc": 3, "abc": 4}
    model = models.BPE(vocab=vocabulary, merges=[("##b", "##c"), ("a", "##bc")], continuing_subword_prefix="##")
    tables = read_vocabulary(PreTrainedTokenizerFast(tokenizer_object=Tokenizer(model)))
    assert tables.merges["result"].to_pylist() == ["##bc", "abc"]
    assert tables.pieces["rank"].to_pylist() == [None, None, None, 0, 1]
    merges = merges_of(tables.pieces, tables.merges)
    assert [part.piece for part in origin_by_merges("abc", merges).parts] == ["abc", "a", "##bc", "##b", "##c"]
    assert [part.piece for part in origin_by_merges("##bc", merges).parts] == ["##bc", "##b", "##c"]


def test_every_learnt_piece_is_reached_as_the_tokenizer_reaches_it(byte_level: Path):
    tables = read_vocabulary(open_tokenizer(str(byte_level)))
    merges = merges_of(tables.pieces, tables.merges)
    learnt = [one for one in tables.pieces.to_pylist() if one["rank"] is not None]
    assert len(learnt) > 50
    for one in learnt:
        parts = origin_by_merges(one["piece"], merges).parts
        assert (parts[0].piece, parts[0].rank) == (one["piece"], one["rank"])
        leaves = [part.piece for part in parts if part.rank is None]
        assert "".join(leaves) == one["piece"]


def test_a_score_is_told_with_its_place_among_all():
    assert "rank 3 of 120" in origin_by_score(-2.5, 3, 120).sentence


@pytest.mark.parametrize("piece", ["", "a" * 300])
def test_odd_pieces_are_no_mistake(piece: str):
    assert origin_by_merges(piece, Merges(RANKS)).sentence


def test_merges_know_what_pieces_stand_for():
    pieces = pa.table({"piece": ["Ġa"], "text": [" a"]})
    merges = pa.table({"left": ["Ġ"], "right": ["a"], "result": ["Ġa"]})
    assert origin_by_merges("Ġa", merges_of(pieces, merges)).parts[0].text == " a"
