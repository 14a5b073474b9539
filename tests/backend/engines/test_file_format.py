"""A model to be sharded is loaded as pages of its file, and has the weights of one that is loaded as usual."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, BertConfig, Gemma3TextConfig

from backend.contract.heads import Head, HeadFacts
from backend.contract.spec import TrainingSection
from backend.engines.torch.loading import load_model
from tests.backend.engines.example_batches import LANGUAGE, classes, loading
from tests.backend.engines.tiny_models import VOCABULARY, save_in_format

TRAINING = TrainingSection(learning_rate=1e-3, seed=3)
CASES: dict[str, tuple[str, HeadFacts, dict[str, Any]]] = {
    "a new head": ("bert", classes("a", "b", "c"), {}),
    "a head for other labels": ("classifier", classes("a", "b", "c"), {}),
    "tied": ("opt", LANGUAGE, {}),
    "scaled embedding": ("gemma", LANGUAGE, {}),
    "more words": ("llama", LANGUAGE, {"vocabulary": 250}),
    "positions that are computed": ("marian", HeadFacts(Head.SEQ2SEQ_LM), {}),
    "experts": ("switch_transformers", HeadFacts(Head.SEQ2SEQ_LM), {}),
    "frozen": ("llama", LANGUAGE, {"model": {"frozen": [1]}}),
}

SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "head_dim": 12, "intermediate_size": 32,
}  # fmt: skip
OWN: dict[str, Callable[[], Any]] = {
    # Its embedding is multiplied by the root of 24, which is no number of 16 bits.
    "gemma": lambda: AutoModelForCausalLM.from_config(Gemma3TextConfig(**SIZES)),
    "classifier": lambda: AutoModelForSequenceClassification.from_config(BertConfig(**{**SIZES, "num_labels": 3})),
}


@pytest.fixture
def in_format(tiny: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """A tiny model whose file is in this number format, except for the named weights."""

    def make(name: str, dtype: torch.dtype = torch.bfloat16, other: str = "") -> Path:
        folder = tmp_path / name
        if name in OWN:
            OWN[name]().save_pretrained(folder)
        save_in_format(folder if name in OWN else tiny(name), folder, dtype, other)
        return folder

    return make


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("case", CASES)
def test_its_weights_become_those_that_are_loaded_as_usual(in_format, case: str, dtype: torch.dtype):
    name, head, changes = CASES[case]
    request = loading(in_format(name, dtype), head, TRAINING, **changes)
    usual, expected = load_model(request)
    found, description = load_model(request, to_shard=True)
    assert description == expected
    assert dtype in {each.dtype for each in found.parameters()}
    for one, other in zip(found.state_dict().items(), usual.state_dict().items(), strict=True):
        assert one[0] == other[0]
        assert torch.equal(one[1].to(other[1].dtype), other[1]), one[0]
    for one, other in zip(found.named_buffers(), usual.named_buffers(), strict=True):
        assert torch.equal(one[1], other[1]), one[0]
        assert one[1].dtype is other[1].dtype
    assert found.config.to_dict() == usual.config.to_dict()
    assert [each.requires_grad for each in found.parameters()] == [each.requires_grad for each in usual.parameters()]


def test_a_file_of_several_formats_becomes_float32_at_once(in_format):
    folder = in_format("llama", other="model.norm.weight")
    model, _ = load_model(loading(folder, LANGUAGE, TRAINING), to_shard=True)
    assert {each.dtype for each in model.parameters()} == {torch.float32}
