"""Measures what ssh adds to a run: seconds from `burnish train` to its first step, here and on a machine, and how late events arrive.

    python tests/benchmarks/mirror_delay.py MACHINE [--times 3]

MACHINE is described in `machines.yaml` (`burnish machines add`). The embedded data trains the embedded model, in turn here and
there. The delay of an event is the time at which its line is in the folder here, less the time that it carries, so the two
clocks must agree; a server on localhost has the same. Printed are the least start of each, and the median and greatest delay.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
POLL_SECONDS = 0.005
SPEC = """\
name: delay
task: {{type: text_classification}}
model: {{name_or_path: {root}/resources/demo/bert-tiny}}
data:
  source: files
  train: {root}/resources/demo/sentiment/train.csv
  columns: {{text: text, label: label}}
training: {{max_steps: 200, batch_size: 16, checkpoint_every: never}}
evaluation: {{every: never}}
"""


def main() -> None:
    """Measure in turn and print a line for each place."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machine", metavar="MACHINE")
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    starts: dict[str, list[float]] = {"here": [], arguments.machine: []}
    delays: dict[str, list[float]] = {"here": [], arguments.machine: []}
    with tempfile.TemporaryDirectory() as place:
        spec = Path(place) / "spec.yaml"
        spec.write_text(SPEC.format(root=ROOT), encoding="utf-8")
        for number in range(arguments.times):
            for name, options in (("here", []), (arguments.machine, ["--on", arguments.machine])):
                start, late = _measure(spec, Path(place) / f"{name}-{number}", options)
                print(f"{number + 1} {name}: first step after {start:.2f} s", file=sys.stderr)
                starts[name].append(start)
                delays[name] += late
    for name, late in delays.items():
        print(
            f"{name:<12} first step after {min(starts[name]):.2f} s; an event is here after {statistics.median(late):.2f} s, "
            f"at most {max(late):.2f} s ({len(late)} events)"
        )
    print(f"ratio of the starts: {min(starts[arguments.machine]) / min(starts['here']):.2f}")


def _measure(spec: Path, folder: Path, options: list[str]) -> tuple[float, list[float]]:
    """Seconds until the first step is on record here, and the delay of every event."""
    began = time.time()
    command = [sys.executable, "-m", "backend", "train", str(spec), "--run-folder", str(folder), *options]
    with Path(os.devnull).open("w") as nothing:
        process = subprocess.Popen(command, cwd=ROOT, stdout=nothing, stderr=nothing)
        start, late, offset = 0.0, [], 0
        while process.poll() is None:
            time.sleep(POLL_SECONDS)
            lines, offset = _new_lines(folder / "events.jsonl", offset)
            now = time.time()
            for line in map(json.loads, lines):
                late.append(now - line["time"])
                if line["event"] == "StepFinished" and not start:
                    start = now - began
    assert process.returncode == 0, f"the run failed; see {folder}"
    return start, late


def _new_lines(path: Path, offset: int) -> tuple[list[bytes], int]:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            whole, _, _ = file.read().rpartition(b"\n")
    except FileNotFoundError:
        return [], offset
    return (whole.splitlines(), offset + len(whole) + 1) if whole else ([], offset)


if __name__ == "__main__":
    main()
