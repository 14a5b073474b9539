"""Marian (Junczys-Dowmunt et al. 2018): the original post-norm Transformer with sinusoidal positions."""

from backend.contract.heads import Head
from backend.contract.messages import message
from backend.engines.jax.models import bart
from backend.engines.jax.models.bart import ForAnswers, Variant
from backend.engines.jax.models.family import Config, Family, refuse_unless

_VARIANT = Variant(learns_positions=False)


def check(config: Config) -> None:
    """Raises InputError for a variant that no class here supports."""
    refuse_unless(
        config.get("share_encoder_decoder_embeddings", True), config, message("separate encoder and decoder embeddings")
    )
    bart.check(config, _VARIANT)


FAMILY = Family(
    body="model",
    check=check,
    fixed=bart.FIXED,
    aliases=bart.ALIASES,
    heads={Head.SEQ2SEQ_LM: ("MarianMTModel", lambda config, outputs: ForAnswers(config, _VARIANT))},
)
