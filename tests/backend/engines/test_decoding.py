"""How scores become tokens: what a row writes depends on no row beside it."""

import numpy as np

from backend.contract.rpc.generation import GenerationSettings
from backend.engines.decoding import DecodingRules


def test_the_penalty_for_repeating_counts_no_padding():
    settings = GenerationSettings(repetition_penalty=2.0)
    scores = np.array([[2.0, 1.9, 0.1]], np.float32)
    alone = DecodingRules(settings, frozenset({0}), 4).apply(scores, np.array([[2]]), 0)
    padded = DecodingRules(settings, frozenset({0}), 4, padding=np.array([2])).apply(scores, np.array([[0, 0, 2]]), 0)
    np.testing.assert_array_equal(padded, alone)


def test_nor_does_it_for_beams_of_which_a_row_has_several():
    settings = GenerationSettings(repetition_penalty=2.0, num_beams=2)
    scores, seen = np.ones((4, 5), np.float32), np.array([[0, 3], [0, 4], [2, 3], [2, 4]])
    found = DecodingRules(settings, frozenset({0}), 4, padding=np.array([1, 0])).apply(scores, seen, 0)
    np.testing.assert_array_equal(found != 1.0, [
        [False, False, False, True, False],
        [False, False, False, False, True],
        [False, False, True, True, False],
        [False, False, True, False, True],
    ])  # fmt: skip
