"""Owns mBART (Liu et al. 2020): BART normalised before its layers, whose answers begin with their language."""

from backend.engines.jax.models.bart import Variant, family

FAMILY = family("MBart", Variant(norms_first=True, begins_with_last=True))
