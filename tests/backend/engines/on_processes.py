"""What the tests of several training processes run; starts groups of them as forks of one process.

Tasks as JSON in, numbers as JSON out. Torch is imported once; nothing is computed before the forks. With tasks for `cuda`,
which a fork may not use if its parent has, each process is a program of its own instead, on the GPU of its rank.
"""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from backend.contract.errors import RunFailed
from backend.contract.heads import IGNORE, Head
from backend.contract.rpc.generation import GenerationSettings
from backend.contract.spec import TrainingSection
from backend.data.batches import Batch
from backend.engines.engine import Engine, StepNumbers
from backend.engines.torch import Settings, TorchEntry, target_logits
from backend.engines.torch.distributed import leading_engine, process_group
from backend.engines.torch.distributed.leading_engine import LeadingEngine
from backend.engines.torch.distributed.process_group import ProcessGroup
from backend.engines.torch.engine import TorchEngine
from backend.engines.torch.lean_imports import import_bitsandbytes
from tests.backend.engines.example_batches import loading
from tests.backend.engines.head_batches import facts, head_batch, part_of

PARTS = [slice(0, 9), slice(9, 15), slice(15, 16)]
"""Micro-batches of a step: of the last one only the first process has a row."""
EVALUATED = (20, 21, 22, 2)
HANGS = 0
"""In place of a number of processes: of two, the second one hangs, and the result is what the first says of it after a second."""

_PROGRAM = f"""
import sys

from backend.engines.torch import lean_imports

lean_imports.install()  # as an engine process does, before it imports transformers

from {__name__} import main, serve

if sys.argv[3:]:
    serve(*sys.argv[1:])
raise SystemExit(main())
"""


def start(groups: dict[int, list[dict[str, Any]]], folder: Path) -> dict[int, Any]:
    """What groups of so many processes made of their tasks."""
    forks = {size: tasks for size, tasks in groups.items() if all(task["device"] != "cuda" for task in tasks)}
    for size in groups.keys() - forks.keys():
        _run([[json.dumps(groups[size]), str(folder), str(size), str(rank)] for rank in range(size)])
    _run([[json.dumps([list(forks.items()), str(folder)])]] if forks else [])
    return {size: json.loads((folder / f"results-{size}.json").read_text()) for size in groups}


def _run(programs: list[list[str]]) -> None:
    """Run these programs, of the given arguments, at the same time."""
    running = [
        subprocess.Popen([sys.executable, "-c", _PROGRAM, *given], stderr=subprocess.PIPE, text=True)
        for given in programs
    ]
    said = [one.communicate(timeout=1000)[1] for one in running]
    assert not any(one.returncode for one in running), "\n".join(said)


def run(task: dict[str, Any], group: ProcessGroup | None = None) -> dict[str, Any]:
    """Losses and norms of all steps; outputs of different numbers of rows, and generated texts; the checkpoint."""
    target_logits._CHUNK_ELEMENTS = task.get("chunk", TorchEntry.logits_at_once)
    if group is not None and task.get("strategy") == "fsdp":
        _offload_on_cpus(offloads=bool(task.get("offloads")))
    engine = open_engine(task, group)
    head = Head(task["head"])
    results = [engine.train_step(_micro_batches(task, step), step, 1e-3) for step in range(1, task["steps"] + 1)]
    numbers = engine.read(results)
    evaluated = task.get("evaluated", EVALUATED)
    outputs = [_outputs(engine, head_batch(head, rows, padding=task["padding"])) for rows in evaluated]
    written: list[list[list[int]]] = []
    if task.get("generates"):
        settings = GenerationSettings(max_new_tokens=5)
        batches = [head_batch(head, rows, padding=task["padding"]) for rows in evaluated]
        written = [[one.tolist() for one in engine.generate(batch, settings)] for batch in batches]
    if task.get("checkpoint"):
        path = checkpoint_of(task, group.size if group else 1)
        path.mkdir()
        engine.save(path)()
        engine.restore(path)
        numbers = [*numbers, *take_step_after(task, engine)]
        if task.get("continues"):
            engine.restore(checkpoint_of(task, task["continues"]))
            # What the optimizer remembers shows in the loss after another step.
            numbers = [*numbers, *take_step_after(task, engine), *take_step_after(task, engine)]
    if task.get("exports"):
        engine.export(Path(task["checkpoint"]) / f"model-of-{group.size if group else 1}")
    return {
        "losses": [one.loss for one in numbers],
        "norms": [one.gradient_norm for one in numbers],
        "outputs": outputs,
        "written": written,
    }


def checkpoint_of(task: dict[str, Any], size: int) -> Path:
    """Where so many processes save the task's checkpoint."""
    return Path(task["checkpoint"]) / f"of-{size}"


def take_step_after(task: dict[str, Any], engine: Engine) -> list[StepNumbers]:
    """A step after a checkpoint was restored."""
    return engine.read([engine.train_step(_micro_batches(task, 100), 100, 1e-3)])


def _outputs(engine: Engine, batch: Batch) -> dict[str, list[Any]]:
    """The outputs of a batch, without those of padding, which depend on the rows beside it."""
    tokens, outputs = batch["attention_mask"] == 1, engine.evaluate(batch)
    for array in outputs.values():
        if array.shape[:2] == tokens.shape:
            array[~tokens] = 0
    return {name: array.tolist() for name, array in outputs.items()}


def open_engine(task: dict[str, Any], group: ProcessGroup | None = None) -> Engine:
    """The engine with the task's model; a follower's is opened by the first process's call."""
    engine = TorchEngine() if group is None else LeadingEngine(group)
    training = TrainingSection(learning_rate=1e-3, weight_decay=0.1, seed=7, **task.get("training", {}))
    changes: dict[str, Any] = {name: task[name] for name in ("model", "vocabulary", "precision") if name in task}
    if "adapter" in task:
        from backend.adapters.lora import Settings as Lora  # only one task needs PEFT

        changes["adapter"] = Lora(**task["adapter"])
    size = group.size if group else 1
    devices = tuple(f"cuda:{rank}" for rank in range(size)) if task["device"] == "cuda" else ("cpu",) * size
    changes = {"model": {"dropout": 0.0}, "pad_token_id": task["padding"], **changes}
    engine.load(
        loading(
            Path(task["folder"]), facts(Head(task["head"])), training, devices=devices,
            hardware=Settings(
                threads=1, collective_timeout=60, strategy=task.get("strategy", "ddp"), cpu_offload=task.get("offloads", False)
            ),
            **changes,
        )
    )  # fmt: skip
    return engine


def _offload_on_cpus(*, offloads: bool) -> None:
    """Let FSDP go the ways of CPU offload on CPUs too, where the engine has no use for it."""
    from torch.distributed import fsdp  # distributed tensors take seconds

    from backend.engines.torch.distributed import sharded_model

    offload, stay = (getattr(fsdp, name) for name in ("CPUOffloadPolicy", "OffloadPolicy"))
    sharded_model.OffloadPolicy = partial(offload, pin_memory=False) if offloads else stay


def _micro_batches(task: dict[str, Any], step: int) -> list[Batch]:
    batch = head_batch(Head(task["head"]), 16, seed=step % 2, padding=task["padding"])
    batch["input_ids"] = batch["input_ids"] * task.get("spread", 1)
    parts = [part_of(batch, rows) for rows in PARTS]
    return [_packed(part) for part in parts] if task.get("packs") else parts


def _packed(batch: Batch) -> Batch:
    """The batch's rows in pairs, one behind the other."""
    rows = [_joined(batch, first) for first in range(0, len(batch["row_valid"]), 2)]
    width = max(len(row["input_ids"]) for row in rows)
    fillers = {"labels": IGNORE}
    return {
        **{
            name: np.stack([np.pad(row[name], (0, width - len(row[name])), constant_values=fillers.get(name, 0)) for row in rows])
            for name in rows[0]
        },
        "row_valid": np.ones(len(rows), dtype=bool),
    }  # fmt: skip


def _joined(batch: Batch, first: int) -> dict[str, np.ndarray]:
    texts = [
        ids[mask == 1]
        for ids, mask in zip(
            batch["input_ids"][first : first + 2], batch["attention_mask"][first : first + 2], strict=True
        )
    ]
    ids = np.concatenate(texts)
    labels = ids.copy()
    labels[len(texts[0]) :][:1] = IGNORE
    return {
        "input_ids": ids,
        "labels": labels,
        "attention_mask": np.ones_like(ids),
        "segment": np.repeat(np.arange(len(texts)), [len(text) for text in texts]),
        "position": np.concatenate([np.arange(len(text)) for text in texts]),
    }


def serve(tasks: str, folder: str, size: str, rank: str) -> None:
    """Be one of several processes, as a program of its own."""
    _serve(int(rank), int(size), json.loads(tasks), Path(folder))
    os._exit(0)  # NCCL waits for the others, which may be gone


def _serve(rank: int, size: int, tasks: list[dict[str, Any]], folder: Path) -> None:
    torch.set_num_threads(1)
    group = ProcessGroup.join(rank, size, str(folder / f"rendezvous-{size}"))
    if rank:
        for _ in tasks:
            leading_engine.follow(group)
        return
    found = []
    for task in tasks:
        found.append(run(task, group))
        group.send(leading_engine.END, {})
    (folder / f"results-{size}.json").write_text(json.dumps(found))


def _call_one_that_hangs(folder: Path) -> None:
    other = os.fork()
    signal.alarm(30)
    process_group._KILLED_WITHIN_SECONDS = 0.0
    group = ProcessGroup.join(0 if other else 1, 2, str(folder / "rendezvous-of-one-that-hangs"))
    group.prepare(torch.device("cpu"), timeout_seconds=1)
    if not other:
        signal.pause()
    said = ""
    try:
        group.send("evaluate", {})
    except RunFailed as error:
        said = error.code
    (folder / f"results-{HANGS}.json").write_text(json.dumps(said))
    os.kill(other, signal.SIGKILL)


def main() -> int:
    """Fork every process of every group, and wait for them."""
    groups, folder = json.loads(sys.argv[1])
    tasks = [task for _, own in groups for task in own]
    if any("adapter" in task for task in tasks):
        import_bitsandbytes()  # before PEFT does
        import_module("backend.engines.torch.adapters")  # PEFT takes seconds, in each process that imports it itself
    for name in {task["name"].partition("-")[0] for task in tasks}:
        import_module(f"transformers.models.{name}.modeling_{name}")  # once, instead of in each process
    if any(task.get("strategy") == "fsdp" for task in tasks):
        import_module("backend.engines.torch.distributed.sharded_model")  # distributed tensors take seconds too
    children = []
    for size, own in groups:
        for rank in range(size or 1):
            if (child := os.fork()) == 0:
                if size == HANGS:
                    _call_one_that_hangs(Path(folder))
                else:
                    _serve(rank, size, own, Path(folder))
                os._exit(0)
            children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
