"""Qwen3 (Yang et al. 2025): Qwen2 without biases, with normalized queries and keys."""

from backend.engines.jax.models.llama import Variant, family

FAMILY = family(Variant("Qwen3", norms_heads=True))
