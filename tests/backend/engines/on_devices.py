"""Runs the parts of tests that need several devices or hosts, in processes of their own.

Tasks as JSON in, numbers as JSON out; as one of several hosts with its number, their count and where they meet.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors.numpy import load_file

from backend.contract.heads import Head
from backend.contract.rpc.generation import GenerationSettings
from backend.contract.spec import TrainingSection
from backend.engines.hosts import Position
from backend.engines.jax import Settings, cluster
from backend.engines.jax.engine import JaxEngine
from tests.backend.engines.example_batches import loading
from tests.backend.engines.head_batches import facts, head_batch, part_of

ROWS = 13  # which neither 2 nor 4 devices divide


def opened(task: dict[str, Any]) -> JaxEngine:
    """The engine with a model on the first devices; all on one where the task does not say."""
    numbers = range(task.get("devices", 1))
    engine = JaxEngine()
    engine.load(
        loading(
            Path(task["model"]), facts(Head(task["head"])), TrainingSection(learning_rate=2e-5, seed=7, weight_decay=0.1),
            vocabulary=task["vocabulary"], model={"dropout": task.get("dropout", 0.0)},
            devices=tuple("cpu" if number == 0 else f"cpu:{number}" for number in numbers),
            hardware=Settings(**task.get("settings", {})),
        )
    )  # fmt: skip
    return engine


def losses(engine: JaxEngine, task: dict[str, Any], steps: range) -> list[float]:
    """Of steps in ragged passes; each shape is compiled, so there is one unless the task says so."""
    results = []
    for step in steps:
        batch = head_batch(Head(task["head"]), ROWS, seed=step % 2)
        parts = [slice(0, 8), slice(8, ROWS)] if task.get("passes") == 2 else [slice(0, ROWS)]
        results.append(engine.train_step([part_of(batch, part) for part in parts], step, 1e-3))
    return [one.loss for one in engine.read(results)]


def train(task: dict[str, Any]) -> dict[str, Any]:
    """Losses of three steps, the outputs, what is written, and the bytes of the first device among all."""
    engine = opened(task)
    found = losses(engine, task, range(3))
    outputs = engine.evaluate(head_batch(Head(task["head"]), ROWS))
    arrays = jax.tree.leaves((engine._parameters, engine._state))
    one = jax.local_devices()[0]
    first = [shard.data.nbytes for array in arrays for shard in array.addressable_shards if shard.device == one]
    return {
        "losses": found,
        "written": _written(engine) if task.get("writes") else None,
        "outputs": {name: values.tolist() for name, values in outputs.items()},
        "share": sum(first) / sum(array.nbytes for array in arrays),
    }


def _written(engine: JaxEngine) -> list[list[int]]:
    """Three prompts of one length, continued by beams."""
    ids = np.random.default_rng(3).integers(3, 50, (3, 6))
    batch = {"input_ids": ids, "attention_mask": np.ones_like(ids), "row_valid": np.ones(3, dtype=bool)}
    settings = GenerationSettings(max_new_tokens=6, min_new_tokens=4, num_beams=2)
    return [row.tolist() for row in engine.generate(batch, settings)]


def resume(task: dict[str, Any]) -> dict[str, Any]:
    """Losses of a run that goes on with other devices after every step, and whether each took over to the bit."""
    found, exact, step, before = [], [], 0, None
    for number, devices in enumerate(task["lives"]):
        engine = opened({**task, "devices": devices})
        if before is not None:
            folder = Path(task["folder"]) / str(number)
            folder.mkdir()
            before.save(folder)()
            engine.restore(folder)
            exact.append(_equal(before, engine))
        found += losses(engine, task, range(step, step + 1))
        step, before = step + 1, engine
    return {"losses": found, "exact": exact}


def save(task: dict[str, Any]) -> dict[str, Any]:
    """Losses of two steps, after which every host saves its part and the first exports what it has gathered."""
    engine, folder = opened(task), Path(task["folder"])
    found = losses(engine, task, range(2))
    engine.save(folder / "state")()
    engine.export(folder / "model")
    return {"losses": found}


def go_on(task: dict[str, Any]) -> dict[str, Any]:
    """The loss of the third step, after what `save` left, and whether its parameters are those that it exported."""
    engine, folder = opened(task), Path(task["folder"])
    engine.restore(folder / "state")
    exported = load_file(folder / "model" / "model.safetensors")
    equal = [np.asarray(value).tobytes() == exported[name].tobytes() for name, value in engine._parameters.items()]
    return {"losses": losses(engine, task, range(2, 3)), "equal": all(equal)}


def _equal(one: JaxEngine, other: JaxEngine) -> bool:
    pairs = zip(*(jax.tree.leaves((each._parameters, each._state)) for each in (one, other)), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


if __name__ == "__main__":
    if sys.argv[2:]:
        cluster.join(Position(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], 120))
    does = {"train": train, "resume": resume, "save": save, "go_on": go_on}
    answers = [does[task["do"]](task) for task in json.loads(sys.argv[1])]
    sys.stdout.write(json.dumps(answers) + "\n")
