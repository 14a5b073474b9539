"""Measures the share of training time that checkpoints cost for a model of 500 MB, written while training waits or beside it.

    .venv/bin/python -m tests.benchmarks.checkpoint_cost [--folder DISK] [--checkpoints 5] [--steps 8]

It needs 12 GB of memory and 4 GB of disk. Each round trains the same steps three times: without a checkpoint, with one
that training waits for until it is whole (`save`), and with one that is written beside (`begin`). What a checkpoint
costs is the time of its round over that of the round without; so the work that goes on beside counts where it slows
the steps down. Steps are of one short row, so that they take about a second.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from backend.contract.heads import Head, HeadFacts
from backend.contract.run.folder import RunFolder
from backend.contract.spec import ModelSection, TrainingSection
from backend.engines.engine import Batch, Engine, LoadRequest
from backend.engines.torch.engine import TorchEngine
from backend.training.checkpoints import Checkpoints

VOCABULARY, WIDTH, LAYERS = 32_000, 768, 14
"""About 124 million parameters, 500 MB in float32; with AdamW's moments a checkpoint has 1.5 GB."""


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where to write; the system's folder for such files")
    parser.add_argument("--checkpoints", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12, help="between two checkpoints")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="burnish-checkpoint-cost-", dir=options.folder))
    try:
        _measure(folder, options.checkpoints, options.steps)
    finally:
        shutil.rmtree(folder)


def _measure(folder: Path, rounds: int, steps: int) -> None:
    engine = _engine(folder)
    _train(engine, 2)  # the optimizer's state is made
    checkpoints = Checkpoints(RunFolder(folder), engine="torch")
    seconds: dict[str, list[float]] = {"none": [], "waiting": [], "beside": []}
    stopped: dict[str, list[float]] = {"waiting": [], "beside": []}
    late: list[float] = []
    for number in range(rounds):
        seconds["none"].append(_timed(lambda: _train(engine, steps)))

        def waiting(step: int = 2 * number + 1) -> None:
            stopped["waiting"].append(_timed(lambda: checkpoints.save(step, engine.save)))
            _train(engine, steps)

        def beside(step: int = 2 * number + 2) -> None:
            started = time.perf_counter()
            saved = checkpoints.start_save(step, engine.save)
            stopped["beside"].append(time.perf_counter() - started)
            _train(engine, steps)
            late.append(_timed(saved.result))  # training waits for it where the next one is due

        for way, work in (("waiting", waiting), ("beside", beside)):
            seconds[way].append(_timed(work))
            checkpoints.remove_older(2 * number + 2, keep=1, best_step=None)
        print("round", number + 1, {way: round(each[-1], 2) for way, each in seconds.items()}, "stood still", stopped)
    for way in ("waiting", "beside"):
        least, middle = (
            (of(seconds[way]) - of(seconds["none"])) / of(seconds[way]) * 100 for of in (min, statistics.median)
        )
        print(
            f"{way:<8} training stood still {_spread(stopped[way])}, a round took {_spread(seconds[way])} for "
            f"{_spread(seconds['none'])} without: {least:.1f}/{middle:.1f} % of the time"
        )
    print(f"beside   at the end of a round it was waited for {_spread(late)}")
    print("minimum/median of", rounds, "rounds of", steps, "steps")


def _engine(folder: Path) -> Engine:
    from transformers import BertConfig

    model = folder / "model-to-train"
    BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=12, intermediate_size=3072
    ).save_pretrained(model)  # fmt: skip
    engine = TorchEngine()
    loaded = engine.load(
        LoadRequest(
            folder=model,
            head=HeadFacts(Head.SEQUENCE_CLASSIFICATION, labels=("no", "yes")),
            model=ModelSection(name_or_path=str(model), initialise="from_config"),
            training=TrainingSection(learning_rate=2e-5, batch_size=8),
            devices=("cpu",),
            precision="float32",
            vocabulary=VOCABULARY,
            pad_token_id=0,
        )
    )
    print(f"{loaded.parameters:,} parameters, {loaded.parameters * 4 / 1e6:.0f} MB")
    return engine


def _train(engine: Engine, steps: int) -> None:
    rng = np.random.default_rng(0)
    results = [engine.train_step([_batch(rng)], step, 1e-5) for step in range(1, steps + 1)]
    engine.read(results)


def _batch(rng: np.random.Generator, rows: int = 1, length: int = 32) -> Batch:
    return {
        "input_ids": rng.integers(5, VOCABULARY, (rows, length)),
        "attention_mask": np.ones((rows, length), dtype=np.int64),
        "labels": rng.integers(0, 2, rows),
        "row_valid": np.ones(rows, dtype=bool),
    }


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _spread(seconds: list[float]) -> str:
    return f"{min(seconds):.2f}/{statistics.median(seconds):.2f} s"


if __name__ == "__main__":
    main()
