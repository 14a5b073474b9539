"""Measures on a GPU the same work by Burnish, Trainer, TRL's SFT if it is installed, and a plain compiled loop.

    python -m tests.benchmarks.on_a_gpu [decoder] [encoder] [qlora] [--sides burnish loop] [--minutes 9.5] [--tiny]

- decoder: a Llama of 341 M parameters at 1,024 tokens. The share of the measured rate of products of matrices in bfloat16
  counts 6 operations for each weight of a linear layer and token, and half of the attention, as it is causal.
- encoder: a BERT of 110 M parameters without dropout, at 128 and 512 tokens; rows that all have so many, and rows of an
  eighth to all of them, which need padding.
- qlora: LoRA of rank 16 on a Llama of 1.1 B parameters in nf4, at 512 tokens.

All read the same rows with the same random weights, and compute in bfloat16 with AdamW. Rates are those of the last two
thirds of the steps, memory is the most that PyTorch allocated on the GPU. Each side of a part is a process of its own; one
that fails is told, and the others go on. `--tiny` tries the script on any computer; its numbers say nothing.
"""

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tests.benchmarks.planned_memory import BASE, LORA, Case, build
from tests.benchmarks.rivals import DEVICE, HALF, ON_GPU, train_loop, train_sft, train_trainer, wait

MATRIX, PRODUCTS = (8192, 30) if ON_GPU else (512, 3)
BERT = {**BASE, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
MEDIUM, LARGE, SMALL = (
    dict(zip(("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"), sizes, strict=True))
    for sizes in ((1024, 2816, 24, 16, 16), (2048, 5632, 22, 32, 4), (64, 128, 2, 4, 4))
)  # fmt: skip
QLORA = {"adapter": {**LORA, "saved": "adapter"}, "model.weights": "nf4", "hardware.precision": "bfloat16"}
PARTS = {
    "decoder": {"341 M, 1,024 tokens": Case("causal_lm", "llama", {**MEDIUM, "tie_word_embeddings": True}, 32_000, 1024, 16, steps=60)},
    "encoder": {
        f"110 M, {least or length} to {length} tokens": Case(
            "text_classification", "bert", BERT, 30_522, length, 16_384 // length, steps=60, shortest=least
        )
        for length in (128, 512)
        for least in (0, length // 8)
    },
    "qlora": {"1.1 B, 512 tokens": Case("causal_lm", "llama", LARGE, 32_000, 512, 8, QLORA, steps=45)},
}  # fmt: skip


def main() -> None:
    """Print a table for each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="decoder, encoder, qlora; all if there is none")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=[*SIDES])
    parser.add_argument("--minutes", type=float, default=9.5, help="after which nothing more is measured")
    parser.add_argument("--tiny", action="store_true", help="models, rows and steps of a size for trying the script")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := [part for part in given.parts if part not in PARTS]:
        parser.error(f"there is no {unknown[0]}; choose from {', '.join(PARTS)}")
    if not ON_GPU and not given.tiny:
        parser.error("PyTorch sees no GPU; --tiny tries the script without one")
    if given.side:
        cases = _find_cases(given.parts[0], given.tiny)
        found = _measure_products() if given.side == "products" else _measure(given.side, cases, given.folder)
        print(json.dumps(found))
        return
    print(f"On {torch.cuda.get_device_name() if ON_GPU else 'a CPU'}, torch {torch.__version__}:", flush=True)
    end = time.monotonic() + 60 * given.minutes
    for part in given.parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="burnish-on-a-gpu-") as place:
            cases = _find_cases(part, given.tiny)
            for number, case in enumerate(cases.values()):
                build(case, Path(place) / str(number))
            wanted = [side for side in given.sides if side != "sft" or (part != "encoder" and importlib.util.find_spec("trl"))]  # fmt: skip
            sides = [*(["products"] if part == "decoder" else []), *wanted]
            command = [part, *(["--tiny"] if given.tiny else []), "--folder", place, "--side"]
            _print_table(part, [*cases], {side: _run([*command, side], Path(place), end) for side in sides})


def _find_cases(part: str, tiny: bool) -> dict[str, Case]:
    if not tiny:
        return PARTS[part]
    changes: dict[str, Any] = {"vocabulary": 500, "batch_size": 4, "steps": 6}
    return {
        name: replace(one, config={**one.config, **SMALL}, length=one.length // 8, shortest=one.shortest // 8, **changes)
        for name, one in PARTS[part].items()
    }  # fmt: skip


def _run(arguments: list[str], folder: Path, end: float) -> dict[str, Any]:
    """What a process of its own measured of every case of a part, or why there is nothing."""
    command = [sys.executable, "-m", "tests.benchmarks.on_a_gpu", *arguments]
    card = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]  # Trainer would take several
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "BURNISH_CACHE": str(folder / "cache"),
        "CUDA_VISIBLE_DEVICES": card,
    }
    options: dict[str, Any] = {"env": environment, "capture_output": True, "text": True, "check": False}
    try:
        done = subprocess.run(command, timeout=max(1.0, end - time.monotonic()), **options)
    except subprocess.TimeoutExpired:
        return {"failed": "no time left"}
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    print(done.stderr[-4000:], file=sys.stderr)
    return {"failed": next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "without a word")}


def _print_table(part: str, names: list[str], found: dict[str, Any]) -> None:
    products = found.pop("products", {})
    print(f"\n| {part} | side | rows/s | tokens/s | Burnish ÷ it | peak memory | share of products |\n|{'---|' * 7}")
    for name in names:
        ours = found.get("burnish", {}).get(name, {}).get("rate")
        for side, measured in found.items():
            if "failed" in measured:
                print(f"| {name} | {side} | failed: {measured['failed'][:200]} |")
                continue
            own = measured[name]
            ratio = f"{ours / own['rate']:.2f}" if ours and side != "burnish" else ""
            share = f"{own['rate'] * own['operations'] / products['rate']:.1%}" if "rate" in products else ""
            numbers = f"{own['rate']:,.1f} | {own['rate'] * own['tokens']:,.0f} | {ratio} | {own['peak_mb']:,.0f} MB"
            print(f"| {name} | {side} | {numbers} | {share} |")
    print("".join(f"\nProducts of matrices, {name}: {value}" for name, value in products.items()), flush=True)


# One side


def _measure_products() -> dict[str, float]:
    one, rates = torch.randn(MATRIX, MATRIX, device=DEVICE, dtype=HALF), []
    for _ in range(4):
        wait()
        began = time.perf_counter()
        for _ in range(PRODUCTS):
            one @ one
        wait()
        rates.append(PRODUCTS * 2 * MATRIX**3 / (time.perf_counter() - began))
    return {"rate": max(rates)}


def _measure(side: str, cases: dict[str, Case], folder: Path) -> dict[str, Any]:
    found = {}
    for number, (name, case) in enumerate(cases.items()):
        if ON_GPU:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        rate = SIDES[side](case, folder / str(number))
        peak = torch.cuda.max_memory_allocated() if ON_GPU else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # fmt: skip
        lines = (folder / str(number) / "train.jsonl").read_text(encoding="utf-8").splitlines()
        tokens = sum(line.count("w") for line in lines) / len(lines)
        found[name] = {"rate": rate, "peak_mb": peak / 1e6, "tokens": tokens, "operations": _count_operations(case)}
    return found


def _count_operations(case: Case) -> float:
    """Those of a row of a Llama in training."""
    hidden, layers, length = case.config["hidden_size"], case.config["num_hidden_layers"], case.length
    keys = hidden * case.config.get("num_key_value_heads", 0) // case.config["num_attention_heads"]
    layer = 2 * hidden * (hidden + keys) + 3 * hidden * case.config["intermediate_size"]
    return 6 * length * (layers * (layer + hidden * length) + hidden * case.vocabulary)


def _train_burnish(case: Case, place: Path) -> float:
    from backend.contract import spec_file
    from backend.contract.run.events import StepFinished
    from backend.contract.run.folder import RunFolder
    from backend.preflight.resolve import resolve
    from backend.training.event_log import read_events
    from backend.training.processes import run

    values = json.loads((place / "spec.json").read_text())
    values["training"]["checkpoint_every"] = values["evaluation"]["every"] = "never"
    own = {"precision": "bfloat16", "compile": "if_possible"} if ON_GPU else {"precision": "float32"}
    values["hardware"] = {**own, "device": DEVICE, "micro_batch_size": case.batch_size}
    folder = RunFolder(place / "run")
    folder.path.mkdir()
    folder.spec.write_text(spec_file.dump(resolve(values, place).model_dump(mode="json")), encoding="utf-8")
    if run(folder):
        raise SystemExit(folder.events.read_text()[-2000:])
    steps = [event for event in read_events(folder.events) if isinstance(event, StepFinished)][case.steps // 3 :]
    return sum(event.rows for event in steps) / sum(event.seconds for event in steps)


SIDES: dict[str, Callable[[Case, Path], float]] = {
    "burnish": _train_burnish, "trainer": train_trainer, "sft": train_sft, "loop": train_loop,
}  # fmt: skip

if __name__ == "__main__":
    main()
