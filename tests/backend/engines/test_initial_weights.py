"""New weights follow the initialisers of transformers and depend on seed and name alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

from backend.engines.initial_weights import draw, is_known

CONFIG = {"model_type": "bert", "initializer_range": 0.02, "pad_token_id": 0}
_BODY = {"vocab_size": 200, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
_ENCODER: dict[str, Any] = {**_BODY, "intermediate_size": 96, "pad_token_id": 1, "eos_token_id": 2, "num_labels": 20}
_T5: dict[str, Any] = {"vocab_size": 200, "d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4}
_BART: dict[str, Any] = {
    "vocab_size": 200, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "max_position_embeddings": 40,
    "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
}  # fmt: skip
_LABELS: dict[str, Any] = {"num_labels": 20}
_XLM: dict[str, Any] = {"vocab_size": 200, "emb_dim": 64, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 64}
_XLNET: dict[str, Any] = {"vocab_size": 200, "d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 96}
_DISTILBERT: dict[str, Any] = {"vocab_size": 200, "dim": 64, "n_layers": 2, "n_heads": 2, "hidden_dim": 96}
_DEBERTA: dict[str, Any] = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16}
_MODERN: dict[str, Any] = _ENCODER | {"bos_token_id": 0, "cls_token_id": 0, "sep_token_id": 2}
MODELS: dict[str, Callable[[], Any]] = {
    "bert": lambda: hf.BertForMaskedLM(hf.BertConfig(**_ENCODER)),
    "roberta": lambda: hf.RobertaForSequenceClassification(hf.RobertaConfig(**_ENCODER)),
    "xlm-roberta": lambda: hf.XLMRobertaForMaskedLM(hf.XLMRobertaConfig(**_ENCODER)),
    "distilbert": lambda: hf.DistilBertForMaskedLM(hf.DistilBertConfig(**_DISTILBERT)),
    "distilbert with sinusoids": lambda: hf.DistilBertModel(
        hf.DistilBertConfig(**_DISTILBERT, sinusoidal_pos_embds=True)
    ),
    "electra": lambda: hf.ElectraForMaskedLM(hf.ElectraConfig(**_ENCODER, embedding_size=32)),
    "deberta-v2": lambda: hf.DebertaV2ForTokenClassification(hf.DebertaV2Config(**_ENCODER, **_DEBERTA)),
    "modernbert": lambda: hf.ModernBertForSequenceClassification(hf.ModernBertConfig(**_MODERN)),
    "xlnet": lambda: hf.XLNetForQuestionAnswering(hf.XLNetConfig(**_XLNET)),
    "xlm": lambda: hf.XLMForQuestionAnswering(hf.XLMConfig(**_XLM)),
    "flaubert": lambda: hf.FlaubertForQuestionAnswering(hf.FlaubertConfig(**_XLM)),
    "gpt2": lambda: hf.GPT2LMHeadModel(
        hf.GPT2Config(vocab_size=200, n_embd=64, n_layer=3, n_head=2, bos_token_id=1, eos_token_id=1)
    ),
    "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**_ENCODER)),
    "gemma": lambda: hf.GemmaForCausalLM(hf.GemmaConfig(**_ENCODER, head_dim=16)),
    "t5": lambda: hf.T5ForConditionalGeneration(hf.T5Config(**_T5)),
    "t5 1.1": lambda: hf.T5ForSequenceClassification(hf.T5Config(**_T5, feed_forward_proj="gated-gelu")),
    "mt5": lambda: hf.MT5ForConditionalGeneration(hf.MT5Config(**_T5)),
    "bart": lambda: hf.BartForSequenceClassification(hf.BartConfig(**_BART, **_LABELS)),
    "mbart": lambda: hf.MBartForConditionalGeneration(hf.MBartConfig(**_BART)),
    "marian": lambda: hf.MarianMTModel(hf.MarianConfig(**_BART)),
    "pegasus": lambda: hf.PegasusForConditionalGeneration(hf.PegasusConfig(**_BART)),
}  # fmt: skip


def trained(model):
    """Its weights; a fixed table, such as Marian's positions, wants no gradient."""
    return {name: each.detach().numpy() for name, each in model.named_parameters() if each.requires_grad}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_every_weight_has_the_spread_that_transformers_gives_it(make):
    torch.manual_seed(0)
    model = make()
    config = model.config.to_dict()
    for name, theirs in trained(model).items():
        ours = draw(name, theirs.shape, config, seed=1)
        spread = float(theirs.std()) + 1e-9
        if theirs.size >= 1000:
            assert ours.mean() == pytest.approx(theirs.mean(), abs=0.2 * spread), name
            assert ours.std() == pytest.approx(spread, rel=0.1), name
        elif theirs.ndim == 1:
            assert np.array_equal(ours, theirs), name
        if theirs.ndim == 2:
            assert np.array_equal(~ours.any(axis=1), ~theirs.any(axis=1)), name  # rows of padding


def test_state_space_models_have_kinds_of_parameters_without_a_rule():
    assert is_known("transformer.layer.0.rel_attn.r_w_bias")
    assert not is_known("backbone.layers.0.mixer.A_log")


def test_an_end_token_that_is_also_padding_has_a_row_of_its_own():
    config = {"model_type": "llama", "initializer_range": 0.02, "pad_token_id": 2, "eos_token_id": 2}
    assert draw("model.embed_tokens.weight", (10, 4), config, 0)[2].all()


def test_what_was_cut_off_and_drawn_again_hangs_on_no_row_that_follows():
    config = {"initializer_range": 1.0, "initializer_cutoff_factor": 2.0, "hidden_size": 8, "num_hidden_layers": 1}
    longer = draw("embeddings.weight", (500, 8), config, 3)
    assert np.abs(longer).max() <= 2.0
    assert np.array_equal(draw("embeddings.weight", (100, 8), config, 3), longer[:100])


def test_the_padding_row_of_a_word_embedding_is_zero():
    values = draw("bert.embeddings.word_embeddings.weight", (10, 4), CONFIG, 0)
    assert not values[0].any()
    assert values[1:].all()


def test_seed_and_name_decide():
    first = draw("classifier.weight", (3, 4), CONFIG, 1)
    assert np.array_equal(first, draw("classifier.weight", (3, 4), CONFIG, 1))
    assert not np.array_equal(first, draw("classifier.weight", (3, 4), CONFIG, 2))
    assert not np.array_equal(first, draw("other.weight", (3, 4), CONFIG, 1))


def test_a_longer_table_begins_alike():
    assert np.array_equal(draw("w", (3, 4), CONFIG, 1), draw("w", (5, 4), CONFIG, 1)[:3])


def test_values_are_the_same_on_every_machine():
    found = draw("classifier.weight", (1, 3), CONFIG, 42)
    np.testing.assert_allclose(found, [[-0.02170676738, 0.01359170396, 0.03140142933]], rtol=1e-6)
