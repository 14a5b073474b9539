"""Owns mT5 (Xue et al. 2021), T5 with a large vocabulary and an output layer of its own."""

from backend.engines.jax.models.t5 import family

FAMILY = family("MT5")
