"""Measures the memory of LoRA on a model whose own weights are held in each format: loading, training, saving, merging.

    python -m tests.benchmarks.frozen_weights [--formats nf4 bfloat16] [--layers 22] [--tokens 128] [--folder DIR]

The model has the shape of TinyLlama (1.1 billion parameters with 22 layers), random weights in bfloat16, in shards. Each
format has a process of its own. Memory is what the process has for itself (`RssAnon`), looked at every 5 ms, above what
it had before loading; pages of the file that is read or written are not counted, as the system takes them back when it
needs them. Loading is compared with the size of the loaded weights and with the largest single tensor in float32. At the
end the merged model is loaded in float32 and compared with base and adapter together.
Linux only, where a process tells what memory is its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

from backend.contract.heads import Head, HeadFacts
from backend.contract.spec import ModelSection, TrainingSection
from backend.engines.engine import Batch, LoadRequest

HIDDEN, INNER, VOCABULARY, HEADS, KEY_HEADS = 2048, 5632, 32_000, 32, 4
FORMATS = ("float32", "bfloat16", "int8", "nf4")
ROWS, STEPS = 2, 3
SHARD = "1GB"
MB = 1e6


def main() -> None:
    """Build the model if it is not there yet, measure each format, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=["nf4", "int8", "bfloat16"])
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--tokens", type=int, default=128, help="tokens of each of the two rows of a step")
    parser.add_argument("--folder", type=Path, help="where the model is built, or was")
    parser.add_argument("--measure", choices=FORMATS, help=argparse.SUPPRESS)
    parser.add_argument("--load", choices=FORMATS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.folder, arguments.measure, arguments.tokens)))
        return
    if arguments.load:
        with tempfile.TemporaryDirectory() as place:  # libraries, before what is measured
            build(Path(place), 1, hidden_size=64, intermediate_size=128, vocab_size=100)
            load(Path(place), arguments.load)
        print(json.dumps(load(arguments.folder, arguments.load)[1]))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = arguments.folder or Path(place) / "model"
        if not (folder / "config.json").is_file():
            build(folder, arguments.layers)
        found = {}
        for kind in arguments.formats:
            command = [sys.executable, "-m", "tests.benchmarks.frozen_weights", "--measure", kind]
            command += ["--folder", str(folder), "--tokens", str(arguments.tokens)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found[kind] = json.loads(done.stdout.splitlines()[-1])
        names = list(next(iter(found.values())))
        print("| MB | " + " | ".join(names) + " |")
        print("|---|" + "---|" * len(names))
        for kind, values in found.items():
            print(f"| {kind} | " + " | ".join(f"{values[name]:,.6g}" for name in names) + " |")


def build(folder: Path, layers: int, shard: str = SHARD, **changes: int) -> None:
    """A model of this shape, but for the changes, with random weights in bfloat16, in shards."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        **{"vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": INNER, **changes}, num_hidden_layers=layers,
        num_attention_heads=HEADS, num_key_value_heads=KEY_HEADS, max_position_embeddings=2048, tie_word_embeddings=False,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, dtype="bfloat16",
    )  # fmt: skip
    torch.manual_seed(1)
    LlamaForCausalLM._from_config(config, dtype=torch.bfloat16).save_pretrained(folder, max_shard_size=shard)


def load(folder: Path, kind: str) -> tuple[Any, dict[str, float], float]:
    """The engine with the model in this format, the memory that it took, and what this process had before."""
    from backend.adapters.lora import Settings
    from backend.engines.torch import ENGINE

    engine: Any = ENGINE.create()
    from backend.engines.torch import lean_imports

    lean_imports.import_bitsandbytes()
    import peft  # noqa: F401  # what is measured is the model, not the libraries

    request = LoadRequest(
        folder=folder, head=HeadFacts(Head.CAUSAL_LM), model=ModelSection(name_or_path=str(folder), weights=kind),  # type: ignore[arg-type]
        training=TrainingSection(learning_rate=1e-4, gradient_checkpointing=True), devices=("cpu",), precision="float32",
        vocabulary=json.loads((folder / "config.json").read_text())["vocab_size"], pad_token_id=0,
        adapter=Settings(rank=8, targets="all-linear"),
    )  # fmt: skip
    found: dict[str, float] = {}
    idle = own_memory()
    with _peak(found, "loading", idle):
        loaded = engine.load(request)
    weights = [*engine._model.parameters(), *engine._model.buffers()]
    found["weights"] = (sum(each.nbytes for each in weights) + quantization_bytes(engine._model)) / MB
    found["loading / weights"] = found["loading"] / found["weights"]
    found["trained"] = loaded.trainable
    return engine, found, idle


def measure(folder: Path, kind: str, tokens: int) -> dict[str, float]:
    """The memory of one format, in this process."""
    from backend.engines.torch import ENGINE

    engine, found, idle = load(folder, kind)
    with _peak(found, "training", idle):
        began = time.perf_counter()
        engine.read([engine.train_step([batch(tokens, step)], step, 1e-4) for step in range(STEPS)])
        found["seconds of a step"] = (time.perf_counter() - began) / STEPS
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        (Path(place) / "checkpoint").mkdir()
        with _peak(found, "checkpoint", idle):
            engine.save(Path(place) / "checkpoint")()
        with _peak(found, "merging", idle):
            engine.export(Path(place) / "merged")
        ours = engine.evaluate(batch(tokens, STEPS))["token_loss"]
        engine = None
        merged: Any = ENGINE.create()
        merged.load(LoadRequest(
            folder=Path(place) / "merged", head=HeadFacts(Head.CAUSAL_LM), model=ModelSection(name_or_path=place),
            training=None, devices=("cpu",), precision="float32", vocabulary=VOCABULARY, pad_token_id=0,
        ))  # fmt: skip
        theirs = merged.evaluate(batch(tokens, STEPS))["token_loss"]
        found["largest difference of a token's loss, merged"] = float(np.abs(ours - theirs).max())
    return found


def batch(tokens: int, seed: int) -> Batch:
    """Two rows of random tokens that are their own targets."""
    ids = np.random.default_rng(seed).integers(3, VOCABULARY, (ROWS, tokens))
    return {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "labels": ids,
        "row_valid": np.ones(ROWS, dtype=bool),
    }


def quantization_bytes(model: Any) -> int:
    """What bitsandbytes keeps beside the weights: scales and their scales."""
    state = model.state_dict()
    return sum(value.nbytes for name, value in state.items() if ".absmax" in name or name.endswith(("absmax", "SCB")))


def own_memory() -> float:
    """Bytes of memory that are this process's own."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not tell a process's own memory")


@contextmanager
def _peak(found: dict[str, float], name: str, idle: float) -> Iterator[None]:
    """Note the most memory above `idle`, in megabytes, within this context."""
    done, most = Event(), [own_memory()]

    def look() -> None:
        while not done.wait(0.005):
            most[0] = max(most[0], own_memory())

    thread = Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        found[name] = (max(most[0], own_memory()) - idle) / MB


if __name__ == "__main__":
    main()
