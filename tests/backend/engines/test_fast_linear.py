"""A linear layer by oneDNN has the results of PyTorch's own."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch.nn.functional import gelu
from transformers import BertConfig, BertForSequenceClassification, RobertaPreLayerNormConfig, RobertaPreLayerNormModel
from transformers.models.bert.modeling_bert import BertIntermediate

from backend.engines.torch.layers import fast_linear
from backend.engines.torch.layers.fast_linear import FastLinear, speed_up_linear

CPU = torch.device("cpu")
SIZES: dict[str, Any] = {
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


def test_a_norm_in_front_of_the_product_is_computed(products):
    torch.manual_seed(0)
    model = RobertaPreLayerNormModel(RobertaPreLayerNormConfig(**SIZES)).eval()
    part: Any = model.encoder.layer[0].intermediate
    with torch.inference_mode():
        expected = part(states(400))
        speed_up_linear(model, CPU)
        torch.testing.assert_close(part(states(400)), expected, rtol=1e-5, atol=1e-6)
    assert products == ["none"]


class OwnIntermediate(BertIntermediate):
    """What a model with code of its own may put in its place."""

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return -super().forward(hidden_states)


def test_code_of_a_models_own_is_left_alone():
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**SIZES)).eval()
    layer_of(model).intermediate.__class__ = OwnIntermediate
    speed_up_linear(model, CPU)
    assert type(layer_of(model).intermediate) is OwnIntermediate


def remove_operator(*given: Any) -> torch.Tensor:
    raise RuntimeError("takes other arguments")


def leave_out_gelu(states: Any, weight: Any, bias: Any, *after: Any) -> torch.Tensor:
    return torch.nn.functional.linear(states, weight, bias)


@pytest.mark.parametrize("operator", [remove_operator, leave_out_gelu])
def test_an_operator_that_is_not_as_expected_is_not_used(operator: Callable[..., Any], monkeypatch):
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", operator)
    fast_linear._find_operator.cache_clear()
    try:
        model = fast_bert()
    finally:
        fast_linear._find_operator.cache_clear()
    assert not any(isinstance(part, FastLinear) for part in model.modules())
    assert type(layer_of(model).intermediate) is BertIntermediate


def test_a_copy_of_a_model_computes_the_same():
    model = fast_bert()
    copied, given = deepcopy(model), {"input_ids": torch.arange(400).view(8, 50) % 50}
    with torch.inference_mode():
        torch.testing.assert_close(copied(**given).logits, model(**given).logits, rtol=0, atol=0)
