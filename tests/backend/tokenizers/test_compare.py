"""Tokenizers are compared place by place on one text."""

import random
from pathlib import Path

import numpy as np
import pytest
from transformers import ByT5Tokenizer

from backend.contract.errors import InputError
from backend.tokenizers import token_counts
from backend.tokenizers.compare import _differences, check_number, compare_data, compare_text
from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.token_counts import TokenCounter, batches, count_pieces, counts_of_ids, measure_compression

TEXTS = ["The quick fox", "東京は", "", "jumps over the dog", "the"]
LANGUAGES = ["en", "ja", "en", "en", "en"]

SIGNS = "ab the.,\n\n\r\t \u2028\u00a0é\u0301東京සි😀👩\u200d👧\x00\ud800\ufeff"
"""Breaks, spaces, marks, emoji, half a pair, and what nobody types."""


@pytest.fixture(scope="module")
def three(byte_level: Path, unigram: Path, word_piece: Path) -> list:
    return [(path.name, open_tokenizer(str(path))) for path in (byte_level, unigram, word_piece)]


def spans(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array(pairs, np.int64).reshape(-1, 2)


def test_what_all_cut_alike_does_not_differ():
    differing, places = _differences([spans((0, 3), (3, 5)), spans((0, 3), (3, 4), (4, 5))])
    assert [each.tolist() for each in differing] == [[False, True], [False, True, True]]
    assert places == 1


def test_neighbouring_differences_between_common_borders_are_one_place():
    differing, places = _differences(
        [spans((0, 4), (4, 6), (6, 8)), spans((0, 1), (1, 2), (2, 4), (4, 6), (6, 7), (7, 8))]
    )
    assert differing[0].tolist() == [True, False, True]
    assert places == 2


def test_tokens_without_text_never_differ():
    differing, _ = _differences([spans((0, 0), (0, 2)), spans((0, 1), (1, 2))])
    assert differing[0].tolist() == [False, True]


def test_a_tokenizer_does_not_differ_from_itself(three: list):
    found = compare_text([three[0], three[0]], "The quick brown fox\njumps")
    assert found.places == 0
    assert not any(token.differs for token in found.tokens)


def test_the_space_before_a_word_is_no_difference(demo: list):
    found = compare_text(demo, "she ran into the garden")
    garden = [token for token in found.tokens if token.text.strip() == "garden"]
    assert [token.text for token in garden] == ["garden", " garden"]
    assert not any(token.differs for token in garden)


def test_a_token_is_of_the_line_of_its_first_letter(three: list):
    text = "The fox\n\nthe dog"
    found = compare_text(three, text)
    assert found.lines == 3
    for token in found.tokens:
        if token.text.strip():
            letters = token.start + len(token.text) - len(token.text.lstrip())
            assert token.line == text[:letters].count("\n")


def test_special_tokens_at_the_end_stay_on_the_last_line(demo: list):
    found = compare_text(demo, "one\ntwo")
    assert [token.piece for token in found.tokens if token.tokenizer == 0 and token.line == 1][-1] == "[SEP]"


def test_counts_are_those_of_the_tokenizer(three: list):
    text = "The quick brown fox. 東京"
    found = compare_text(three, text, special_tokens=False)
    for (_, tokenizer), counts in zip(three, found.counts, strict=True):
        assert counts.tokens == len(tokenizer(text, add_special_tokens=False)["input_ids"])


def test_an_end_of_text_is_not_unknown(demo: list):
    text = "a house<|endoftext|>"
    found = compare_text(demo, text, special_tokens=False)
    assert (found.counts[1].special, found.counts[1].unknown) == (1, 0)
    assert TokenCounter(demo[1][1]).counts([text])[1].tolist() == [0]
    assert measure_compression(demo[1][1], "", [text]).unknown == 0


def test_an_empty_text_has_no_tokens(three: list):
    found = compare_text(three, "", special_tokens=False)
    assert (found.tokens, found.lines, found.places) == ([], 1, 0)


@pytest.mark.parametrize("seed", range(40))
def test_any_text_is_compared(three: list, seed: int):
    chance = random.Random(seed)
    text = "".join(chance.choice(SIGNS) for _ in range(chance.randrange(60)))
    found = compare_text(three, text)
    lines = [token.line for token in found.tokens if token.tokenizer == 1]
    assert lines == sorted(lines)
    assert all(0 <= token.line < found.lines for token in found.tokens)


def test_tokens_of_bytes_lie_where_their_characters_do(three: list):
    found = compare_text([three[0], ("bytes", ByT5Tokenizer())], "né 東", special_tokens=False)
    cut = [(token.start, token.end) for token in found.tokens if token.tokenizer == 1]
    assert cut == [(0, 1), (1, 2), (1, 2), (2, 3), (3, 4), (3, 4), (3, 4)]


def test_a_lone_surrogate_is_a_replacement_character(three: list):
    tokens = compare_text([three[0], ("bytes", ByT5Tokenizer())], "\ud83d", special_tokens=False).tokens
    assert {token.text for token in tokens} == {"\ufffd"}


@pytest.mark.parametrize("number", [1, 5])
def test_fewer_than_two_or_more_than_four_are_refused(number: int):
    with pytest.raises(InputError, match=f"2 to 4 can be compared, not {number}"):
        check_number(["one"] * number)


@pytest.fixture(scope="module")
def demo() -> list:
    from backend.contract.resources import resource

    names = ("bert-tiny", "austen-gpt2")
    return [(name, open_tokenizer(str(resource("demo", name)))) for name in names]


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
    monkeypatch.setattr(token_counts, "BATCH", 2)
    done: list[int] = []
    count_pieces(two[0][1], TEXTS, done.append)
    assert done == [2, 4, 5]


def test_long_texts_fill_a_batch(monkeypatch):
    monkeypatch.setattr(token_counts, "BATCH_CHARACTERS", 10)
    assert [len(batch) for batch in batches(["a" * 6, "b" * 6, "c"])] == [2, 1]


def test_ids_that_never_occurred_count_nothing():
    assert counts_of_ids(np.array([2, 0, 9]), np.array([5, 6, 7])).tolist() == [7, 5, 0]
