"""Owns BART (Lewis et al. 2020): an encoder-decoder with learnt positions, which reads a whole text at its last end token."""

import jax
import jax.numpy as jnp
from flax import nnx

from backend.contract.heads import Head
from backend.engines.jax import encoder_decoder
from backend.engines.jax.encoder_decoder import Body, ForAnswers, Variant
from backend.engines.jax.layers import Linear, Noise, dropout
from backend.engines.jax.models.family import Arrays, Config, Family, refuse_unless
from backend.engines.jax.tops import Tops


class _Classifier(nnx.Module):
    def __init__(self, config: Config, outputs: int) -> None:
        self.dense = Linear(config["d_model"], config["d_model"])
        self.out_proj = Linear(config["d_model"], outputs)
        self._rate = config["classifier_dropout"]

    def __call__(self, x: jax.Array, noise: Noise | None) -> jax.Array:
        x = jnp.tanh(self.dense(dropout(x, self._rate, noise)))
        return self.out_proj(dropout(x, self._rate, noise))


class ForSequence(nnx.Module):
    """Logits of a whole text, (batch, outputs), read at its last end token; of a text without one, at its first token."""

    def __init__(self, config: Config, outputs: int, variant: Variant) -> None:
        refuse_unless(isinstance(config["eos_token_id"], int), config, "several end tokens")
        self.model = Body(config, variant)
        self.classification_head = _Classifier(config, outputs)
        self._end = config["eos_token_id"]

    def __call__(self, arrays: Arrays, noise: Noise | None) -> jax.Array:
        x, ids = self.model(arrays, noise), arrays["input_ids"]
        last = jnp.max(jnp.where(ids == self._end, jnp.arange(ids.shape[1]), 0), axis=1)
        return self.classification_head(jnp.take_along_axis(x, last[:, None, None], axis=1)[:, 0], noise)


def family(architecture: str, variant: Variant, adapted: tuple[str, ...] = ()) -> Family:
    """Of BART and mBART."""
    tops = Tops("model", lambda config: Body(config, variant), "d_model")
    of_text = f"{architecture}ForSequenceClassification", lambda config, outputs: ForSequence(config, outputs, variant)
    return Family(
        body="model",
        check=lambda config: encoder_decoder.check(config, variant),
        adapted=adapted,
        fixed=encoder_decoder.FIXED,
        aliases=encoder_decoder.ALIASES,
        heads={
            Head.SEQ2SEQ_LM: (
                f"{architecture}ForConditionalGeneration",
                lambda config, outputs: ForAnswers(config, variant),
            ),
            Head.SEQUENCE_CLASSIFICATION: of_text,
            Head.SEQUENCE_REGRESSION: of_text,
            Head.QUESTION_ANSWERING: (f"{architecture}ForQuestionAnswering", tops.logits_of_tokens("qa_outputs")),
        },
    )


FAMILY = family("Bart", Variant(), adapted=("q_proj", "v_proj"))
