"""What tests of runs on another machine share: a command as a function, and the losses of a run."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from backend.contract import spec_file
from backend.contract.machines import Machine
from backend.contract.resources import resource
from backend.contract.run.folder import RunFolder

Burnish = Callable[..., "subprocess.CompletedProcess[str]"]


def losses(folder: RunFolder) -> list[float]:
    """The loss of every step in the run's events."""
    lines = map(json.loads, folder.events.read_text().splitlines()) if folder.events.exists() else ()
    return [line["loss"] for line in lines if line["event"] == "StepFinished"]


def make_machine(**settings: object) -> Machine:
    """A machine with these settings."""
    return Machine.model_validate(settings)


def write_spec(folder: Path) -> Path:
    """The spec of a short run, beside its data and its model."""
    shutil.copytree(resource("demo", "bert-tiny"), folder / "bert")
    lines = resource("demo", "sentiment", "train.csv").read_text(encoding="utf-8").splitlines()[:49]
    (folder / "reviews.csv").write_text("\n".join(lines), encoding="utf-8")
    values = {
        "version": 1,
        "name": "reviews",
        "task": {"type": "text_classification"},
        "model": {"name_or_path": "bert"},
        "data": {"source": "files", "train": "reviews.csv", "validation": 0.25, "columns": {"text": "text", "label": "label"}},
        "training": {"max_steps": 2, "batch_size": 8, "learning_rate": 1e-4, "epochs": 1, "warmup": 0},
        "hardware": {"engine": "torch", "device": "cpu"},
    }  # fmt: skip
    path = folder / "spec.yaml"
    path.write_text(spec_file.dump(values), encoding="utf-8")
    return path
