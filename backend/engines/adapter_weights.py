"""Owns how an adapter's new matrices are drawn: once, in numpy, from the seed and the parameter's name in PEFT."""

import numpy as np

from backend.data.fingerprint import generator


def draw_uniform(name: str, shape: tuple[int, ...], bound: float, seed: int) -> np.ndarray:
    """New float32 values between -bound and bound."""
    return generator("adapter", seed, name).uniform(-bound, bound, shape).astype(np.float32)


def draw_normal(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """New float32 values of spread 1."""
    return generator("adapter", seed, name).standard_normal(shape, dtype=np.float32)
