"""How far numbers may part: from torch's at 2,048 tokens, and bfloat16's from float32's, by one table of tolerances."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from safetensors.numpy import load_file

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE, Head
from backend.contract.spec import TrainingSection
from backend.engines.engine import Batch, Engine
from backend.engines.jax.engine import JaxEngine
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.example_batches import VOCABULARY, loading
from tests.backend.engines.head_batches import facts, head_batch
from tests.backend.engines.tiny_models import ENDS, PADDING

LENGTH = 2048
LONG = {"loss": 2e-6, "gradient": 5e-6, "token": 1e-4}
"""At 2,048 tokens against torch, float32: relative of the loss and the gradient's norm, absolute of a token's loss."""
BFLOAT16 = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "marian", "bart", "mbart"), (1e-4, 0.010)),
    **dict.fromkeys(("gpt2", "opt"), (1e-4, 0.015)),
    **dict.fromkeys(("bert", "roberta", "xlm-roberta"), (1e-4, 0.020)),
    **dict.fromkeys(("t5", "mt5", "distilbert"), (1e-3, 0.040)),
}
"""bfloat16 against float32 of the same engine: relative of the loss, and of the whole gradient (L2)."""
HEADS = {
    **dict.fromkeys(("gpt2", "llama", "mistral", "opt", "qwen2", "qwen3"), Head.CAUSAL_LM),
    **dict.fromkeys(("t5", "mt5", "marian", "bart", "mbart"), Head.SEQ2SEQ_LM),
}
SCALINGS: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    "llama3": {
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 256,
    },
    "yarn": {
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 256,
    },
}  # fmt: skip
_DECODER: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 16,
    "num_key_value_heads": 1, "intermediate_size": 48, "max_position_embeddings": LENGTH, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.2, "attention_dropout": 0.0,
}  # fmt: skip
_ONE_LAYER = {**_DECODER, "num_hidden_layers": 1}  # positions are turned in each alike
_T5: dict[str, Any] = {
    "vocab_size": VOCABULARY, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
    "decoder_start_token_id": 0, "dropout_rate": 0.0,
}  # fmt: skip
_WINDOW: dict[str, Any] = {"sliding_window": 300}
LONG_MODELS: dict[str, tuple[Head, Callable[[], Any]]] = {
    **{
        f"llama-{name}": (
            Head.CAUSAL_LM,
            lambda scaling=scaling: hf.LlamaForCausalLM(hf.LlamaConfig(**_ONE_LAYER, rope_parameters=scaling)),
        )
        for name, scaling in SCALINGS.items()
    },
    "llama": (Head.CAUSAL_LM, lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**_DECODER))),
    "mistral": (Head.CAUSAL_LM, lambda: hf.MistralForCausalLM(hf.MistralConfig(**_DECODER, **_WINDOW))),
    "qwen2": (Head.CAUSAL_LM, lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**_DECODER))),
    "qwen3": (
        Head.CAUSAL_LM,
        lambda: hf.Qwen3ForCausalLM(
            hf.Qwen3Config(**_DECODER, **_WINDOW, use_sliding_window=True, max_window_layers=1)
        ),
    ),
    "t5": (Head.SEQ2SEQ_LM, lambda: hf.T5ForConditionalGeneration(hf.T5Config(**_T5))),
    "mt5": (Head.SEQ2SEQ_LM, lambda: hf.MT5ForConditionalGeneration(hf.MT5Config(**_T5))),
}
QUICK = {"llama-llama3"}


def long_batch(head: Head) -> Batch:
    """Two rows of random tokens, one of them half as long; of an encoder-decoder both sides are long."""
    rng = np.random.default_rng(1)
    mask = (np.arange(LENGTH) < np.array([[LENGTH], [LENGTH // 2 + 7]])).astype(np.int64)
    ids, labels = (np.where(mask, rng.integers(3, VOCABULARY, mask.shape), 0) for _ in range(2))
    wanted = labels if head is Head.SEQ2SEQ_LM else ids
    return {
        "input_ids": ids, "attention_mask": mask, "row_valid": np.ones(2, dtype=bool),
        "labels": np.where(mask, wanted, IGNORE),
    }  # fmt: skip


def opened(kind: Callable[[], Engine], folder: Path, head: Head, training: TrainingSection, **changes: Any) -> Engine:
    engine = kind()
    engine.load(loading(folder, facts(head), training, **changes))
    return engine


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in LONG_MODELS]
)
def test_at_2048_tokens_positions_are_those_of_torch(name: str, tmp_path: Path):
    head, build = LONG_MODELS[name]
    torch.manual_seed(3)
    build().save_pretrained(tmp_path)
    batch, training = long_batch(head), TrainingSection(learning_rate=2e-5, seed=7)
    engines = [opened(kind, tmp_path, head, training) for kind in (JaxEngine, TorchEngine)]
    ours, theirs = (engine.evaluate(batch)["token_loss"] for engine in engines)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=LONG["token"])
    found, expected = (engine.read([engine.train_step([batch], 0, 1e-3)])[0] for engine in engines)
    assert found.loss == pytest.approx(expected.loss, rel=LONG["loss"])
    assert found.gradient_norm == pytest.approx(expected.gradient_norm, rel=LONG["gradient"])


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_a_scaling_that_is_not_known_is_refused_by_name(kind: str, tiny: Callable[[str], Path]):
    scaling = {"rope_type": kind, "rope_theta": 10000.0, "factor": 2.0}
    with pytest.raises(
        InputError, match=rf"does not support the rotary positions '{kind}' of this model; .*choose PyTorch"
    ):
        opened(
            JaxEngine,
            tiny("llama"),
            Head.CAUSAL_LM,
            TrainingSection(learning_rate=2e-5),
            model={"config": {"rope_parameters": scaling}},
        )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "gpt2" else [pytest.mark.slow]) for name in BFLOAT16]
)
def test_bfloat16_parts_from_float32_by_no_more_than_the_table_says(
    name: str, tiny: Callable[[str], Path], tmp_path: Path
):
    (loss, gradient), (rounded_loss, rounded) = (
        gradient_of(tiny(name), name, precision, tmp_path / precision) for precision in ("float32", "bfloat16")
    )
    of_loss, of_gradient = BFLOAT16[name]
    assert rounded_loss == pytest.approx(loss, rel=of_loss)
    parted = np.linalg.norm(rounded - gradient) / np.linalg.norm(gradient)
    assert 1e-4 < parted < of_gradient  # not nothing, or it was computed in float32 after all


def gradient_of(folder: Path, name: str, precision: str, to: Path) -> tuple[float, np.ndarray]:
    """The loss of freshly initialised weights and all that one plain step of gradient descent takes from them."""
    head = HEADS.get(name, Head.SEQUENCE_CLASSIFICATION)
    plain = TrainingSection(
        learning_rate=2e-5,
        optimizer="sgd",
        optimizer_options={"momentum": 0.0},
        weight_decay=0.0,
        max_gradient_norm=None,
        seed=7,
    )
    padding = PADDING.get(name, 0)
    engine = opened(
        JaxEngine, folder, head, plain, precision=precision, pad_token_id=padding, bos_token_id=1,
        eos_token_id=ENDS.get(name, 2), model={"dropout": 0.0, "initialise": "from_config"},
    )  # fmt: skip
    before = exported(engine, to / "before")
    result = engine.train_step([head_batch(head, 16, padding=padding)], 0, 1.0)
    after = exported(engine, to / "after")
    taken = [(before[key] - after[key]).reshape(-1) for key in sorted(before)]
    return engine.read([result])[0].loss, np.concatenate(taken)


def exported(engine: Engine, folder: Path) -> dict[str, np.ndarray]:
    folder.mkdir(parents=True)
    engine.export(folder)
    return load_file(folder / "model.safetensors")
