"""mBART (Liu et al. 2020): pre-norm BART whose answers start with their language token."""

from backend.engines.jax.models.bart import Variant, family

FAMILY = family("MBart", Variant(norms_first=True, begins_with_last=True))
