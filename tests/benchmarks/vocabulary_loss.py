"""Measures the memory and time of a step whose logits exist at once, as they used to, and of one that computes them in parts.

    .venv/bin/python -m tests.benchmarks.vocabulary_loss [--vocabulary 256000] [--targets 4096] [--hidden 256] [--rounds 2]

A Llama of two layers with random weights, its output layer tied to its word embedding, trains in full or with LoRA in
float32 on the CPU, each time in a process of its own. Memory is the process's peak over what it holds before its
first step (weights and libraries); time is the shortest step after the first one, and the processor time of that step.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

MB = 1e6
LENGTH = 256
STEPS = 3
WAYS = {"before": "all logits at once", "after": "logits in parts"}


def main() -> None:
    """Print a line for each way of training and of computing logits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vocabulary", type=int, default=256_000)
    parser.add_argument("--targets", type=int, default=4096, help="a multiple of 256")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=2, help="processes of each kind; the best one counts")
    parser.add_argument("--training", choices=["full", "lora", "both"], default="both")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        way, training = options.one
        print(json.dumps(_measure(way, training, options)))
        return
    with tempfile.TemporaryDirectory(prefix="burnish-vocabulary-loss-") as folder:
        _build(Path(folder), options.vocabulary, options.hidden)
        for training in ["full", "lora"] if options.training == "both" else [options.training]:
            _compare(training, folder, options.rounds)


def _compare(training: str, folder: str, rounds: int) -> None:
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for way in WAYS:
            command = [sys.executable, "-m", "tests.benchmarks.vocabulary_loss", *sys.argv[1:]]
            command += ["--folder", folder, "--one", way, training]
            found: dict[str, float] = json.loads(
                subprocess.run(command, check=True, capture_output=True, text=True).stdout
            )
            former = best.get(way, found)
            best[way] = {name: min(value, former[name]) for name, value in found.items()}
    for way, words in WAYS.items():
        one = best[way]
        print(
            f"{training}, {words}: {one['memory_mb']:,.0f} MB above {one['held_mb']:,.0f} MB, "
            f"step {one['seconds']:.2f} s, processor {one['processor_seconds']:.2f} s, loss {one['loss']:.7f}"
        )
    before, after = best["before"], best["after"]
    ratios = {name: after[name] / before[name] for name in ("memory_mb", "seconds", "processor_seconds")}
    print(
        f"{training}, after ÷ before: " + ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items()), flush=True
    )


def _build(folder: Path, vocabulary: int, hidden: int) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=hidden, intermediate_size=4 * hidden, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=LENGTH + 1, pad_token_id=0, tie_word_embeddings=True,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


def _measure(way: str, training: str, options: argparse.Namespace) -> dict[str, float]:
    from backend.engines.torch import heads  # PyTorch takes seconds, which the parent process has no use for

    if way == "before":
        heads.can_repeat = lambda *_: False
    engine, batch = _engine(training, options), _batch(options)
    held = psutil.Process().memory_info().rss
    times, processor_times, losses = [], [], []
    for step in range(STEPS):
        started, before = time.perf_counter(), time.process_time()
        losses += engine.read([engine.train_step([batch], step, 1e-4)])
        times.append(time.perf_counter() - started)
        processor_times.append(time.process_time() - before)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "held_mb": held / MB,
        "memory_mb": (peak - held) / MB,
        "seconds": min(times[1:]),
        "processor_seconds": min(processor_times[1:]),
        "loss": losses[-1].loss,
    }


def _engine(training: str, options: argparse.Namespace) -> Any:
    from backend.adapters.lora import Settings as Lora
    from backend.contract.heads import Head, HeadFacts
    from backend.contract.spec import ModelSection, TrainingSection
    from backend.engines.engine import LoadRequest
    from backend.engines.torch import Settings
    from backend.engines.torch.engine import TorchEngine

    engine = TorchEngine()
    engine.load(
        LoadRequest(
            folder=options.folder,
            head=HeadFacts(Head.CAUSAL_LM),
            model=ModelSection(name_or_path=str(options.folder)),
            training=TrainingSection(learning_rate=1e-4),
            devices=("cpu",),
            precision="float32",
            vocabulary=options.vocabulary,
            pad_token_id=0,
            hardware=Settings(),
            adapter=Lora() if training == "lora" else None,
        )
    )
    return engine


def _batch(options: argparse.Namespace) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    ids = rng.integers(3, options.vocabulary, (options.targets // LENGTH, LENGTH + 1))  # the last token predicts none
    mask = np.ones_like(ids)
    return {"input_ids": ids, "attention_mask": mask, "labels": ids, "row_valid": np.ones(len(ids), dtype=bool)}


if __name__ == "__main__":
    main()
