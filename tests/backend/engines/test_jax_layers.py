"""What dropout in JAX leaves and drops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backend.engines.jax.layers import DropoutKeys, dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.937])
@pytest.mark.parametrize("width", [64, 127])
def test_dropout_drops_its_share_and_keeps_the_mean(rate: float, width: int):
    made = np.asarray(dropout(jnp.ones((40, 50, width)), rate, DropoutKeys(jax.random.key(3))))
    deviation = np.sqrt(rate * (1 - rate) / made.size)
    assert abs((made == 0).mean() - rate) < 4 * deviation
    assert np.unique(made[made != 0]) == pytest.approx([1 / (1 - rate)])


def test_neighbours_that_share_a_drawn_word_drop_independently():
    dropped = np.asarray(dropout(jnp.ones((1000, 200)), 0.3, DropoutKeys(jax.random.key(5)))) == 0
    both = (dropped[:, ::2] & dropped[:, 1::2]).mean()
    assert abs(both - 0.09) < 4 * np.sqrt(0.09 * 0.91 / 100_000)


def test_every_place_that_asks_gets_its_own_randomness():
    noise, ones = DropoutKeys(jax.random.key(1)), jnp.ones((8, 64))
    assert (np.asarray(dropout(ones, 0.5, noise)) != np.asarray(dropout(ones, 0.5, noise))).any()


def test_without_training_nothing_is_dropped():
    assert (np.asarray(dropout(jnp.ones((8, 64)), 0.5, None)) == 1).all()
