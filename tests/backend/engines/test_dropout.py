"""Fast dropout is dropout: its rate, scale and gradient, and the numbers that a seed decides."""

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from backend.engines.torch.layers.dropout import FastDropout, attend_with_dropout, dropout, speed_up_dropout


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_as_many_elements_are_zero_as_wanted_and_the_mean_stays(probability: float):
    torch.manual_seed(1)
    found = dropout(torch.ones(1000, 1000), probability)
    deviation = (probability * (1 - probability) / 1e6) ** 0.5
    assert float((found == 0).double().mean()) == pytest.approx(probability, abs=5 * deviation)
    assert float(found.double().mean()) == pytest.approx(1, abs=5 * deviation / (1 - probability))


def test_elements_are_independent_of_their_neighbours():
    torch.manual_seed(2)
    kept = (dropout(torch.ones(1_000_000), 0.5) != 0).double() - 0.5
    for distance in (1, 2, 3, 4, 8, 1000):
        correlation = float((kept[distance:] * kept[:-distance]).mean()) * 4
        assert abs(correlation) < 5e-3, distance


def test_the_gradient_is_that_of_what_was_kept():
    values = torch.randn(50, 7, requires_grad=True)
    found = dropout(values, 0.3)
    found.backward(torch.ones_like(found))
    torch.testing.assert_close(values.grad, (found / values).detach())


def test_a_seed_decides_the_numbers_and_each_call_has_others():
    values = torch.ones(10_000)
    torch.manual_seed(3)
    first, second = dropout(values, 0.5), dropout(values, 0.5)
    torch.manual_seed(3)
    assert torch.equal(dropout(values, 0.5), first)
    assert not torch.equal(first, second)


def test_a_layer_that_is_computed_again_draws_the_same():
    values = torch.randn(64, 64, requires_grad=True)
    layer = FastDropout(0.5)
    seen = []
    checkpoint(lambda x: seen.append(layer(x)) or seen[-1].square().sum(), values, use_reentrant=False).backward()
    assert len(seen) == 2
    assert torch.equal(seen[0], seen[1])


def test_numbers_of_half_precision_keep_their_type():
    assert dropout(torch.ones(8, dtype=torch.bfloat16), 0.5).dtype is torch.bfloat16


def test_a_model_in_evaluation_drops_nothing_and_one_in_training_does():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    speed_up_dropout(model)
    assert type(model[1]) is FastDropout
    values = torch.randn(100, 4)
    assert torch.equal(model.eval()(values), model[0](values))
    assert (model.train()(values) == 0).any()


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_whose_dropout_drops_nothing_is_pytorchs(is_causal: bool):
    query, key, value = torch.randn(4, 3, 6, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    by_row = (each.transpose(0, 1) for each in (query, key, value))
    expected = scaled_dot_product_attention(*by_row, is_causal=is_causal, enable_gqa=True)
    found = attend_with_dropout(query, key, value, None, 0.0, None, is_causal=is_causal)
    torch.testing.assert_close(found, expected.transpose(0, 1))


def test_attention_drops_probabilities():
    torch.manual_seed(4)
    query, key = torch.randn(1, 1, 5, 8), torch.randn(1, 1, 5, 8)
    found = attend_with_dropout(query, key, torch.eye(5)[None, None], None, 0.5, None, is_causal=False)
    whole = (query @ key.transpose(-1, -2) * 8**-0.5).softmax(dim=-1)
    kept = found != 0
    assert 0 < int(kept.sum()) < 25
    torch.testing.assert_close(found[kept], 2 * whole[kept])
