"""Tokens are counted by language, and as often as the tokenizers themselves count them."""

from pathlib import Path

import numpy as np
import pytest

from backend.tokenizers import counting
from backend.tokenizers.compare_data import compare_data
from backend.tokenizers.counting import batches, count_pieces, in_order_of
from backend.tokenizers.loading import open_tokenizer

TEXTS = ["The quick fox", "東京は", "", "jumps over the dog", "the"]
LANGUAGES = ["en", "ja", "en", "en", "en"]


@pytest.fixture(scope="module")
def two(byte_level: Path, unigram: Path) -> list:
    return [(path.name, open_tokenizer(str(path))) for path in (byte_level, unigram)]


def told(done: int) -> None:
    """Nobody listens."""


def lengths(tokenizer) -> list[int]:
    return [len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TEXTS]


def test_totals_are_the_sums_over_the_rows(two: list):
    found = compare_data(two, TEXTS, LANGUAGES, told).total
    assert found.tokens == [sum(lengths(tokenizer)) for _, tokenizer in two]
    assert (found.rows, found.words, found.characters) == (5, 9, sum(map(len, TEXTS)))
    assert found.bytes == sum(len(text.encode()) for text in TEXTS)


def test_languages_come_with_most_rows_first(two: list):
    found = compare_data(two, TEXTS, LANGUAGES, told, language_column="language")
    assert [(one.language, one.rows) for one in found.languages] == [("en", 4), ("ja", 1)]
    assert found.languages[1].tokens == [lengths(tokenizer)[1] for _, tokenizer in two]


def test_without_a_language_column_there_are_no_languages(two: list):
    assert compare_data(two, TEXTS, [""] * 5, told).languages == []


def test_histograms_hold_every_row(two: list):
    found = compare_data(two, TEXTS, LANGUAGES, told)
    assert [sum(bars) for bars in found.histograms] == [5, 5]
    assert len(found.bins) == len(found.histograms[0]) + 1
    assert [spread.max for spread in found.spreads] == [max(lengths(tokenizer)) for _, tokenizer in two]


def test_no_rows_are_no_mistake(two: list):
    found = compare_data(two, [], [], told)
    assert found.total.tokens == [0, 0]
    assert found.spreads == [None, None]


def test_unknown_tokens_are_counted(two: list):
    found = compare_data(two, ["жжж"], [""], told)
    assert found.total.unknown[0] == 0
    assert found.total.unknown[1] > 0


def test_pieces_are_counted_by_id(two: list):
    tokenizer = two[0][1]
    counts = count_pieces(tokenizer, TEXTS, told)
    expected = [number for text in TEXTS for number in tokenizer(text)["input_ids"]]
    assert counts.sum() == len(expected)
    assert all(counts[number] == expected.count(number) for number in set(expected))


def test_progress_counts_texts(two: list, monkeypatch):
    monkeypatch.setattr(counting, "BATCH", 2)
    done: list[int] = []
    count_pieces(two[0][1], TEXTS, done.append)
    assert done == [2, 4, 5]


def test_long_texts_fill_a_batch(monkeypatch):
    monkeypatch.setattr(counting, "BATCH_CHARACTERS", 10)
    assert [len(batch) for batch in batches(["a" * 6, "b" * 6, "c"])] == [2, 1]


def test_ids_that_never_occurred_count_nothing():
    assert in_order_of(np.array([2, 0, 9]), np.array([5, 6, 7])).tolist() == [7, 5, 0]
