"""Owns Qwen3 (Yang et al. 2025): Qwen2 without biases whose queries and keys are normalised."""

from backend.engines.jax.models.llama import Variant, family

FAMILY = family(Variant("Qwen3", norms_heads=True))
