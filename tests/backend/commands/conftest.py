"""Calls `burnish` as people do, with runs and caches of the test's own."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.contract.processes import python_command
from backend.contract.resources import resource
from tests import in_process

Burnish = Callable[..., "subprocess.CompletedProcess[str]"]
HUB_TOKEN = "hf_abcdefghijklmnopqrstuvwxyz012345"
"""Of whoever started the short run."""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The runs folder of `burnish`; not there until something makes it."""
    return tmp_path / "runs"


@pytest.fixture
def burnish(tmp_path: Path, runs: Path) -> Burnish:
    """Runs one command in an empty working folder, within this process; its exit code, stdout and stderr."""
    here = tmp_path / "here"
    here.mkdir()

    def call(*arguments: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
        return in_process.call(
            list(map(str, arguments)), here, {**os.environ, "BURNISH_RUNS": str(runs), **environment}
        )

    return call


@pytest.fixture
def burnish_process(tmp_path: Path, runs: Path) -> Burnish:
    """Runs one command as a process of its own, as people do."""

    def call(*arguments: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            python_command("backend", *map(str, arguments)),
            cwd=tmp_path,
            env={**os.environ, "BURNISH_RUNS": str(runs), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return call


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """The embedded demo's spec, as a file that people could have written."""
    from backend.contract import spec_file

    values = spec_file.read(resource("demo", "sentiment.yaml"))
    values["model"]["name_or_path"] = str(resource("demo", "bert-tiny"))
    for split in ("train", "validation"):
        values["data"][split] = str(resource("demo", "sentiment", f"{split}.csv"))
    path = tmp_path / "spec.yaml"
    path.write_text(spec_file.dump(values), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def short_run(tmp_path_factory: pytest.TempPathFactory) -> "tuple[Path, subprocess.CompletedProcess[str]]":
    """The folder of one short run of the demo's spec, to be read alone, and what was printed."""
    place = tmp_path_factory.mktemp("short")
    folder = place / "a new place" / "run"
    changes = ("--set", "training.max_steps=4", "--set", "evaluation.max_rows=32")
    command = ["train", str(resource("demo", "sentiment.yaml")), *changes, "--json", "--run-folder", str(folder)]
    environment = {**os.environ, "BURNISH_RUNS": str(place / "runs"), "HF_TOKEN": HUB_TOKEN}
    done = in_process.call(command, tmp_path_factory.mktemp("here"), environment)
    assert done.returncode == 0, done.stderr
    return folder, done
