"""Owns BART (Lewis et al. 2020): an encoder-decoder with learnt positions, which reads a whole text at its last end token."""

from backend.contract.heads import Head
from backend.engines.jax import encoder_decoder
from backend.engines.jax.encoder_decoder import Body, ForAnswers, Variant
from backend.engines.jax.head_modules import Tops
from backend.engines.jax.models.family import Family


def family(architecture: str, variant: Variant) -> Family:
    """Of BART and mBART."""
    tops = Tops("model", lambda config: Body(config, variant), "d_model")
    return Family(
        body="model",
        check=lambda config: encoder_decoder.check(config, variant),
        fixed=encoder_decoder.FIXED,
        aliases=encoder_decoder.ALIASES,
        heads={
            Head.SEQ2SEQ_LM: (
                f"{architecture}ForConditionalGeneration",
                lambda config, outputs: ForAnswers(config, variant),
            ),
            Head.SEQUENCE_CLASSIFICATION: (f"{architecture}ForSequenceClassification", tops.logits_of_last_end()),
            Head.SEQUENCE_REGRESSION: (f"{architecture}ForSequenceClassification", tops.logits_of_last_end()),
            Head.QUESTION_ANSWERING: (f"{architecture}ForQuestionAnswering", tops.logits_of_tokens("qa_outputs")),
        },
    )


FAMILY = family("Bart", Variant())
