"""Builds and installs somebody else's package, whose entry points add to Burnish."""

import contextlib
import subprocess
import sys
from pathlib import Path

from hatchling.build import build_wheel

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "foreign"
version = "1.0"

[project.entry-points."burnish.tasks"]
shouting = "foreign:Shouting"
text_classification = "foreign:Shouting"
broken = "foreign.absent:TASK"
hollow = "foreign:Hollow"

[project.entry-points."burnish.metrics"]
exactness = "foreign:Exactness"

[project.entry-points."burnish.optimizers"]
signs = "foreign.signs:Signs"
"""

TASK = '''\
"""Text classification that reads everything in capitals."""
from typing import Literal

from backend.tasks.text_classification import Settings, TextClassification


class ShoutingSettings(Settings):
    type: Literal["shouting"] = "shouting"


class Shouting(TextClassification):
    Settings = ShoutingSettings
    title = "Shouted classification"
    description = "Sorts texts that are written in capitals."


class Hollow:
    title = "Hollow"


class Exactness:
    title = "Exactness"
    tasks = ["shouting"]
    greater_is_better = True

    @staticmethod
    def score(table):
        pairs = zip(table["prediction"].to_pylist(), table["actual"].to_pylist())
        same = [one == other for one, other in pairs if other is not None]
        return {"exactness": sum(same) / len(same), "rows": len(same)}
'''

OPTIMIZER = '''\
"""Gradient descent by signs."""
from backend.contract.spec import Section


class Settings(Section):
    """Nothing to set."""


class Signs:
    title = "Signs"
    description = "Moves every weight by the sign of its gradient."
    Settings = Settings

    @staticmethod
    def state_per_weight(options):
        return 0.0

    @staticmethod
    def make(groups, training, options):
        import torch

        class SignDescent(torch.optim.Optimizer):
            @torch.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for weight in group["params"]:
                        if weight.grad is not None:
                            weight.add_(weight.grad.sign(), alpha=-group["lr"])

        return SignDescent(groups, {"lr": training.learning_rate})
'''


def install(folder: Path) -> Path:
    """Builds the package and installs it into a folder, which belongs on PYTHONPATH; no network."""
    source, target = folder / "source", folder / "site"
    package = source / "foreign"
    package.mkdir(parents=True)
    (source / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (package / "__init__.py").write_text(TASK, encoding="utf-8")
    (package / "signs.py").write_text(OPTIMIZER, encoding="utf-8")
    with contextlib.chdir(source):
        wheel = source / build_wheel(str(source))
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    return target
