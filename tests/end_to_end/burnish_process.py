"""Runs Burnish as end-to-end tests do: real processes, small real data, separate folders."""

import csv
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from backend.contract import spec_file
from backend.contract.processes import python_command
from backend.contract.resources import resource
from backend.contract.run.events import AnyEvent, decode_all
from backend.contract.run.folder import RunFolder, run_folders
from tests import in_process

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 240


@dataclass
class Burnish:
    """`burnish` as a person would call it, with runs and caches in a folder of the test's own."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)
    in_process: bool = True
    """Whether commands run within the test's process, which has the frameworks in memory."""

    @property
    def runs(self) -> Path:
        return self.home / "runs"

    def variables(self) -> dict[str, str]:
        own = {"BURNISH_RUNS": str(self.runs), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
        return {**os.environ, **own, **self.environment}

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        command = python_command("backend", *arguments)
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.variables(),
            cwd=self.home,
            **options,
        )

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One command."""
        if not self.in_process:
            return self.process(*arguments)
        return in_process.call(list(arguments), self.home, self.variables())

    def process(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """One command, in a process of its own."""
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def run_folder(self) -> RunFolder:
        """The only run there is."""
        [folder] = run_folders(self.runs)
        return folder

    def spec(self, name: str = "spec.yaml", **sections: Any) -> Path:
        """A spec file in the home folder: a few rows of the demo, one short training, with these sections changed."""
        values: dict[str, Any] = {
            "version": 1,
            "name": "small",
            "task": {"type": "text_classification", "max_length": 32},
            "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
            "data": {
                "train": "train.csv",
                "validation": "validation.csv",
                "columns": {"text": "text", "label": "label"},
            },
            "training": {"max_steps": 6, "batch_size": 8, "learning_rate": 3e-4, "checkpoint_every": 6},
            "evaluation": {"every": 3},
            "hardware": {"threads": 1},
        }
        for section, changes in sections.items():
            values[section] = {**values.get(section, {}), **changes} if isinstance(changes, dict) else changes
        path = self.home / name
        path.write_text(spec_file.dump(values), encoding="utf-8")
        return path


def small_csv(path: Path, split: str, rows: int) -> None:
    """The first rows of the demo's data."""
    with resource("demo", "sentiment", f"{split}.csv").open(encoding="utf-8", newline="") as source:
        head = [row for _, row in zip(range(rows + 1), csv.reader(source), strict=False)]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(head)


def events_of(folder: RunFolder) -> list[AnyEvent]:
    """Everything the run has said so far."""
    if not folder.events.exists():
        return []
    return list(decode_all(folder.events.read_bytes().split(b"\n")))


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[str], seconds: float = 120) -> Any:
    """Until `condition` holds; fails with the process's words if that ends first."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if process.poll() is not None and not condition():
            out, err = process.communicate()
            pytest.fail(f"ended with {process.returncode} before it happened:\n{out}\n{err}")
        if time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"did not happen within {seconds} s")
        time.sleep(0.02)
    return found
