"""XLM-RoBERTa (Conneau et al. 2020): RoBERTa with a different vocabulary."""

from backend.engines.jax.models.roberta import family

FAMILY = family("XLMRoberta")
