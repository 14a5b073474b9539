"""Seeds and drawn numbers stay the same from release to release, so that a run can be repeated and resumed."""

import torch

from backend.engines.torch.layers.dropout import dropout
from backend.engines.torch.random_bits import derive_seed, draw_bits
from backend.engines.torch.stochastic_rounding import round_stochastically


def test_a_place_in_a_run_has_the_seed_that_it_always_had():
    assert derive_seed(42, 7, 1, 0) == 14608867360668739889
    assert derive_seed(42, 7, "rounding") == 390303366541889691


def test_the_bits_of_a_seed_are_those_that_they_always_were():
    torch.manual_seed(3)
    assert draw_bits(6).tolist() == [12507, 53810, 14888, 28550, 63741, 60093]


def test_dropout_drops_what_it_always_dropped():
    torch.manual_seed(3)
    kept = (dropout(torch.ones(24), 0.5) != 0).int().tolist()
    assert kept == [1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0]


def test_values_are_rounded_as_they_always_were():
    values = 1 + torch.arange(0.5, 12) / 2**10  # between numbers of bfloat16, which are 1/128 apart
    found = round_stochastically(values, torch.Generator().manual_seed(1))
    assert ((found - 1) * 128).tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1]
