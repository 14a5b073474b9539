"""Rotary positions (Su et al. 2021), and the frequency scalings for longer texts."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from backend.engines.jax.layers import UnsupportedModelError

Frequencies = tuple[np.ndarray, float]
"""(width / 2,) float32, and what cosine and sine are multiplied by."""


class Rotary:
    """Rotates queries and keys by their positions."""

    def __init__(self, config: dict[str, Any], width: int) -> None:
        given = config.get("rope_parameters") or {}
        kind = given.get("rope_type", "default")
        if kind not in _KINDS:
            raise UnsupportedModelError("does not support the rotary positions {kind} of this model", kind=repr(kind))
        if given.get("partial_rotary_factor", 1.0) != 1.0:
            raise UnsupportedModelError("does not support partial rotary positions")
        self._frequencies, self._scale = _KINDS[kind](given, width, config)

    def rotate(self, x: jax.Array, positions: jax.Array) -> jax.Array:
        """(batch, heads, length, head_size) at positions (batch, length); computed in float32."""
        positions = positions[:, None, :, None]  # (batch, 1, length, 1)
        angles = positions.astype(jnp.float32) * jnp.asarray(self._frequencies)  # (batch, 1, length, head_size / 2)
        cosine, sine = (
            jnp.concatenate([part, part], -1) * self._scale for part in (jnp.cos(angles), jnp.sin(angles))
        )  # each (batch, 1, length, head_size)
        first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)  # each (batch, heads, length, head_size / 2)
        swapped = jnp.concatenate([-second, first], -1)  # (batch, heads, length, head_size)
        return (x * cosine + swapped * sine).astype(x.dtype)


def _default_frequencies(given: dict[str, Any], width: int, config: dict[str, Any]) -> Frequencies:
    places = np.arange(0, width, 2, dtype=np.float32) / width
    return (1.0 / np.power(np.float32(given.get("rope_theta", 10000.0)), places)).astype(np.float32), 1.0


def _linear(given: dict[str, Any], width: int, config: dict[str, Any]) -> Frequencies:
    frequencies, scale = _default_frequencies(given, width, config)
    return frequencies / np.float32(given["factor"]), scale


def _llama3(given: dict[str, Any], width: int, config: dict[str, Any]) -> Frequencies:
    """Llama 3.1: long wavelengths are stretched by the factor, short ones stay, those between are interpolated."""
    frequencies, scale = _default_frequencies(given, width, config)
    low, high, length = given["low_freq_factor"], given["high_freq_factor"], given["original_max_position_embeddings"]
    waves = 2 * math.pi / frequencies
    smooth = (length / waves - low) / (high - low)
    between = (1 - smooth) * frequencies / given["factor"] + smooth * frequencies
    found = np.where(waves > length / low, frequencies / given["factor"], frequencies)
    return np.where((waves >= length / high) & (waves <= length / low), between, found).astype(np.float32), scale


def _yarn(given: dict[str, Any], width: int, config: dict[str, Any]) -> Frequencies:
    """YaRN (Peng et al. 2023)."""
    original, base = given["original_max_position_embeddings"], given["rope_theta"]
    factor = given.get("factor") or config["max_position_embeddings"] / original
    powers = np.power(np.float32(base), np.arange(0, width, 2, dtype=np.float32) / width)

    def place(turns: float) -> float:
        return width * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = place(given.get("beta_fast") or 32), place(given.get("beta_slow") or 1)
    if given.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    ramp = np.clip((np.arange(width // 2, dtype=np.float32) - low) / (high - low or 0.001), 0, 1)
    return (ramp / (factor * powers) + (1 - ramp) / powers).astype(np.float32), _yarn_scale(given, factor)


def _yarn_scale(given: dict[str, Any], factor: float) -> float:
    def scale(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    if given.get("attention_factor") is not None:
        return float(given["attention_factor"])
    if given.get("mscale") and given.get("mscale_all_dim"):
        return scale(given["mscale"]) / scale(given["mscale_all_dim"])
    return scale(1.0)


_KINDS: dict[str, Callable[[dict[str, Any], int, dict[str, Any]], Frequencies]] = {
    "default": _default_frequencies,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
}
