"""A piece tells which merges make it, as the tokenizer itself would apply them."""

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from backend.contract.tokens.vocabulary import PieceOrigin
from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.vocabulary.piece_origin import origin_of
from backend.tokenizers.vocabulary.tables import read_vocabulary

PAIRS = [("a", "b"), ("c", "d"), ("ab", "cd")]


def origin(piece: str, merges: list[tuple[str, str]], others: str = "abcdx", **options: Any) -> PieceOrigin:
    """Of a piece of a BPE with these merges."""
    made = [left + right.removeprefix(options.get("continuing_subword_prefix", "")) for left, right in merges]
    pieces = list(dict.fromkeys([*others, *(one for pair in merges for one in pair), *made, piece]))
    vocabulary = {each: number for number, each in enumerate(pieces)}
    model = models.BPE(vocab=vocabulary, merges=merges, **options)
    return origin_of(PreTrainedTokenizerFast(tokenizer_object=Tokenizer(model)), vocabulary[piece])


def test_the_tree_has_the_whole_first_and_its_halves_below():
    parts = origin("abcd", PAIRS).parts
    assert [(part.depth, part.piece, part.rank) for part in parts] == [
        (0, "abcd", 2), (1, "ab", 0), (2, "a", None), (2, "b", None), (1, "cd", 1), (2, "c", None), (2, "d", None),
    ]  # fmt: skip


def test_the_lowest_rank_is_merged_first():
    merges = [("b", "c"), ("a", "bc"), ("a", "b")]
    assert origin("abc", merges).parts[1].piece == "a"


def test_a_piece_that_no_merge_reaches_says_so():
    assert "on its own it is split into ab + x" in origin("abx", PAIRS).sentence


def test_a_single_sign_needs_no_merge():
    assert "no merge produces it" in origin("a", PAIRS).sentence


def test_the_end_of_a_word_belongs_to_its_last_sign():
    found = origin("ab</w>", [("a", "b</w>")], end_of_word_suffix="</w>")
    assert [part.piece for part in found.parts] == ["ab</w>", "a", "b</w>"]


@pytest.mark.parametrize(
    ("piece", "parts"), [("abc", ["abc", "a", "##bc", "##b", "##c"]), ("##bc", ["##bc", "##b", "##c"])]
)
def test_what_goes_on_a_word_is_merged_without_its_prefix(piece: str, parts: list[str]):
    found = origin(piece, [("##b", "##c"), ("a", "##bc")], others="a", continuing_subword_prefix="##")
    assert [part.piece for part in found.parts] == parts


def test_every_learnt_piece_is_reached_as_the_tokenizer_reaches_it(byte_level: Path):
    tokenizer = open_tokenizer(str(byte_level))
    learnt = [one for one in read_vocabulary(tokenizer).pieces.to_pylist() if one["rank"] is not None]
    assert len(learnt) > 50
    for one in learnt:
        parts = origin_of(tokenizer, one["id"]).parts
        assert (parts[0].piece, parts[0].text, parts[0].rank) == (one["piece"], one["text"], one["rank"])
        leaves = [part.piece for part in parts if part.rank is None]
        assert "".join(leaves) == one["piece"]


def test_a_score_is_told_with_its_place_among_all():
    model = models.Unigram([("<unk>", 0.0), ("a", -1.0), ("b", -2.0), ("c", -3.0)], unk_id=0)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(model), unk_token="<unk>")
    assert origin_of(tokenizer, 2).sentence.startswith("Log-probability -2.0000, rank 3 of 4.")


@pytest.mark.parametrize("piece", ["", "a" * 300])
def test_odd_pieces_are_no_mistake(piece: str):
    assert origin(piece, PAIRS).sentence


def test_a_gap_among_the_ids_is_told_from_a_spare_row():
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"[UNK]": 0, "a": 2}, unk_token="[UNK]")), unk_token="[UNK]"
    )
    assert "pieces with higher IDs follow" in origin_of(tokenizer, 1).sentence
    assert "This row of the embedding matrix is unused" in origin_of(tokenizer, 3).sentence


def test_a_part_stands_for_its_text():
    vocabulary = {"▁": 0, "a": 1, "▁a": 2}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[("▁", "a")]))
    backend.decoder = decoders.Metaspace()
    assert origin_of(PreTrainedTokenizerFast(tokenizer_object=backend), 2).parts[0].text == " a"
