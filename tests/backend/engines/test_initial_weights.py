"""New weights follow the initialisers of transformers and depend on seed and name alone."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

from backend.engines.initial_weights import draw

CONFIG = {"model_type": "bert", "initializer_range": 0.02, "pad_token_id": 0}
MODELS = {
    "bert": lambda: BertForMaskedLM(BertConfig(vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=96)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=200, n_embd=64, n_layer=3, n_head=2)),
    "t5": lambda: T5ForConditionalGeneration(T5Config(vocab_size=200, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4)),
}  # fmt: skip


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_every_weight_has_the_spread_that_transformers_gives_it(make):
    torch.manual_seed(0)
    model = make()
    config = model.config.to_dict()
    for name, parameter in model.named_parameters():
        theirs = parameter.detach().numpy()
        ours = draw(name, theirs.shape, config, seed=1)
        spread = float(theirs.std()) + 1e-9
        assert ours.mean() == pytest.approx(theirs.mean(), abs=0.2 * spread), name
        if theirs.size >= 1000:
            assert ours.std() == pytest.approx(spread, rel=0.1), name
        elif theirs.ndim == 1:
            assert np.array_equal(ours, theirs), name


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
