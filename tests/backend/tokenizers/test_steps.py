"""The steps of a tokenizer are told of any text and any pair, however long and however broken."""

from pathlib import Path

from backend.contract.tokenizer_steps import MOST_CHARACTERS
from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.steps import pipeline


def test_a_long_and_broken_pair_is_cleaned_and_shortened(word_piece: Path):
    found = pipeline.steps(open_tokenizer(str(word_piece)), "fox", "\ud83d" + "a " * MOST_CHARACTERS, True)
    assert found.pair is not None
    assert (found.pair[:2], len(found.pair)) == ("\ufffda", MOST_CHARACTERS)
    assert found.shortened
