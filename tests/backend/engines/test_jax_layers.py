"""What dropout in JAX leaves and drops, and what is computed in another way on a CPU."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backend.engines.jax.layers import DropoutKeys, activation, attend, causal_bias, dropout, multiply, trace


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


def _values_and_gradients(compute: Callable[..., jax.Array], *given: jax.Array, on_one_cpu: bool) -> list[np.ndarray]:
    """What `compute` returns and the gradients of a sum in which every value counts differently."""

    def total(*values: jax.Array) -> jax.Array:
        found = compute(*values)
        return (found * jnp.sin(jnp.arange(found.size)).reshape(found.shape)).sum()

    with trace(jnp.float32, on_one_cpu=on_one_cpu):
        found = jax.jit(lambda *values: (compute(*values), *jax.grad(total, range(len(values)))(*values)))(*given)
    return [np.asarray(each) for each in found]


@pytest.mark.parametrize("length", [128, 131])
def test_attention_in_parts_on_a_cpu_is_the_attention_of_the_whole(length: int):
    random = np.random.default_rng(0)
    query = jnp.asarray(random.normal(size=(2, 4, length, 8)), jnp.float32)
    key, value = (jnp.asarray(random.normal(size=(2, 2, length, 8)), jnp.float32) for _ in range(2))
    bias = causal_bias({"attention_mask": jnp.ones((2, length), jnp.int32).at[1, 100:].set(0)}, window=50)

    def compute(*values: jax.Array) -> jax.Array:
        return attend(*values, bias, is_causal=True)

    whole, parts = (_values_and_gradients(compute, query, key, value, on_one_cpu=one) for one in (False, True))
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(("inputs", "outputs"), [(256, 640), (640, 256)])
def test_a_large_product_on_a_cpu_has_the_gradients_of_a_product(inputs: int, outputs: int):
    random = np.random.default_rng(0)
    x = jnp.asarray(random.normal(size=(3, 5, inputs)), jnp.float32)
    weight = jnp.asarray(random.normal(size=(inputs, outputs)), jnp.float32)
    plain, own = (_values_and_gradients(multiply, x, weight, on_one_cpu=one) for one in (False, True))
    for one, other in zip(plain, own, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_the_approximate_gelu_is_the_usual_one():
    x = jnp.linspace(-30, 30, 4001)
    np.testing.assert_allclose(activation("gelu_new")(x), jax.nn.gelu(x, approximate=True), rtol=1e-5, atol=1e-6)
