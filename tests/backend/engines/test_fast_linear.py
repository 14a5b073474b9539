"""A linear layer by oneDNN has the results of PyTorch's own."""

from typing import Any

import pytest
import torch
from torch.nn.functional import gelu
from transformers import BertConfig, BertForSequenceClassification

from backend.engines.torch.layers import fast_linear
from backend.engines.torch.layers.fast_linear import FastLinear, speed_up_linear

CPU = torch.device("cpu")
SIZES = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "vocab_size": 50,
}


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What oneDNN computes: the names of the functions after each product."""
    found: list[str] = []
    multiply = fast_linear._multiply

    def count(states: Any, layer: Any, then: str = "none", algorithm: str = "") -> torch.Tensor:
        found.append(f"{then} {algorithm}".strip())
        return multiply(states, layer, then, algorithm)

    monkeypatch.setattr(fast_linear, "_multiply", count)
    return found


def fast_bert(**options: Any) -> BertForSequenceClassification:
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**SIZES, **options)).eval()
    speed_up_linear(model, CPU)
    return model


def states(rows: int) -> torch.Tensor:
    return torch.randn(2, rows // 2, 256, generator=torch.Generator().manual_seed(1))


def layer_of(model: BertForSequenceClassification) -> Any:
    return model.bert.encoder.layer[0]


@pytest.mark.parametrize("bias", [True, False])
def test_the_product_is_that_of_a_linear_layer(products, bias: bool):
    torch.manual_seed(0)
    layer = torch.nn.Linear(256, 512, bias=bias)
    with torch.inference_mode():
        expected = layer(states(400))
        layer.__class__ = FastLinear
        torch.testing.assert_close(layer(states(400)), expected, rtol=1e-5, atol=1e-6)
    assert products == ["none"]


@pytest.mark.parametrize(("name", "algorithm"), [("gelu", "none"), ("gelu_pytorch_tanh", "tanh"), ("gelu_new", "tanh")])
def test_gelu_is_computed_with_the_product_before_it(products, name: str, algorithm: str):
    part = layer_of(fast_bert(hidden_act=name)).intermediate
    expected = gelu(torch.nn.functional.linear(states(400), part.dense.weight, part.dense.bias), approximate=algorithm)
    with torch.inference_mode():
        torch.testing.assert_close(part(states(400)), expected, rtol=1e-5, atol=1e-6)
    assert products == [f"gelu {algorithm}"]


def test_training_computes_as_before(products):
    part = layer_of(fast_bert()).intermediate
    part(states(400)).sum().backward()
    assert not products
    assert part.dense.weight.grad is not None


def test_another_activation_stays_by_itself(products):
    part = layer_of(fast_bert(hidden_act="relu")).intermediate
    with torch.inference_mode():
        assert (part(states(400)) >= 0).all()
    assert products == ["none"]


@pytest.mark.parametrize("why", ["few rows", "autocast", "bfloat16"])
def test_what_is_small_or_in_another_format_is_computed_as_before(products, why: str):
    part, given = layer_of(fast_bert()), states(8 if why == "few rows" else 400)
    if why == "bfloat16":
        part, given = part.bfloat16(), given.bfloat16()
    with torch.inference_mode(), torch.autocast("cpu", enabled=why == "autocast"):
        part.intermediate(given)
        part.attention.self.query(given)
    assert not products


def test_a_model_keeps_the_names_of_its_classes():
    model = fast_bert()
    assert type(layer_of(model).intermediate).__name__ == "BertIntermediate"
    assert model.state_dict().keys() == BertForSequenceClassification(BertConfig(**SIZES)).state_dict().keys()
