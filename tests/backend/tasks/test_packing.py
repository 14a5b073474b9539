"""Packed examples: how they are put together, and that their loss is the sum of what each has alone."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from backend.contract.heads import IGNORE, Head, HeadFacts
from backend.contract.spec import TrainingSection
from backend.data.batches import collate, targets
from backend.data.features import Features, load_into_memory
from backend.engines.torch.engine import TorchEngine
from backend.tasks._packing import first_fit, pack
from backend.tasks.causal_lm import CausalLm, Settings
from tests.backend.engines.example_batches import loading

LENGTH, VOCABULARY = 24, 60


def examples(count: int = 40) -> pa.RecordBatch:
    rng = np.random.default_rng(1)
    lists = [rng.integers(3, VOCABULARY, rng.integers(2, 15)).tolist() for _ in range(count)]
    labels = [[IGNORE, *one[1:]] if number % 2 else one for number, one in enumerate(lists)]
    kind = pa.list_(pa.int32())
    return pa.RecordBatch.from_pydict(
        {
            "row": pa.array(range(count), pa.int32()),
            "part": pa.array([0] * count, pa.int32()),
            "input_ids": pa.array(lists, kind),
            "labels": pa.array(labels, kind),
        }
    )


def test_each_goes_into_the_first_group_that_has_space():
    assert first_fit([5, 4, 6, 3, 1, 9, 2], 10) == [[0, 1, 4], [2, 3], [5], [6]]


def test_a_packed_feature_tells_its_examples_apart():
    batch = pa.RecordBatch.from_pydict(
        {
            "row": pa.array([7, 8, 9]),
            "part": pa.array([0, 0, 0]),
            "input_ids": pa.array([[1, 2, 3], [4, 5], [6, 7, 8]], pa.list_(pa.int32())),
            "labels": pa.array([[1, 2, 3], [-100, 5], [6, 7, 8]], pa.list_(pa.int32())),
        }
    )
    [found] = pack(iter([batch]), 6)
    assert found.to_pydict() == {
        "row": [7, 9],
        "part": [0, 0],
        "input_ids": [[1, 2, 3, 4, 5], [6, 7, 8]],
        "labels": [[-100, 2, 3, -100, 5], [-100, 7, 8]],
        "segment": [[1, 1, 1, 2, 2], [1, 1, 1]],
        "position": [[0, 1, 2, 0, 1], [0, 1, 2]],
    }


def test_no_token_is_lost_and_no_target():
    batch = examples()
    [found] = pack(iter([batch]), LENGTH)
    before = sorted(token for ids in batch["input_ids"].to_pylist() for token in ids)
    assert sorted(token for ids in found["input_ids"].to_pylist() for token in ids) == before
    wanted = sum(label != IGNORE for one in batch["labels"].to_pylist() for label in one[1:])
    assert sum(label != IGNORE for one in found["labels"].to_pylist() for label in one) == wanted


def test_packing_fills_features_nearly_whole():
    [found] = pack(iter([examples(400)]), LENGTH)
    lengths = [len(ids) for ids in found["input_ids"]]
    assert max(lengths) <= LENGTH
    assert np.mean(lengths) > 0.9 * LENGTH


def test_only_training_features_are_packed():
    assert CausalLm(Settings(rows="examples", packing=True)).trains_apart
    assert not CausalLm(Settings(rows="examples")).trains_apart


def saved(kind: str, folder: Path) -> Path:
    torch.manual_seed(3)
    if kind == "gpt2":
        config = GPT2Config(
            vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=2, n_positions=LENGTH, bos_token_id=1, eos_token_id=1,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        )  # fmt: skip
        GPT2LMHeadModel(config).save_pretrained(folder)
    else:
        config = LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
            max_position_embeddings=LENGTH, bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False,
        )  # fmt: skip
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def loss_and_norm(folder: Path, source: Features) -> tuple[float, float, float]:
    """Loss, gradient norm and number of targets of one step over all features."""
    engine = TorchEngine()
    engine.load(loading(folder, HeadFacts(Head.CAUSAL_LM), TrainingSection(learning_rate=2e-5), vocabulary=VOCABULARY))
    batch = collate(source, np.arange(len(source)), pad_token_id=0, head=Head.CAUSAL_LM)
    [numbers] = engine.read([engine.train_step([batch], 1, 1e-3)])
    return numbers.loss, numbers.gradient_norm, targets(Head.CAUSAL_LM, batch)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_the_loss_of_packed_examples_is_that_of_each_alone(kind: str, tmp_path: Path):
    folder, batch = saved(kind, tmp_path), examples()
    together = load_into_memory(pack(iter([batch]), LENGTH))
    assert len(together) < batch.num_rows / 2
    loss, norm, count = loss_and_norm(folder, together)
    loss_alone, norm_alone, count_alone = loss_and_norm(folder, load_into_memory(iter([batch])))
    assert count == count_alone
    assert loss * count == pytest.approx(loss_alone * count, rel=1e-5)
    assert norm == pytest.approx(norm_alone, rel=1e-4)
