"""A loss over a vocabulary whose logits are computed in parts is the whole loss, with its gradients and outputs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from peft import LoraConfig, inject_adapter_in_model

from backend.contract.heads import Head
from backend.engines.torch import target_logits
from backend.engines.torch.chunked_loss import linear_cross_entropy
from backend.engines.torch.frozen_weights import adapt_layers
from backend.engines.torch.heads import HEADS
from backend.engines.torch.model_tail import can_repeat, ends_linear
from tests.backend.engines.head_batches import facts, head_batch
from tests.backend.engines.tiny_models import VOCABULARY, tiny_model

CPU = torch.device("cpu")
CHUNK = 3
"""Targets whose logits are held at once; a batch of the tests has dozens."""
BODY: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 32, "max_position_embeddings": 42, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
DECODER = {**BODY, "num_key_value_heads": 1, "attention_dropout": 0.0}
CONFIGS: dict[str, Any] = {
    "gemma2": lambda: hf.Gemma2Config(**DECODER, head_dim=8, final_logit_softcapping=0.5),
    "cohere": lambda: hf.CohereConfig(**DECODER, logit_scale=0.25),
    "granite": lambda: hf.GraniteConfig(**DECODER, logits_scaling=0.3),
    "electra": lambda: hf.ElectraConfig(**BODY, embedding_size=8),
}
PAIRS = [
    *((name, Head.CAUSAL_LM) for name in ("gpt2", "llama", "gemma2", "cohere", "granite")),
    *((name, Head.SEQ2SEQ_LM) for name in ("t5", "mt5", "bart", "marian")),
    *((name, Head.MASKED_LM) for name in ("bert", "roberta", "albert", "electra")),
]


@dataclass(frozen=True)
class Found:
    """What a head found out about a batch, and the most rows of logits that the output layer returned."""

    loss: float
    gradients: dict[str, torch.Tensor]
    outputs: dict[str, np.ndarray]
    rows: int


def build(name: str, head: Head, tied: bool | None = None) -> Any:
    config = CONFIGS[name]() if name in CONFIGS else tiny_model(name, one_layer=True).config
    if tied is not None:
        config.tie_word_embeddings = tied
    torch.manual_seed(4)
    model = HEADS[head].model_class(config).from_config(config)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if parameter.ndim == 1 and key.endswith("bias"):
                parameter.normal_(std=0.3)
            elif parameter.ndim > 1:
                parameter.mul_(3)
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.normal_(std=0.5)
    return model


def find(model: Any, head: Head, monkeypatch: pytest.MonkeyPatch, targets: int, smoothing: float = 0.0) -> Found:
    """A training loss with its gradients, and the outputs of an evaluation."""
    monkeypatch.setattr(target_logits, "_CHUNK_ELEMENTS", targets * VOCABULARY)
    ours, batch = HEADS[head](facts(head), smoothing, CPU), head_batch(head, 9)
    rows: list[int] = []
    ours.answer(model.eval(), batch)  # a model is tried once
    layer = model.get_output_embeddings()
    handle = layer.register_forward_hook(lambda _, __, logits: rows.append(logits[..., 0].numel()))
    model.zero_grad()
    torch.manual_seed(5)
    loss = ours.loss(ours.answer(model.train(), batch), batch) / 7
    loss.backward()
    with torch.inference_mode():
        outputs = ours.outputs(ours.answer(model.eval(), batch), batch)
    handle.remove()
    gradients = {key: each.grad.clone() for key, each in model.named_parameters() if each.grad is not None}
    return Found(loss.item(), gradients, outputs, max(rows))


def assert_same(whole: Found, parts: Found) -> None:
    assert whole.rows > CHUNK >= parts.rows
    assert parts.loss == pytest.approx(whole.loss, rel=1e-6)
    assert parts.gradients.keys() == whole.gradients.keys()
    largest = max(each.abs().max().item() for each in whole.gradients.values())
    for name, expected in whole.gradients.items():
        torch.testing.assert_close(parts.gradients[name], expected, rtol=1e-5, atol=1e-6 * largest)
    for name, expected in whole.outputs.items():
        np.testing.assert_allclose(parts.outputs[name], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize(("name", "head"), PAIRS)
def test_parts_give_the_loss_gradients_and_outputs_of_the_whole(name, head, tied, monkeypatch):
    model, smoothing = build(name, head, tied), 0.1 if tied else 0.0
    whole, parts = (find(model, head, monkeypatch, targets, smoothing) for targets in (1000, CHUNK))
    assert_same(whole, parts)


def test_parts_train_an_adapter_of_the_output_layer(monkeypatch):
    model = build("llama", Head.CAUSAL_LM)
    config = LoraConfig(r=2, target_modules=["q_proj", "lm_head"], init_lora_weights=False)
    inject_adapter_in_model(config, model)
    whole, parts = (find(model, Head.CAUSAL_LM, monkeypatch, targets) for targets in (1000, CHUNK))
    assert any("lm_head.lora_B" in name for name in whole.gradients)
    assert not any("lm_head.base_layer" in name for name in whole.gradients)
    assert_same(whole, parts)


def test_parts_train_an_output_layer_behind_frozen_layers(monkeypatch):
    model = build("llama", Head.CAUSAL_LM)
    model.model.requires_grad_(False)
    whole, parts = (find(model, Head.CAUSAL_LM, monkeypatch, targets) for targets in (1000, CHUNK))
    assert list(whole.gradients) == ["lm_head.weight"]
    assert_same(whole, parts)


def test_parts_agree_with_gradient_checkpointing(monkeypatch):
    model = build("llama", Head.CAUSAL_LM)
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})
    whole, parts = (find(model, Head.CAUSAL_LM, monkeypatch, targets) for targets in (1000, CHUNK))
    assert_same(whole, parts)


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
def test_parts_are_computed_in_the_precision_of_the_forward_pass(precision, monkeypatch):
    model, batch = build("gemma2", Head.CAUSAL_LM), head_batch(Head.CAUSAL_LM, 9)
    found = []
    for targets in (1000, CHUNK):
        monkeypatch.setattr(target_logits, "_CHUNK_ELEMENTS", targets * VOCABULARY)
        ours = HEADS[Head.CAUSAL_LM](facts(Head.CAUSAL_LM), 0.0, CPU)
        with torch.autocast("cpu", dtype=precision):
            answer = ours.answer(model.train(), batch)
        model.zero_grad()
        loss = ours.loss(answer, batch)
        loss.backward()
        found.append((loss.item(), model.lm_head.weight.grad.clone(), {each[0].dtype for each in answer.chunks()}))
    (loss, gradient, _), (loss_of_parts, gradient_of_parts, _) = found
    assert loss_of_parts == pytest.approx(loss, rel=1e-3)
    torch.testing.assert_close(gradient_of_parts, gradient, rtol=0.05, atol=0.02 * gradient.abs().max().item())


class Centred(hf.LlamaForCausalLM):
    """A model that does more with its logits than to transform those of each position."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Logits less their mean over all positions."""
        found = super().forward(*args, **kwargs)
        found.logits = found.logits - found.logits.mean(dim=1, keepdim=True)
        return found


def test_a_model_that_mixes_positions_is_not_repeated():
    torch.manual_seed(1)
    model = Centred(tiny_model("llama", one_layer=True).config).eval()
    ids = torch.arange(3, 9)[None]
    assert not can_repeat(model, lambda: model(input_ids=ids), (1, 6))
    assert can_repeat(model, lambda: hf.LlamaForCausalLM.forward(model, input_ids=ids), (1, 6))


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("llama", Head.CAUSAL_LM, True),
        ("t5", Head.SEQ2SEQ_LM, True),  # it scales the hidden states
        ("bert", Head.MASKED_LM, True),
        ("gemma2", Head.CAUSAL_LM, False),  # caps its logits
        ("cohere", Head.CAUSAL_LM, False),  # scales them
        ("marian", Head.SEQ2SEQ_LM, False),  # adds to them
    ],
)
def test_logits_that_something_changes_are_not_taken_for_those_of_a_layer(name, head, expected):
    model, batch = build(name, head).eval(), head_batch(head, 9)
    ours = HEADS[head](facts(head), 0.0, CPU)
    assert ends_linear(model, lambda: model(**ours._inputs(model, batch))) is expected


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_a_layers_loss_and_gradients_are_those_of_cross_entropy(smoothing):
    torch.manual_seed(1)
    layer, hidden = torch.nn.Linear(16, 50), (5 * torch.randn(11, 16)).requires_grad_()
    labels = torch.randint(0, 50, (11,))
    labels[3:5] = -100
    tensors = [hidden, *layer.parameters()]
    expected = torch.nn.functional.cross_entropy(
        layer(hidden), labels, ignore_index=-100, reduction="sum", label_smoothing=smoothing
    )
    loss = linear_cross_entropy(layer, hidden, labels, 4, smoothing)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    gradients = [torch.autograd.grad(each / 7, tensors) for each in (expected, loss)]
    for wanted, found in zip(*gradients, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


def test_micro_batches_add_up_their_gradients_of_parts(monkeypatch):
    model, batch = build("llama", Head.CAUSAL_LM, tied=True), head_batch(Head.CAUSAL_LM, 9)
    found = []
    for targets in (1000, CHUNK):
        monkeypatch.setattr(target_logits, "_CHUNK_ELEMENTS", targets * VOCABULARY)
        ours = HEADS[Head.CAUSAL_LM](facts(Head.CAUSAL_LM), 0.0, CPU)
        model.zero_grad()
        for share in (3, 5):
            (ours.loss(ours.answer(model.train(), batch), batch) / share).backward()
        found.append(model.lm_head.weight.grad.clone())
    torch.testing.assert_close(found[1], found[0], rtol=1e-5, atol=1e-6 * found[0].abs().max().item())


def test_parts_of_a_layer_in_bfloat16_are_computed_in_float32(monkeypatch):
    model = build("llama", Head.CAUSAL_LM, tied=False)
    model.lm_head.requires_grad_(False).bfloat16()
    adapt_layers(model, "float32")
    whole, parts = (find(model, Head.CAUSAL_LM, monkeypatch, targets) for targets in (1000, CHUNK))
    assert "lm_head.weight" not in whole.gradients
    assert_same(whole, parts)
