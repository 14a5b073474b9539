"""The trivial rules are counted rightly, since every result is read beside them."""

import math

import pytest

from docs.results.baselines import KneserNey, commonest_label, constant_span, majority_tagger


def test_the_commonest_label_is_that_of_training():
    assert commonest_label(["a", "a", "b"], ["b", "b", "a", "a"]) == 0.5


def test_a_word_gets_its_commonest_tag_and_a_new_one_none():
    tag = majority_tagger([["Rome", "fell"], ["rome"], ["Rome"]], [["B-LOC", "O"], ["B-LOC"], ["O"]])
    assert tag(["ROME", "rose"]) == ["B-LOC", "O"]


def test_the_best_span_is_chosen_on_the_training_rows():
    train = [("the red fox ran", ["red"]), ("a blue bird sang", ["blue"])]
    exact = lambda span, answers: float(span in answers)  # noqa: E731
    assert constant_span(train, [("one green leaf", ["green"]), ("one green leaf", ["leaf"])], exact) == 0.5


@pytest.mark.parametrize("order", [1, 2, 3])
def test_probabilities_sum_to_one(order: int):
    tokens = [0, 1, 2, 0, 1, 3, 0, 2, 2, 1, 0, 1, 2]
    model = KneserNey(tokens, 5, order)
    for context in ([], [0], [0, 1], [4, 4]):
        assert math.isclose(sum(model.probability(context, token) for token in range(5)), 1.0)


def test_a_longer_memory_knows_a_repeated_text_better():
    tokens = [0, 1, 0, 2] * 50
    assert KneserNey(tokens, 4, 3).perplexity(tokens) < 1.2 < KneserNey(tokens, 4, 2).perplexity(tokens)


def test_an_unseen_token_is_less_likely_and_not_impossible():
    model = KneserNey([0, 1, 0, 1, 2, 3, 0, 1, 4], 10)
    assert 0 < model.probability([0, 1], 9) < model.probability([0, 1], 2)
