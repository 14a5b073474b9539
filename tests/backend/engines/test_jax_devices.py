"""Several devices compute what one computes; what is divided among them takes that much less of each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.contract.errors import InputError
from backend.engines.jax import JaxEntry, Settings
from backend.engines.jax.devices import devices
from backend.models.weights import read_weights
from tests.backend.engines.example_batches import BERT_TINY, VOCABULARY
from tests.backend.engines.several_devices import FLAGS, on_devices

BERT = {"do": "train", "model": str(BERT_TINY), "head": "sequence_classification", "vocabulary": 30522, "dropout": 0.1}
FSDP, TENSOR = {"parallelism": "fsdp"}, {"tensor_parallel": 2}


@pytest.fixture(scope="module")
def alone_and_shared() -> list[dict[str, Any]]:
    """The same steps on one device and on four that divide the weights."""
    return on_devices(BERT, {**BERT, "devices": 4, "settings": FSDP})


@pytest.mark.slow
def test_four_devices_that_divide_the_weights_lose_what_one_loses(alone_and_shared: list[dict[str, Any]]):
    alone, shared = (one["losses"] for one in alone_and_shared)
    np.testing.assert_allclose(shared, alone, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_their_outputs_are_those_of_one_device_row_for_row(alone_and_shared: list[dict[str, Any]]):
    alone, shared = (np.array(one["outputs"]["logits"]) for one in alone_and_shared)
    assert len(alone) == 13
    np.testing.assert_allclose(shared, alone, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_each_of_them_holds_a_quarter(alone_and_shared: list[dict[str, Any]]):
    assert 0.25 <= alone_and_shared[1]["share"] < 0.26


@pytest.mark.slow
def test_the_plan_knows_the_share_that_a_device_takes(alone_and_shared: list[dict[str, Any]]):
    split = JaxEntry.split(Settings(parallelism="fsdp"), 4, read_weights(BERT_TINY).shapes, {"model_type": "bert"})
    assert split.replicas == 4
    assert split.share == pytest.approx(alone_and_shared[1]["share"], abs=0.002)


@pytest.mark.slow
def test_one_two_and_four_devices_lose_the_same_in_ragged_passes():
    task = {**BERT, "passes": 2}
    one, two, four = on_devices(task, {**task, "devices": 2}, {**task, "devices": 4})
    np.testing.assert_allclose([two["losses"], four["losses"]], [one["losses"]] * 2, rtol=0, atol=1e-5)
    assert (two["share"], four["share"]) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_layers_that_devices_share_compute_the_same(name: str, tiny: Callable[[str], Path]):
    task = {"do": "train", "model": str(tiny(name)), "head": "causal_lm", "vocabulary": VOCABULARY, "writes": True}
    one, two, four = on_devices(
        task, {**task, "devices": 2, "settings": TENSOR}, {**task, "devices": 4, "settings": TENSOR | FSDP}
    )
    np.testing.assert_allclose(two["losses"], one["losses"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(four["losses"], one["losses"], rtol=0, atol=1e-5)
    assert two["written"] == four["written"] == one["written"]
    assert two["share"] < 0.6


@pytest.mark.slow
def test_a_run_goes_on_to_the_bit_with_other_devices(tmp_path: Path):
    task = {**BERT, "do": "resume", "settings": FSDP, "folder": str(tmp_path)}
    moved, whole = on_devices({**task, "lives": [4, 1, 2]}, BERT)
    assert moved["exact"] == [True, True]
    np.testing.assert_allclose(moved["losses"], whole["losses"], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("count", "settings", "model_type", "words"),
    [
        (4, {"tensor_parallel": 3}, "llama", "4 devices cannot be divided into groups of 3; use one of 1, 2, 4"),
        (1, TENSOR, "llama", "1 device cannot be divided into groups of 2; use one of 1"),
        (2, TENSOR, "bert", "shard the layers of bert; use 1, and set hardware.parallelism to fsdp"),
    ],
)
def test_groups_that_cannot_be_made_are_refused(count: int, settings: dict[str, Any], model_type: str, words: str):
    with pytest.raises(InputError, match=words) as refusal:
        JaxEntry.split(Settings(**settings), count, {}, {"model_type": model_type})
    assert refusal.value.field == "hardware.tensor_parallel"


def test_processors_that_xla_is_asked_for_are_devices_that_share_the_memory(monkeypatch: pytest.MonkeyPatch):
    [whole] = devices()
    monkeypatch.setenv("XLA_FLAGS", FLAGS)
    found = devices()
    assert [(device.kind, device.index) for device in found] == [("cpu", number) for number in range(4)]
    assert sum(device.memory_mb for device in found) == pytest.approx(whole.memory_mb)
