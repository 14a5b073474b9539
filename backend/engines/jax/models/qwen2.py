"""Qwen2 (Yang et al. 2024): Llama with biases on query, key and value, and optional sliding windows."""

from backend.engines.jax.models.llama import Variant, family

FAMILY = family(Variant("Qwen2", has_query_bias=True))
