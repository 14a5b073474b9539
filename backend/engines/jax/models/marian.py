"""Owns Marian (Junczys-Dowmunt et al. 2018): the first Transformer, normalised after its layers, with sinusoidal positions."""

from backend.contract.heads import Head
from backend.engines.jax import encoder_decoder
from backend.engines.jax.encoder_decoder import ForAnswers, Variant
from backend.engines.jax.models.family import Config, Family, refuse_unless

_VARIANT = Variant(learns_positions=False)


def check(config: Config) -> None:
    """Raises InputError for what no class here computes."""
    refuse_unless(config.get("share_encoder_decoder_embeddings", True), config, "two tables of tokens")
    encoder_decoder.check(config, _VARIANT)


FAMILY = Family(
    body="model",
    check=check,
    fixed=encoder_decoder.FIXED,
    aliases=encoder_decoder.ALIASES,
    heads={Head.SEQ2SEQ_LM: ("MarianMTModel", lambda config, outputs: ForAnswers(config, _VARIANT))},
)
