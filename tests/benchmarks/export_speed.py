"""Measures the export of a long run's curves: events a second and peak memory, for CSV and TensorBoard.

    python tests/benchmarks/export_speed.py [--events 1000001] [--beside CHECKOUT] [--json]

The run was resumed in its middle, is evaluated every thousand steps and measures its memory every hundred. Each export is
a `burnish export` of its own; its start is part of the time. `--beside` exports with another checkout of Burnish too, and
says whether both wrote the same bytes. Events are counted by the second of processor time, which other work on the machine
does not change; an export has one thread.
"""

import argparse
import filecmp
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

EVENTS_PER_SECOND = {"csv": 100_000, "tensorboard": 20_000}
MEMORY_MB = 200


def main() -> int:
    """Print one line per export; returns 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_001)
    parser.add_argument(
        "--beside", type=Path, metavar="CHECKOUT", help="another checkout, measured in turns with this one"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    checkouts = {"here": ROOT, **({"beside": options.beside.absolute()} if options.beside else {})}
    with tempfile.TemporaryDirectory(prefix="burnish-export-") as name:
        folder = Path(name)
        write_run(folder / "runs" / "long", options.events)
        found = {
            f"{kind}, {which}": measured(kind, checkout, folder, folder / f"{kind}-{which}", options.events)
            for kind in EVENTS_PER_SECOND
            for which, checkout in checkouts.items()
        }
        if options.beside:
            found["same"] = {
                kind: same(folder / f"{kind}-here", folder / f"{kind}-beside") for kind in EVENTS_PER_SECOND
            }
    broken = [
        f"{kind}: {found[f'{kind}, here']}"
        for kind, limit in EVENTS_PER_SECOND.items()
        if found[f"{kind}, here"]["events_per_second"] < limit or found[f"{kind}, here"]["peak_mb"] > MEMORY_MB
    ]
    if options.json:
        print(json.dumps({**found, "broken": broken}))
    else:
        for title, values in found.items():
            print(f"{title:20}", "  ".join(f"{key} {value:,}" for key, value in values.items()))
        print("\n".join(broken) or "every limit holds")
    return 1 if broken else 0


def write_run(folder: Path, count: int) -> None:
    """A run of so many events."""
    from backend.contract.run import events

    folder.mkdir(parents=True)
    folder.joinpath("spec.yaml").write_text("version: 1\n", encoding="utf-8")
    with folder.joinpath("events.jsonl").open("wb") as file:
        for _, event in zip(range(count), happened(count), strict=False):
            file.write(events.encode(event))


def happened(count: int) -> Iterator:
    """First half the events, then a resume from a fortieth before."""
    from backend.contract.run import events

    yield events.RunStarted(time=1e9, name="long", task="text_classification", model="bert-tiny")
    middle = count // 2
    yield from attempt(0, middle)
    first = middle - middle // 20
    yield events.RunResumed(time=1e9 + middle / 10, attempt=2, from_step=first)
    yield from attempt(first, count)


def attempt(after: int, until: int) -> Iterator:
    """Steps with the evaluations and measurements of memory between them."""
    from backend.contract.run import events

    for step in range(after + 1, until + 1):
        now = 1e9 + step / 10
        yield events.StepFinished(
            time=now, step=step, epoch=step / 1000, loss=0.1 + 1 / step, learning_rate=2e-5 * (1 - step / (4 * until)),
            gradient_norm=1.5 + 1 / step, rows=32, tokens=1000 + step % 7, seconds=0.0123,
        )  # fmt: skip
        if step % 100 == 0:
            yield events.MemoryMeasured(time=now, step=step, memory_mb=1234.5)
        if step % 1000 == 0:
            metrics = {"loss": 0.2 + 1 / step, "accuracy": 0.9, "f1": 0.85}
            yield events.EvaluationFinished(
                time=now, step=step, epoch=step / 1000, metrics=metrics, rows=1000, seconds=1.5
            )


def measured(kind: str, checkout: Path, folder: Path, target: Path, count: int) -> dict[str, float]:
    """Seconds, events a second, and the peak of one export's resident memory in megabytes."""
    environment = {**os.environ, "BURNISH_RUNS": str(folder / "runs")}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "backend", "export", "long", f"--{kind}", target],
        cwd=checkout, env={**environment, "PYTHONPATH": str(checkout)}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    assert status == 0, f"the export of {checkout} failed"
    processor = usage.ru_utime + usage.ru_stime
    return {
        "events_per_second": round(count / processor),
        "processor_seconds": round(processor, 1),
        "seconds": round(seconds, 1),
        "peak_mb": round(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6),
    }


def same(one: Path, other: Path) -> bool:
    """Whether two files, or the only files of two folders, hold the same bytes."""
    if one.is_file():
        return filecmp.cmp(one, other, shallow=False)
    return filecmp.cmp(next(one.iterdir()), next(other.iterdir()), shallow=False)


if __name__ == "__main__":
    raise SystemExit(main())
