"""What of sharding needs only one process: which models are refused, and what a weight that no row used gets."""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.spec import TrainingSection
from backend.engines.torch import Settings, TorchEntry
from backend.engines.torch.distributed.process_group import ProcessGroup
from backend.engines.torch.distributed.sharded_model import ShardedModel
from backend.engines.torch.heads import HEADS
from backend.engines.torch.loading import load_model
from backend.preflight import checks
from backend.preflight.resolve import resolve
from tests.backend.engines.example_batches import BERT_TINY, loading
from tests.backend.engines.head_batches import facts, head_batch
from tests.backend.engines.tiny_models import PADDING, save_in_format

TRAINING = TrainingSection(learning_rate=1e-3, seed=7)
SHAPES = {"embeddings.weight": (100, 8), "encoder.scale": ()}
NO_SCALAR = {"embeddings.weight": (100, 8)}


@pytest.mark.parametrize(
    ("shapes", "config", "says"),
    [
        (SHAPES, {"model_type": "bert"}, r"cannot shard encoder.scale, which is a single number.*set it to ddp"),
        (NO_SCALAR, {"layerdrop": 0.1}, r"skips layers at random.*set layerdrop to 0 in model.config, or this to ddp"),
        (NO_SCALAR, {"model_type": "m2m_100"}, "set encoder_layerdrop and decoder_layerdrop to 0 in model.config"),
        (NO_SCALAR, {"model_type": "m2m_100", "encoder_layerdrop": 0.0}, "; set decoder_layerdrop to 0"),
        (NO_SCALAR, {"model_type": "zamba"}, "cannot shard a zamba model, whose layers share weights"),
    ],
)
def test_a_model_that_processes_cannot_share_is_refused_with_the_way_out(
    shapes: dict[str, tuple[int, ...]], config: dict[str, Any], says: str
):
    with pytest.raises(InputError, match=says) as refused:
        TorchEntry.split(Settings(strategy="fsdp"), 2, shapes, config)
    assert refused.value.field == "hardware.strategy"
    assert TorchEntry.split(Settings(), 2, shapes, config).share == 1


def test_a_model_that_skips_no_layer_is_sharded():
    config = {"model_type": "m2m_100", "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0}
    assert TorchEntry.split(Settings(strategy="fsdp"), 2, NO_SCALAR, config).share == 0.5


def test_a_check_refuses_it_before_a_run_is_written(tmp_path: Path):
    model, rows = tmp_path / "model", tmp_path / "rows.csv"
    shutil.copytree(BERT_TINY, model)
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    (model / "config.json").write_text(json.dumps({**config, "layerdrop": 0.1}), encoding="utf-8")
    rows.write_text("text,label\ngood,a\nbad,b\n", encoding="utf-8")
    values = {
        "task": {"type": "text_classification"}, "model": {"name_or_path": str(model)}, "data": {"train": str(rows)},
        "hardware": {"device": "cpu", "strategy": "fsdp", "processes": 2},
    }  # fmt: skip
    with pytest.raises(InputError, match="skips layers at random"):
        checks.check(resolve(values, tmp_path))


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProcessGroup]:
    """A group of one process, over which PyTorch shards all the same."""
    store = dist.FileStore(str(tmp_path / "rendezvous"), 1)  # pyright: ignore[reportPrivateImportUsage]
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    monkeypatch.setattr(ProcessGroup, "mesh", lambda group, device: init_device_mesh(device.type, (1,)))
    yield ProcessGroup()
    dist.destroy_process_group()


def apply(compute: Callable[[], Any]) -> Any:
    return compute()


@pytest.mark.parametrize(
    ("head", "name"), [(Head.QUESTION_ANSWERING_BEAM, "xlnet"), (Head.SEQ2SEQ_LM, "switch_transformers")]
)
def test_the_weights_that_a_step_used_have_the_gradients_of_a_whole_model(alone, tiny, head: Head, name: str):
    batch, device = head_batch(head, 5, padding=PADDING.get(name, 0)), torch.device("cpu")
    found: list[dict[str, torch.Tensor | None]] = []
    for is_sharded in (False, True):
        model, _ = load_model(loading(tiny(name), facts(head), TRAINING, pad_token_id=PADDING.get(name, 0)))
        model.train()
        ours = HEADS[head](facts(head), 0.0, device)
        shards = ShardedModel(model, alone, device, "float32", offloads=False) if is_sharded else None
        run = shards.run if shards is not None and head is Head.QUESTION_ANSWERING_BEAM else apply  # calls parts of it
        ours.loss(run(partial(ours.answer, model, batch)), batch).backward()
        if shards is not None:
            shards.take_gradients()
        weights = shards.trained if shards is not None else model.named_parameters()
        found.append({name: weight.grad for name, weight in weights if weight.requires_grad})
    whole, sharded = found
    unused = {name for name, gradient in whole.items() if gradient is None}
    assert unused == {name for name, gradient in sharded.items() if gradient is None}
    assert unused, "every weight was used"
    for name, gradient in whole.items():
        if gradient is not None:
            torch.testing.assert_close(sharded[name], gradient, msg=name)


@pytest.mark.parametrize("initialise", ["from_config", "pretrained"])
def test_a_model_is_sharded_with_the_weights_that_it_has_alone(alone, tiny, tmp_path: Path, initialise: str):
    save_in_format(tiny("llama"), tmp_path / "model", torch.bfloat16)
    request = loading(tmp_path / "model", facts(Head.CAUSAL_LM), TRAINING, model={"initialise": initialise})
    expected = dict(load_model(request)[0].named_parameters())
    model, _ = load_model(request, to_shard=True)
    shards = ShardedModel(model, alone, torch.device("cpu"), "float32", offloads=False)
    for name, rows in shards.trained:
        assert rows.dtype is torch.float32
        assert torch.equal(rows, expected[name]), name
