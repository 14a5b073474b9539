"""Mistral (Jiang et al. 2023): Llama with sliding-window attention."""

from backend.engines.jax.models.llama import Variant, family

FAMILY = family(Variant("Mistral", has_query_bias=False, body_of_spans="model", has_window=True))
