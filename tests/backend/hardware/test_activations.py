"""The numbers of the plan for a layer are those that PyTorch holds of it until the backward pass."""

from functools import partial

import pytest
import torch
from transformers import AutoConfig, AutoModel

from backend.hardware.activations import ModelShape, Pass

ROWS, LENGTH = 2, 64
SIZES = {
    "bert": {"hidden_size": 96, "intermediate_size": 384, "num_attention_heads": 4},
    "distilbert": {"dim": 96, "hidden_dim": 384, "n_heads": 4},
    "gpt2": {"n_embd": 96, "n_head": 4},
    "llama": {"hidden_size": 96, "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2},
    "gemma3_text": {
        "hidden_size": 96, "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 24,
    },
    "t5": {"d_model": 96, "d_ff": 384, "num_heads": 4, "d_kv": 24},
    "marian": {"d_model": 96, "encoder_ffn_dim": 384, "decoder_ffn_dim": 384, "encoder_attention_heads": 4, "decoder_attention_heads": 4},
}  # fmt: skip
LAYERS = {
    "distilbert": ["n_layers"],
    "gpt2": ["n_layer"],
    "t5": ["num_layers"],
    "marian": ["encoder_layers", "decoder_layers"],
}


def held_bytes(model_type: str, layers: int) -> tuple[int, dict]:
    """What autograd holds of a forward pass besides weights, and the configuration."""
    names = LAYERS.get(model_type, ["num_hidden_layers"])
    config = AutoConfig.for_model(
        model_type, vocab_size=100, pad_token_id=0, **SIZES[model_type], **dict.fromkeys(names, layers)
    )
    torch.manual_seed(1)
    model = AutoModel.from_config(config).train()
    own = {each.untyped_storage().data_ptr() for each in model.parameters()}
    held: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            held[storage.data_ptr()] = storage  # so that no other gets its place
        return tensor

    ids = torch.randint(5, 99, (ROWS, LENGTH))
    given = {"decoder_input_ids": ids} if config.is_encoder_decoder else {}
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        kept = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, **given)  # noqa: F841
    return sum(storage.nbytes() for storage in held.values()), config.to_dict()


def planned_bytes(config: dict) -> float:
    shape = ModelShape(config)
    maps = shape.has_maps(None, on_cpu=True)
    one = partial(Pass, shape, ROWS, LENGTH, maps, is_float32=True, adapts=False, is_quantized=False)
    return one(recomputes=False).training_bytes


@pytest.mark.parametrize("model_type", SIZES)
def test_a_layer_keeps_what_is_planned(model_type):
    (few, small), (many, large) = (held_bytes(model_type, layers) for layers in (1, 3))
    assert planned_bytes(large) - planned_bytes(small) == pytest.approx(many - few, rel=0.04)
