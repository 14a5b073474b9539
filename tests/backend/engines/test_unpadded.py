"""Without padding in its layers a model has the loss, gradients and outputs that it has with padding."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertForSequenceClassification,
    BertModel,
)
from transformers.pytorch_utils import Conv1D

from backend.contract.heads import IGNORE, Head
from backend.engines.torch.heads import HEADS
from backend.engines.torch.inputs import split_by_length
from backend.engines.torch.layers import unpadded
from backend.engines.torch.layers.unpadded import LAYERS, Unpadding
from tests.backend.engines.head_batches import facts, head_batch
from tests.backend.engines.test_every_head import left_padded
from tests.backend.engines.tiny_models import VOCABULARY

CPU = torch.device("cpu")
SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 4, "intermediate_size": 32, "ffn_dim": 32, "max_position_embeddings": 42,
    "word_embed_proj_dim": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "num_labels": 3,
}  # fmt: skip
WINDOWS: dict[str, dict[str, Any]] = {
    "mistral": {"sliding_window": 5},
    "modernbert": {"local_attention": 6, "global_attn_every_n_layers": 2, "cls_token_id": 1, "sep_token_id": 2},
    "gemma3_text": {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    "qwen2": {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
}
ENCODERS = {"albert", "bert", "camembert", "distilbert", "electra", "modernbert", "roberta", "xlm-roberta"}


def tiny_model(name: str, kind: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **{**SIZES, **WINDOWS.get(name, {}), **options})
    for each in config.to_dict():
        if "dropout" in each or "pdrop" in each:
            setattr(config, each, 0.0)
    model = kind.from_config(config).train()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(5)  # so that rows differ
    return model


def gradients(model: Any, head: Head, unpadding: Unpadding | None, batch: Any) -> dict[str, torch.Tensor]:
    """Those of every parameter, and the loss."""
    ours = HEADS[head](facts(head), 0.0, CPU)
    model.zero_grad()
    with unpadding.for_batch(batch) if unpadding else torch.enable_grad():
        loss = ours.loss(ours.answer(model, batch), batch)
        loss.backward()
    found = {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}
    return {"loss": loss.detach(), **found}


def seen_by_layers(model: Any) -> set[tuple[int, ...]]:
    """Filled with the (batch, length) that a linear layer in the model's layers gets."""
    seen: set[tuple[int, ...]] = set()
    layers = model.base_model.get_submodule(LAYERS[model.config.model_type])
    linear = next(each for each in layers.modules() if isinstance(each, torch.nn.Linear | Conv1D))
    linear.register_forward_pre_hook(lambda module, given: seen.add(tuple(given[0].shape[:-1])))
    return seen


def check_equal(model: Any, head: Head, batch: Any) -> None:
    expected = gradients(model, head, None, batch)
    unpadding, seen = Unpadding(model, head, CPU), seen_by_layers(model)
    found = gradients(model, head, unpadding, batch)
    assert seen == {(1, int(batch["attention_mask"].sum()))}, "the layers saw padding"
    check_gradients(found, expected)


def check_gradients(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    largest = max(float(each.abs().max()) for name, each in expected.items() if name != "loss")
    for name, each in expected.items():
        torch.testing.assert_close(
            found[name], each, rtol=1e-4, atol=1e-6 * max(1.0, largest), msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_gradients_of_every_architecture_are_those_with_padding(name: str):
    if name in ENCODERS:
        head, kind = Head.SEQUENCE_CLASSIFICATION, AutoModelForSequenceClassification
    else:
        head, kind = Head.CAUSAL_LM, AutoModelForCausalLM
    check_equal(tiny_model(name, kind), head, head_batch(head, 9))


HEAD_MODELS = {
    Head.SEQUENCE_CLASSIFICATION: ("llama", AutoModelForSequenceClassification),
    Head.TOKEN_CLASSIFICATION: ("distilbert", AutoModelForTokenClassification),
    Head.QUESTION_ANSWERING: ("roberta", AutoModelForQuestionAnswering),
    Head.MULTIPLE_CHOICE: ("bert", AutoModelForMultipleChoice),
    Head.MASKED_LM: ("electra", AutoModelForMaskedLM),
}


def test_a_decoder_that_sees_ahead_still_does():
    head = Head.CAUSAL_LM
    options = {**WINDOWS["gemma3_text"], "use_bidirectional_attention": True}
    check_equal(tiny_model("gemma3_text", AutoModelForCausalLM, **options), head, head_batch(head, 9))


def test_layers_share_the_positions_of_the_tokens(monkeypatch: pytest.MonkeyPatch):
    flattened: list[Any] = []
    flatten = unpadded.PackedRows.flatten
    monkeypatch.setattr(
        unpadded.PackedRows, "flatten", lambda rows, padded: flattened.append(padded) or flatten(rows, padded)
    )
    head = Head.CAUSAL_LM
    model = tiny_model("llama", AutoModelForCausalLM)
    gradients(model, head, Unpadding(model, head, CPU), head_batch(head, 9))
    assert len(flattened) == len({id(one) for one in flattened})


@pytest.mark.parametrize("head", HEAD_MODELS)
def test_gradients_of_every_head_are_those_with_padding(head: Head):
    name, kind = HEAD_MODELS[head]
    labels = {} if head is not Head.QUESTION_ANSWERING else {"num_labels": 2}
    check_equal(tiny_model(name, kind, **labels), head, head_batch(head, 9))


@pytest.mark.parametrize("name", ["bert", "mistral"])
def test_attention_may_pad_its_own_inputs_as_it_does_on_accelerators(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(unpadded, "ROW_BY_ROW_DEVICES", ())
    head = Head.SEQUENCE_CLASSIFICATION
    check_equal(tiny_model(name, AutoModelForSequenceClassification), head, head_batch(head, 9))


@pytest.mark.parametrize("name", ["bert", "gpt2", "mistral"])
def test_attention_with_dropout_is_that_with_padding(name: str):
    head, rate = Head.SEQUENCE_CLASSIFICATION, 1e-9  # which drops nothing
    model = tiny_model(name, AutoModelForSequenceClassification)
    for module in model.modules():
        if name == "mistral" and hasattr(module, "attention_dropout"):
            module.attention_dropout = rate
        elif isinstance(module, torch.nn.Dropout):
            module.p = rate
    check_equal(model, head, head_batch(head, 9))


def test_padding_may_be_in_front():
    batch = left_padded(head_batch(Head.CAUSAL_LM, 9))
    batch["labels"] = np.where(batch["attention_mask"], batch["input_ids"], IGNORE)
    check_equal(tiny_model("llama", AutoModelForCausalLM), Head.CAUSAL_LM, batch)


def test_a_row_without_tokens_adds_nothing():
    batch = head_batch(Head.CAUSAL_LM, 9)
    batch["attention_mask"][4], batch["labels"][4] = 0, IGNORE
    model = tiny_model("gpt2", AutoModelForCausalLM)
    with_padding = gradients(model, Head.CAUSAL_LM, None, batch)
    without = gradients(model, Head.CAUSAL_LM, Unpadding(model, Head.CAUSAL_LM, CPU), batch)
    torch.testing.assert_close(without["loss"], with_padding["loss"])


def test_a_batch_without_any_token_is_computed_as_before():
    batch = head_batch(Head.SEQUENCE_CLASSIFICATION, 3)
    batch["attention_mask"][:] = 0
    model = tiny_model("bert", AutoModelForSequenceClassification)
    with_padding = gradients(model, Head.SEQUENCE_CLASSIFICATION, None, batch)
    without = gradients(model, Head.SEQUENCE_CLASSIFICATION, Unpadding(model, Head.SEQUENCE_CLASSIFICATION, CPU), batch)
    torch.testing.assert_close(without["loss"], with_padding["loss"])


def compute_again(model: Any) -> None:
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})


def test_layers_that_are_computed_again_leave_padding_out_again():
    model = tiny_model("llama", AutoModelForCausalLM)
    compute_again(model)
    check_equal(model, Head.CAUSAL_LM, head_batch(Head.CAUSAL_LM, 9))


def test_outputs_of_tokens_are_those_with_padding():
    model, head = tiny_model("modernbert", AutoModelForTokenClassification).eval(), Head.TOKEN_CLASSIFICATION
    batch, ours = head_batch(head, 9), HEADS[head](facts(head), 0.0, CPU)
    tokens = batch["attention_mask"] == 1
    with torch.inference_mode():
        expected = ours.outputs(ours.answer(model, batch), batch)["logits"][tokens]
        with Unpadding(model, head, CPU).for_batch(batch):
            found = ours.outputs(ours.answer(model, batch), batch)["logits"][tokens]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_architecture_that_is_not_known_keeps_its_padding():
    head = Head.SEQUENCE_CLASSIFICATION
    model = tiny_model("deberta-v2", AutoModelForSequenceClassification)
    batch = head_batch(head, 9)
    with_padding = gradients(model, head, None, batch)
    assert torch.equal(gradients(model, head, Unpadding(model, head, CPU), batch)["loss"], with_padding["loss"])


class OwnBert(BertModel):
    """What a model with code of its own may call itself."""


def test_a_model_with_code_of_its_own_keeps_its_padding():
    model = tiny_model("bert", AutoModelForSequenceClassification)
    model.bert.__class__ = OwnBert
    check_padded(model, Head.SEQUENCE_CLASSIFICATION)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("opt", {"layerdrop": 0.1}),
        ("bert", {"is_decoder": True}),
        ("bert", {"chunk_size_feed_forward": 1}),
        ("llama", {"is_causal": False}),
    ],
)
def test_a_model_whose_layers_are_skipped_or_cut_or_see_in_another_direction_keeps_its_padding(
    name: str, option: dict[str, Any]
):
    check_padded(tiny_model(name, AutoModelForCausalLM, **option), Head.CAUSAL_LM)


def check_padded(model: Any, head: Head) -> None:
    batch, seen = head_batch(head, 9), seen_by_layers(model)
    gradients(model, head, Unpadding(model, head, CPU), batch)
    assert seen == {batch["attention_mask"].shape}


# Heads that read the first token of each row


def seen_by_last_norm(model: Any) -> set[int]:
    """Filled with the number of tokens that the last norm of the last layer gets."""
    seen: set[int] = set()
    layer = list(model.base_model.get_submodule(LAYERS[model.config.model_type]))[-1]
    norm = [each for each in layer.modules() if isinstance(each, torch.nn.LayerNorm)][-1]
    norm.register_forward_pre_hook(lambda module, given: seen.add(given[0][..., 0].numel()))
    return seen


@pytest.mark.parametrize("rate", [0.0, 1e-9], ids=["plain", "dropout that drops nothing"])
@pytest.mark.parametrize("name", ["bert", "camembert", "distilbert", "electra", "roberta", "xlm-roberta"])
def test_the_last_layer_computes_the_first_token_alone(name: str, rate: float):
    head, batch = Head.SEQUENCE_CLASSIFICATION, head_batch(Head.SEQUENCE_CLASSIFICATION, 9)
    model = tiny_model(name, AutoModelForSequenceClassification)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = rate
    expected, seen = gradients(model, head, None, batch), seen_by_last_norm(model)
    check_gradients(gradients(model, head, Unpadding(model, head, CPU), batch), expected)
    assert seen == {9}


def test_the_first_token_alone_answers_for_rows_without_padding():
    head, batch = Head.SEQUENCE_CLASSIFICATION, head_batch(Head.SEQUENCE_CLASSIFICATION, 1)
    model = tiny_model("bert", AutoModelForSequenceClassification)
    expected, seen = gradients(model, head, None, batch), seen_by_last_norm(model)
    check_gradients(gradients(model, head, Unpadding(model, head, CPU), batch), expected)
    assert seen == {1}


def test_a_last_layer_that_is_computed_again_computes_the_first_token_again():
    head, batch = Head.MULTIPLE_CHOICE, head_batch(Head.MULTIPLE_CHOICE, 5)
    model = tiny_model("bert", AutoModelForMultipleChoice)
    expected = gradients(model, head, None, batch)
    compute_again(model)
    check_gradients(gradients(model, head, Unpadding(model, head, CPU), batch), expected)


def check_all_tokens(model: Any, head: Head, batch: Any) -> None:
    seen = seen_by_last_norm(model)
    gradients(model, head, Unpadding(model, head, CPU), batch)
    assert seen == {int(batch["attention_mask"].sum())}


@pytest.mark.parametrize("name", ["albert", "bert"])
def test_a_head_that_reads_padding_in_front_gets_it(name: str):
    head = Head.SEQUENCE_CLASSIFICATION
    model, batch = tiny_model(name, AutoModelForSequenceClassification), left_padded(head_batch(head, 9))
    check_gradients(gradients(model, head, Unpadding(model, head, CPU), batch), gradients(model, head, None, batch))


def test_a_summary_of_other_tokens_needs_all_of_them():
    model = tiny_model("electra", AutoModelForMultipleChoice, summary_type="mean")
    check_all_tokens(model, Head.MULTIPLE_CHOICE, head_batch(Head.MULTIPLE_CHOICE, 5))


class OwnHead(BertForSequenceClassification):
    """A head that may read any token."""


def test_a_head_with_code_of_its_own_needs_all_tokens():
    model = tiny_model("bert", AutoModelForSequenceClassification)
    model.__class__ = OwnHead
    check_all_tokens(model, Head.SEQUENCE_CLASSIFICATION, head_batch(Head.SEQUENCE_CLASSIFICATION, 9))


# What CUDA's kernel for rows laid end to end computes


def attend_each_row(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, cu_seq_q: torch.Tensor, cu_seq_k: torch.Tensor,
    max_q: int, max_k: int, *, scale: float | None = None, window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False,
) -> torch.Tensor:  # fmt: skip
    """What torch's `varlen_attn` promises, row by row."""
    assert cu_seq_q.dtype is cu_seq_k.dtype is torch.int32
    lengths = cu_seq_q.diff().tolist()
    assert (max_q, max_k) == (max(lengths), max(cu_seq_k.diff().tolist()))
    assert window_size in ((-1, -1), (-1, 0))
    parts = zip(*(each.split(lengths) for each in (query, key, value)), strict=True)
    rows = [
        scaled_dot_product_attention(
            *(part.transpose(0, 1)[None] for part in row),
            is_causal=window_size[1] == 0,
            scale=scale,
            enable_gqa=enable_gqa,
        )[0].transpose(0, 1)
        for row in parts
    ]
    return torch.cat(rows)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls of the kernel, as if the CPU had one, in any number format."""
    calls: list[Any] = []

    def kernel(*given: Any, **options: Any) -> torch.Tensor:
        calls.append(options)
        return attend_each_row(*given, **options)

    replace_kernel(monkeypatch, kernel)
    monkeypatch.setattr(unpadded, "HALF_DTYPES", (torch.float32,))
    monkeypatch.setattr(unpadded, "_HEAD_SIZE_MULTIPLE", 1)
    return calls


def replace_kernel(monkeypatch: pytest.MonkeyPatch, kernel: Any) -> None:
    """Attend on the CPU as on CUDA, by this kernel."""
    monkeypatch.setattr(unpadded, "ROW_BY_ROW_DEVICES", ())
    monkeypatch.setattr(unpadded, "VARLEN_DEVICES", ("cpu",))
    monkeypatch.setattr(unpadded, "_varlen", lambda: kernel)
    monkeypatch.setattr(torch.backends.cuda, "can_use_flash_attention", lambda given: True)


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("bert", Head.TOKEN_CLASSIFICATION, AutoModelForTokenClassification),
        ("distilbert", Head.TOKEN_CLASSIFICATION, AutoModelForTokenClassification),
        ("llama", Head.CAUSAL_LM, AutoModelForCausalLM),
        ("gpt2", Head.CAUSAL_LM, AutoModelForCausalLM),
        ("opt", Head.CAUSAL_LM, AutoModelForCausalLM),
    ],
)
def test_the_kernel_computes_attention_without_padding(kernels, name: str, head: Head, kind: Any):
    check_equal(tiny_model(name, kind), head, head_batch(head, 9))
    assert len(kernels) == SIZES["num_hidden_layers"]
    is_causal = head is Head.CAUSAL_LM
    assert all(call["window_size"] == ((-1, 0) if is_causal else (-1, -1)) for call in kernels)


def test_layers_whose_window_is_shorter_than_a_row_pad_their_inputs(kernels):
    check_equal(tiny_model("gemma3_text", AutoModelForCausalLM), Head.CAUSAL_LM, head_batch(Head.CAUSAL_LM, 9))
    assert len(kernels) == 1, "of three layers one sees everything"


def test_attention_with_dropout_pads_its_inputs(kernels):
    head = Head.SEQUENCE_CLASSIFICATION
    model = tiny_model("bert", AutoModelForSequenceClassification)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 1e-9  # which drops nothing
    check_equal(model, head, head_batch(head, 9))
    assert not kernels


@pytest.mark.parametrize("missing", ["dtype", "head size", "hardware"])
def test_without_the_kernel_attention_pads_its_inputs(kernels, monkeypatch: pytest.MonkeyPatch, missing: str):
    if missing == "dtype":
        monkeypatch.setattr(unpadded, "HALF_DTYPES", (torch.bfloat16,))
    elif missing == "head size":
        monkeypatch.setattr(unpadded, "_HEAD_SIZE_MULTIPLE", 8)
    else:
        monkeypatch.setattr(torch.backends.cuda, "can_use_flash_attention", lambda given: False)
    head = Head.CAUSAL_LM
    check_equal(tiny_model("llama", AutoModelForCausalLM), head, head_batch(head, 9))
    assert not kernels


def packed_batch() -> dict[str, np.ndarray]:
    """Two rows of 5 and 3 texts; the second has padding behind them, which is a segment of its own, as in training."""
    rng, lengths = np.random.default_rng(3), [[3, 5, 2, 4, 6], [7, 2, 5]]
    segment, position, mask = (np.zeros((2, 20), dtype=np.int64) for _ in range(3))
    for row, row_lengths in enumerate(lengths):
        count = sum(row_lengths)
        mask[row, :count] = 1
        segment[row, :count] = np.repeat(np.arange(len(row_lengths)), row_lengths)
        position[row, :count] = np.concatenate([np.arange(length) for length in row_lengths])
    ids = rng.integers(3, VOCABULARY, mask.shape) * mask
    first = (position == 0) | (mask == 0)
    return {
        "input_ids": ids, "labels": np.where(first, IGNORE, ids), "attention_mask": mask, "segment": segment,
        "position": position, "row_valid": np.ones(2, dtype=bool),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["llama", "gpt2", "qwen3"])
def test_the_kernel_keeps_packed_texts_apart(kernels, name: str):
    model, head, batch = tiny_model(name, AutoModelForCausalLM), Head.CAUSAL_LM, packed_batch()
    expected = gradients(model, head, None, batch)
    unpadding, seen = Unpadding(model, head, CPU), seen_by_layers(model)
    check_gradients(gradients(model, head, unpadding, batch), expected)
    assert (1, batch["attention_mask"].sum()) in seen
    assert batch["segment"].shape not in seen
    assert len(kernels) == SIZES["num_hidden_layers"]


def test_packed_texts_stay_in_their_grid_without_the_kernel(kernels, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(unpadded, "HALF_DTYPES", (torch.bfloat16,))
    model, batch = tiny_model("llama", AutoModelForCausalLM), packed_batch()
    seen = seen_by_layers(model)
    gradients(model, Head.CAUSAL_LM, Unpadding(model, Head.CAUSAL_LM, CPU), batch)
    assert batch["segment"].shape in seen
    assert not kernels


@pytest.mark.parametrize(
    ("name", "head", "kind", "batch"),
    [
        ("llama", Head.CAUSAL_LM, AutoModelForCausalLM, "padded"),
        ("llama", Head.CAUSAL_LM, AutoModelForCausalLM, "packed"),
        ("bert", Head.TOKEN_CLASSIFICATION, AutoModelForTokenClassification, "padded"),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_in_half_precision_the_kernel_computes_what_padding_does(
    name: str, head: Head, kind: Any, batch: str, dtype: torch.dtype, device: str, monkeypatch: pytest.MonkeyPatch
):
    if device == "cpu":
        replace_kernel(monkeypatch, attend_each_row)
    model = tiny_model(name, kind, hidden_size=64, head_dim=16).to(device)
    given = head_batch(head, 9) if batch == "padded" else packed_batch()
    ours, found, calls = HEADS[head](facts(head), 0.0, torch.device(device)), [], []
    kernel = unpadded._varlen()
    monkeypatch.setattr(unpadded, "_varlen", lambda: lambda *a, **k: calls.append(1) or kernel(*a, **k))
    for unpadding in (None, Unpadding(model, head, torch.device(device))):
        model.zero_grad()
        with unpadding.for_batch(given) if unpadding else nullcontext():
            with torch.autocast(torch.device(device).type, dtype):
                answer = ours.answer(model, given)
            loss = ours.loss(answer, given)
            loss.backward()
        norm = torch.nn.utils.get_total_norm([each.grad for each in model.parameters() if each.grad is not None])
        found.append((loss.item(), norm.item()))
    assert len(calls) == SIZES["num_hidden_layers"]
    np.testing.assert_allclose(found[1], found[0], rtol=2e-2)


ENCODER_DECODERS = {
    "marian": {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
               "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "decoder_start_token_id": 0},
    "bart": {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
             "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "decoder_start_token_id": 2},
    "t5": {"d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0},
}  # fmt: skip


def translation_batch(seed: int = 0, rows: int = 12) -> dict[str, np.ndarray]:
    """Short and long sources, whose answers are of other lengths; row 3 has no target, and row 4 none at its beginning."""
    draw = np.random.default_rng(seed)
    sources, answers = draw.integers(1, 40, rows), draw.integers(1, 40, rows)
    mask = (np.arange(40) < sources[:, None]).astype(np.int64)
    answered = np.arange(40) < answers[:, None]
    answered[3] = False
    answered[4, :1] = False
    labels = np.where(answered, draw.integers(3, VOCABULARY, (rows, 40)), IGNORE)
    ids = np.where(mask, draw.integers(3, VOCABULARY, (rows, 40)), 0)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels, "row_valid": np.ones(rows, dtype=bool)}


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_parts_of_an_encoder_decoders_batch_have_its_gradients(name: str):
    model, batch = tiny_model(name, AutoModelForSeq2SeqLM, **ENCODER_DECODERS[name]), translation_batch()
    for parameter in model.parameters():
        parameter.data.div_(5)  # T5's attention saturates with such weights, and rounding is magnified
    expected = gradients(model, Head.SEQ2SEQ_LM, None, batch)

    parts = split_by_length(batch)
    found = [gradients(model, Head.SEQ2SEQ_LM, None, part) for part in parts]

    assert len(parts) > 1
    for key, value in expected.items():
        summed = sum((one[key] for one in found if key in one), torch.zeros_like(value))
        torch.testing.assert_close(summed, value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_parts_hold_every_token_once_and_less_padding(seed: int):
    batch = translation_batch(seed, rows=5 + seed)
    parts = split_by_length(batch)

    for name, filler in (("input_ids", 0), ("labels", IGNORE)):
        whole = sorted(tuple(row[row != filler]) for row in batch[name])
        assert sorted(tuple(row[row != filler]) for part in parts for row in part[name]) == whole
    assert sum(part[name].size for part in parts for name in ("input_ids", "labels")) < 80 * len(batch["labels"])


def test_rows_of_one_length_stay_together():
    batch = translation_batch()
    equal = {name: np.repeat(array[:1], 6, axis=0) for name, array in batch.items()}
    assert [len(part["labels"]) for part in split_by_length(equal)] == [6]
