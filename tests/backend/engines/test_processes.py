"""Several processes train the model that one process trains, for every head, and compute each row once."""

import errno
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from safetensors.torch import load_file

from backend.contract.heads import Head
from backend.contract.spec import TrainingSection
from backend.engines.torch.distributed import process_group
from backend.engines.torch.distributed.process_group import ProcessGroup
from backend.engines.torch.distributed.shared_file import Part, write_rows
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines import on_processes
from tests.backend.engines.example_batches import BERT_TINY, classes, loading
from tests.backend.engines.on_processes import EVALUATED, HANGS
from tests.backend.engines.tiny_models import PADDING, save_in_format

STEPS = 3
SIZE, SHARDED_SIZE = 3, 2
"""A sharded model takes four times as long, so fewer processes have one."""
SHARDED_EVALUATED = (21, 2)
LONG_SIZES, LONG_STEPS = (2, 3), 50
EPSILON = 1e-4
"""Of AdamW. A small one turns the rounding of gradients that are zero (biases before a softmax) into whole steps."""
HEADS = {
    Head.CAUSAL_LM: "opt",
    Head.MASKED_LM: "bert",
    Head.SEQ2SEQ_LM: "t5",
    Head.SEQUENCE_CLASSIFICATION: "bert",
    Head.MULTI_LABEL_CLASSIFICATION: "bert",
    Head.SEQUENCE_REGRESSION: "bert",
    Head.TOKEN_CLASSIFICATION: "bert",
    Head.QUESTION_ANSWERING: "bert",
    Head.QUESTION_ANSWERING_BEAM: "xlnet",
    Head.MULTIPLE_CHOICE: "bert",
}
CASES: dict[str, dict[str, Any]] = {
    **{head.value: {"head": head, "name": name} for head, name in HEADS.items()},
    "packed": {"head": Head.CAUSAL_LM, "name": "llama", "packs": True},
    "lora": {"head": Head.CAUSAL_LM, "name": "llama", "adapter": {"rank": 4}},
    "frozen": {"head": Head.SEQUENCE_CLASSIFICATION, "name": "bert", "model": {"dropout": 0.0, "frozen": [1]}},
    "rows of a large embedding": {"head": Head.SEQUENCE_CLASSIFICATION, "name": "bert-tiny"},
    "generation": {"head": Head.SEQ2SEQ_LM, "name": "t5", "generates": True},
    # The logits of a few targets at a time, from weights that are gathered only in the forward and the backward pass.
    "fsdp, tied": {
        "head": Head.CAUSAL_LM, "name": "opt", "strategy": "fsdp", "chunk": 600, "exports": True, "continues": 1,
    },
    # Each process has some of the rows that occur.
    "fsdp, rows": {
        "head": Head.SEQUENCE_CLASSIFICATION, "name": "bert-tiny", "strategy": "fsdp", "continues": 1, "spread": 500,
        "training": {"adam_epsilon": EPSILON, "gradient_checkpointing": True},
    },
    "fsdp, experts": {"head": Head.SEQ2SEQ_LM, "name": "switch_transformers", "strategy": "fsdp", "exports": True},
    "fsdp, frozen bfloat16": {
        "head": Head.CAUSAL_LM, "name": "llama", "strategy": "fsdp", "adapter": {"rank": 4}, "exports": True,
        "model": {"dropout": 0.0, "weights": "bfloat16"},
    },
    "fsdp, CPU offload": {
        "head": Head.CAUSAL_LM, "name": "llama", "strategy": "fsdp", "offloads": True, "exports": True, "continues": 1,
    },
    "fsdp, seq2seq": {
        "head": Head.SEQ2SEQ_LM, "name": "t5", "strategy": "fsdp", "generates": True, "file": "bfloat16", "exports": True,
    },
}  # fmt: skip
LONG_CASES = CASES | {
    f"fsdp, {name}": {**case, "strategy": "fsdp"} for name, case in CASES.items() if "strategy" not in case
}


def make_tasks(tiny, folder, steps, cases=CASES, device="cpu"):
    """The cases, as `on_processes` takes them; each has a folder for its checkpoints."""
    found = {name: _task(case, tiny, steps) | {"device": device} for name, case in cases.items()}
    for number, task in enumerate(found.values()):
        task["checkpoint"] = str(folder / str(number))
        (folder / str(number)).mkdir()
        if "file" in task:
            place = folder / f"model-{number}"
            save_in_format(Path(task["folder"]), place, getattr(torch, task["file"]))
            task["folder"] = str(place)
    return found


def _task(case, tiny, steps):
    name = case["name"]
    large = name == "bert-tiny"
    sharded = {"evaluated": SHARDED_EVALUATED} if "strategy" in case else {}
    return {
        "steps": steps, "padding": PADDING.get(name, 0), "training": {"adam_epsilon": EPSILON}, **sharded, **case,
        "head": case["head"].value, "folder": str(BERT_TINY if large else tiny(name)), **({"vocabulary": 30522} if large else {}),
    }  # fmt: skip


@pytest.fixture(
    scope="module",
    params=[
        "cpu",
        pytest.param("cuda", marks=pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")),
    ],
)
def device(request):
    """What the processes compute on: with gloo on the CPU, with NCCL each on a GPU."""
    return request.param


@pytest.fixture(scope="module")
def tasks(tiny, device, tmp_path_factory):
    return make_tasks(tiny, tmp_path_factory.mktemp("checkpoints"), STEPS, device=device)


@pytest.fixture(scope="module")
def alone(tasks):
    return {name: on_processes.run(task) for name, task in tasks.items()}


def size_of(task):
    """How many processes compute the task."""
    return SHARDED_SIZE if "strategy" in task or task["device"] == "cuda" else SIZE


@pytest.fixture(scope="module")
def groups(tasks, alone, tmp_path_factory):
    """The results of every group, which finds the checkpoints of one process: torch is imported for all of them once."""
    sizes = dict.fromkeys(map(size_of, tasks.values()))
    own = {size: [task for task in tasks.values() if size_of(task) == size] for size in sizes}
    return on_processes.start({**own, HANGS: []}, tmp_path_factory.mktemp("groups"))


@pytest.fixture(scope="module")
def together(tasks, groups):
    """What several processes made of each task."""
    results = {size: iter(groups[size]) for size in groups if size != HANGS}
    return {name: next(results[size_of(task)]) for name, task in tasks.items()}


@pytest.mark.parametrize("name", CASES)
def test_several_processes_give_the_loss_curve_of_one(name, device, alone, together):
    expected = alone[name]
    moved = abs(expected["losses"][STEPS - 1] - expected["losses"][0])  # of the same rows
    assert moved > 1e-3, "too little is learned to compare anything"
    check_curve(together[name], expected, 1e-5 if device == "cpu" else 1e-4)


def check_curve(found, expected, rounding=1e-5):
    """The last step comes after a checkpoint was saved and restored."""
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=0, atol=rounding)
    np.testing.assert_allclose(found["norms"], expected["norms"], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_each_evaluated_row_is_computed_once_and_stays_in_order(name, tasks, alone, together):
    check_outputs(together[name], alone[name], tasks[name].get("evaluated", EVALUATED))


def check_outputs(found, expected, evaluated=EVALUATED):
    """Of batches of so many rows, each row's outputs are at its place."""
    for rows, one, other in zip(evaluated, expected["outputs"], found["outputs"], strict=True):
        for output, values in one.items():
            assert len(other[output]) == rows
            np.testing.assert_allclose(other[output], values, atol=1e-3, err_msg=output)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("size", LONG_SIZES)
def test_fifty_steps_give_the_same_loss_curve(size, tiny, tmp_path):
    cases = {name: {**case, "evaluated": EVALUATED} for name, case in LONG_CASES.items()}
    tasks = make_tasks(tiny, tmp_path, LONG_STEPS, cases)
    alone = {name: on_processes.run(task) for name, task in tasks.items()}
    together = on_processes.start({size: list(tasks.values())}, tmp_path)[size]
    for found, expected in zip(together, alone.values(), strict=True):
        check_curve(found, expected)
        check_outputs(found, expected)


@pytest.mark.slow
def test_a_sharded_model_computes_in_bfloat16_what_a_whole_one_does(tiny, tmp_path):
    task = make_tasks(tiny, tmp_path, LONG_STEPS)["fsdp, tied"]
    task |= {"precision": "bfloat16", "exports": False, "checkpoint": ""}
    both = on_processes.start({2: [task | {"strategy": strategy} for strategy in ("ddp", "fsdp")]}, tmp_path)[2]
    ddp, fsdp = (one["losses"] for one in both)
    np.testing.assert_allclose(fsdp, ddp, rtol=0, atol=5e-3)


@pytest.mark.slow
def test_three_processes_continue_the_checkpoint_of_two(tiny, tmp_path):
    tasks = {name: task for name, task in make_tasks(tiny, tmp_path, STEPS).items() if "strategy" in task}
    two = on_processes.start({2: [{**task, "continues": 2} for task in tasks.values()]}, tmp_path)[2]
    three = on_processes.start({3: [{**task, "continues": 2} for task in tasks.values()]}, tmp_path)[3]
    for one, other in zip(two, three, strict=True):
        assert other["losses"][-1] == pytest.approx(one["losses"][-1], abs=1e-6)


@pytest.mark.parametrize("name", ["generation", "fsdp, seq2seq"])
def test_each_generated_text_is_that_of_one_process(name, alone, together):
    assert together[name]["written"] == alone[name]["written"]


@pytest.mark.parametrize("name", ["fsdp, tied", "fsdp, rows"])
def test_one_process_continues_a_sharded_models_checkpoint(name, device, tasks, together):
    engine = on_processes.open_engine(tasks[name])
    engine.restore(on_processes.checkpoint_of(tasks[name], SHARDED_SIZE))
    [after] = on_processes.take_step_after(tasks[name], engine)
    assert after.loss == pytest.approx(together[name]["losses"][STEPS], abs=1e-6 if device == "cpu" else 1e-4)


@pytest.mark.parametrize(
    "name", ["fsdp, tied", "fsdp, frozen bfloat16", "fsdp, experts", "fsdp, CPU offload", "fsdp, seq2seq"]
)
def test_a_sharded_model_is_saved_as_the_whole_one(name, tasks, alone, together):
    one, two = (
        load_file(Path(tasks[name]["checkpoint"]) / f"model-of-{size}" / "model.safetensors")
        for size in (1, SHARDED_SIZE)
    )
    assert one.keys() == two.keys()
    for key, values in one.items():
        np.testing.assert_allclose(two[key], values, atol=1e-4, err_msg=key)


def test_an_expert_that_no_row_chose_takes_no_step_with_fsdp_either(tasks, together):
    task = tasks["fsdp, experts"]
    files = (on_processes.checkpoint_of(task, size) / "optimizer.safetensors" for size in (1, SHARDED_SIZE))
    one, two = map(load_file, files)
    steps = {key: value for key, value in one.items() if key.startswith("step.")}
    assert {int(value) for value in steps.values()} > {STEPS}
    assert steps == {key: value for key, value in two.items() if key.startswith("step.")}


def test_every_process_holds_the_model_on_its_own_device(tiny, tmp_path):
    engine = TorchEngine(ProcessGroup(rank=1, size=2))
    engine.load(loading(tiny("bert"), classes("a", "b"), devices=("meta", "cpu")))
    engine.export(tmp_path)  # on the first one's device the weights would have no values
    assert (tmp_path / "model.safetensors").stat().st_size > 1000


def test_a_weight_that_only_the_other_process_used_gets_its_gradient(monkeypatch):
    def all_reduce(tensor, op=process_group.dist.ReduceOp.SUM, **options):
        theirs = torch.tensor([0, 1], dtype=torch.uint8) if tensor.dtype is torch.uint8 else torch.ones_like(tensor)
        reductions = {"MAX": torch.maximum, "MIN": torch.minimum, "SUM": torch.add}
        tensor.copy_(reductions[op.name](tensor, theirs))
        return SimpleNamespace(wait=lambda: None)

    monkeypatch.setattr(process_group.dist, "all_reduce", all_reduce)
    own, others = torch.zeros(3, requires_grad=True), torch.zeros(2, requires_grad=True)
    own.grad = torch.ones(3)
    loss = ProcessGroup(rank=0, size=2).sum_step(torch.tensor(0.5), [own, others])
    assert own.grad is not None
    assert others.grad is not None
    assert (loss.item(), own.grad.tolist(), others.grad.tolist()) == (1.5, [2, 2, 2], [1, 1])


def test_every_process_starts_with_the_first_ones_weights(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(process_group.dist, "new_group", lambda **options: None)
    monkeypatch.setattr(process_group.dist, "broadcast", lambda tensor, source, **options: tensor.fill_(0.25))
    engine = TorchEngine(ProcessGroup(rank=1, size=2))
    engine.load(loading(tiny("bert"), classes("a", "b"), TrainingSection(learning_rate=1e-3), devices=("cpu", "cpu")))
    engine.export(tmp_path)
    assert all((weight == 0.25).all() for weight in load_file(tmp_path / "model.safetensors").values())


def test_the_first_process_does_not_wait_forever_for_one_that_hangs(groups):
    assert groups[HANGS] == "collective_failed"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize("rows", [1, 100_000])
def test_a_process_whose_rows_the_disk_refuses_can_say_why_to_the_others(rows: int):
    with Path("/dev/full").open("r+b", buffering=0) as disk, pytest.raises(OSError, match="No space") as refused:
        write_rows(disk, 0, Part(torch.ones(rows, 2), (rows, 2)))
    assert refused.value.errno == errno.ENOSPC


def test_the_first_process_listens_at_its_address_alone():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    store = process_group._meet_at("127.0.0.1", port, 1, is_first=True)
    listening = [one.laddr for one in psutil.Process().net_connections("inet") if one.status == psutil.CONN_LISTEN]
    assert [one.ip for one in listening if one.port == port] == ["127.0.0.1"]
    store.set("key", "value")
    assert store.get("key") == b"value"
    assert "127.0.0.1" in [one.address for one in psutil.net_if_addrs()[process_group._interface_to("127.0.0.1")]]
