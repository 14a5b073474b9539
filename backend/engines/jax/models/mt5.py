"""mT5 (Xue et al. 2021): T5 with a large vocabulary and a separate output layer."""

from backend.engines.jax.models.t5 import family

FAMILY = family("MT5")
