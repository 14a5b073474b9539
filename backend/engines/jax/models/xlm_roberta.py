"""Owns XLM-RoBERTa (Conneau et al. 2020), which is RoBERTa with another vocabulary."""

from backend.engines.jax.models.roberta import family

FAMILY = family("XLMRoberta")
