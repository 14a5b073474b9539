"""Compares runs on an ssh server, on Slurm and on Ray with the same run here: their numbers, their start, and how late events arrive.

    python tests/benchmarks/remote_runs.py [sshd slurm ray] [--times 2]

Each is the real one, started on this computer with folders, ports and keys of its own; one that is not installed is left out. The
embedded data trains the embedded model with PyTorch in one and two processes, and with JAX in one process and on two hosts (two
tasks of Slurm, two workers of Ray). Two Markdown tables are printed.

The numbers are compared with those of one process of the same engine here: PyTorch's and JAX's runs with the same number of processes
are equal to the bit, others but for the order in which numbers are added. The delay of an event is the time at which its line is in
the folder here, less the time that it carries. A start is the least of all, from the command to the first step on record here.
"""

import argparse
import csv
import json
import os
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = str(ROOT)

from backend.contract.machines import Machine, write_machines  # noqa: E402
from backend.contract.processes import python_command  # noqa: E402
from backend.remote import ray_jobs  # noqa: E402
from tests.backend.remote import clusters  # noqa: E402

POLL_SECONDS = 0.005
SPEC = """\
name: compared
task: {{type: text_classification}}
model: {{name_or_path: {root}/resources/demo/bert-tiny, dropout: 0}}
data:
  source: files
  train: {root}/resources/demo/sentiment/train.csv
  validation: {root}/resources/demo/sentiment/validation.csv
  columns: {{text: text, label: label}}
training: {{max_steps: 40, batch_size: 16, checkpoint_every: never}}
evaluation: {{every: 20}}
hardware: {{device: cpu}}
"""
ONE = {"torch": {"engine": "torch"}, "JAX": {"engine": "jax"}}
TWO_PROCESSES, TWO_HOSTS = {"engine": "torch", "processes": 2}, {"engine": "jax", "hosts": 2}
TASKS = "#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=2"
"""The cluster has only one node."""


@dataclass
class Measured:
    """A kind of run at one place: its numbers, which each time must be the same, its starts and the delays of its events."""

    numbers: dict[str, Any] = field(default_factory=dict)
    starts: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)


def main() -> None:
    """Measure place after place and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", default=["sshd", "slurm", "ray"])
    parser.add_argument("--times", type=int, default=2)
    arguments = parser.parse_args()
    found: dict[tuple[str, str], Measured] = {}
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        os.environ |= {
            "BURNISH_CONFIG": str(home / "config"),
            "BURNISH_CACHE": str(home / "cache"),
            "OMP_NUM_THREADS": "1",
        }
        program = home / "burnish"
        program.write_text(f'#!/bin/sh\nexport OMP_NUM_THREADS=1 BURNISH_CACHE={home}/cache\nexec {shlex.join(python_command("backend"))} "$@"\n')  # fmt: skip
        program.chmod(0o755)
        for place in ("here", *arguments.places):
            if place != "here" and (reason := clusters.missing(place)):
                print(f"{place} is left out: it {reason}", file=sys.stderr)
                continue
            folder = home / place
            folder.mkdir()
            with _running(place, folder, program) as script_lines:
                for title, hardware in _kinds(place).items():
                    lines = TASKS if hardware == TWO_HOSTS and place == "slurm" else ""
                    script_lines(lines)
                    one = found[place, title] = Measured()
                    for number in range(arguments.times):
                        _measure(folder / f"{title}-{number}".replace(" ", "-"), place, hardware, one)
                        print(f"{place}, {title}: first step after {one.starts[-1]:.2f} s", file=sys.stderr)
    _print_numbers(found)
    _print_times(found)


def _kinds(place: str) -> dict[str, Mapping[str, Any]]:
    kinds: dict[str, Mapping[str, Any]] = {**ONE, "torch, 2 processes": TWO_PROCESSES}
    return kinds if place == "sshd" else {**kinds, "JAX, 2 hosts": TWO_HOSTS}


@contextmanager
def _running(place: str, folder: Path, program: Path) -> Iterator[Any]:
    """The place as the machine `there`; yields a function that sets its own lines of the batch script."""
    own: dict[str, Any] = {"folder": str(folder / "there"), "command": str(program)}

    def describe(lines: str = "") -> None:
        if place != "here":
            write_machines({"there": Machine.model_validate({**own, "script_lines": lines})})

    if place == "sshd":
        with clusters.sshd(folder) as configuration:
            own |= {"address": "lab", "ssh_config": str(configuration)}
            yield describe
    elif place == "slurm":
        with clusters.slurm(folder) as configuration:
            os.environ |= {"SLURM_CONF": str(configuration), "PATH": clusters.SYSTEM_PATH}
            own["scheduler"] = "slurm"
            yield describe
    elif place == "ray":
        with clusters.ray(folder) as cluster:
            os.environ[ray_jobs.TOKEN] = cluster.token
            own |= {"scheduler": "ray", "dashboard": cluster.dashboard}
            yield describe
    else:
        yield describe


def _measure(folder: Path, place: str, hardware: Mapping[str, Any], into: Measured) -> None:
    """Train, and add what was seen."""
    spec, run = folder.with_suffix(".yaml"), folder
    spec.write_text(SPEC.format(root=ROOT), encoding="utf-8")
    changes = {f"hardware.{name}": value for name, value in hardware.items()}
    hosts = 2 if hardware == TWO_HOSTS and place == "here" else 1
    if hosts == 2:
        changes["hardware.coordinator"] = f"127.0.0.1:{clusters.free_port()}"
    options = [part for name, value in changes.items() for part in ("--set", f"{name}={value}")]
    options += [] if place == "here" else ["--on", "there"]
    began = time.time()
    command = [sys.executable, "-m", "backend", "train", str(spec), "--run-folder", str(run), *options]
    processes = []
    with folder.with_suffix(".log").open("wb") as log:
        for number in range(hosts):
            environment = {**os.environ, **({"BURNISH_HOST": str(number)} if hosts == 2 else {})}
            processes.append(subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=environment))
        start, offset = 0.0, 0
        while processes[0].poll() is None:
            time.sleep(POLL_SECONDS)
            lines, offset = _new_lines(run / "events.jsonl", offset)
            now = time.time()
            for line in map(json.loads, lines):
                into.delays.append(now - line["time"])
                if line["event"] == "StepFinished" and not start:
                    start = now - began
        for process in processes[1:]:
            process.wait()
    assert not any(process.returncode for process in processes), folder.with_suffix(".log").read_text()
    into.starts.append(start)
    numbers = _read_numbers(run)
    assert into.numbers in ({}, numbers), f"{run} has other numbers than the run before"
    into.numbers = numbers


def _new_lines(path: Path, offset: int) -> tuple[list[bytes], int]:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            whole, _, _ = file.read().rpartition(b"\n")
    except FileNotFoundError:
        return [], offset
    return (whole.splitlines(), offset + len(whole) + 1) if whole else ([], offset)


def _read_numbers(run: Path) -> dict[str, Any]:
    lines = [json.loads(line) for line in (run / "events.jsonl").read_bytes().splitlines()]
    with (run / "predictions.csv").open(encoding="utf-8", newline="") as file:
        predictions = [row["prediction"] for row in csv.DictReader(file)]
    return {
        "losses": [line["loss"] for line in lines if line["event"] == "StepFinished"],
        "metrics": [value for line in lines if line["event"] == "EvaluationFinished" for _, value in sorted(line["metrics"].items())],
        "predictions": predictions,
        "model": (run / "model" / "model.safetensors").read_bytes(),
    }  # fmt: skip


def _print_numbers(found: Mapping[tuple[str, str], Measured]) -> None:
    print(f"On {socket.gethostname()}, {os.cpu_count()} CPUs\n")
    print("| run | where | losses | metrics | predictions | model |")
    print("|---|---|---|---|---|---|")
    for title in dict.fromkeys(title for _, title in found):
        for (place, other), one in found.items():
            base = found["here", title.partition(",")[0]].numbers
            if other != title or one.numbers is base:
                continue
            same = one.numbers["model"] == base["model"]
            like = found.get(("here", title))
            model = "equal" if same else "equal to 2 here" if like and like.numbers["model"] == one.numbers["model"] else "differs"  # fmt: skip
            changed = sum(map(str.__ne__, one.numbers["predictions"], base["predictions"]))
            print(
                f"| {title} | {place} | {_difference(one, base, 'losses')} | {_difference(one, base, 'metrics')} | "
                f"{f'{changed} differ' if changed else 'equal'} | {model} |"
            )


def _difference(one: Measured, base: Mapping[str, Any], name: str) -> str:
    assert len(one.numbers[name]) == len(base[name])
    greatest = max(abs(a - b) for a, b in zip(one.numbers[name], base[name], strict=True))
    return f"within {greatest:.0e}" if greatest else "equal"


def _print_times(found: Mapping[tuple[str, str], Measured]) -> None:
    print("\n| run | where | first step after | an event is here after | at most | events |")
    print("|---|---|---:|---:|---:|---:|")
    for (place, title), one in found.items():
        print(
            f"| {title} | {place} | {min(one.starts):.1f} s | {statistics.median(one.delays):.2f} s | {max(one.delays):.2f} s | "
            f"{len(one.delays)} |"
        )


if __name__ == "__main__":
    main()
