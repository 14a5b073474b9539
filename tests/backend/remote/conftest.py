"""A machine to connect to: a program `ssh` that starts the agent on this computer, as the real one does on another."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.contract.machines import Machine, write_machines
from backend.contract.processes import python_command
from tests import in_process
from tests.backend.remote.remote_runs import Burnish, make_machine, write_spec

NAME = "lab"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The machine's folder."""
    return tmp_path / "far away"


@pytest.fixture
def use_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes the given lines of shell what `ssh` does; `"$last"` is the command for the other computer."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def write(lines: str) -> None:
        program = folder / "ssh.new"
        program.write_text(f"#!/bin/sh\nfor last; do :; done\n{lines}\n")
        program.chmod(0o755)
        program.replace(folder / "ssh")

    return write


@pytest.fixture
def machine(place: Path, tmp_path: Path, use_ssh: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine named `lab` whose shell finds `burnish`."""
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "config"))
    burnish = tmp_path / "burn ish"
    burnish.write_text(f'#!/bin/sh\nexec {shlex.join(python_command("backend"))} "$@"\n')
    burnish.chmod(0o755)
    use_ssh('exec sh -c "$last"')
    found = make_machine(address="someone@lab", folder=str(place), command=str(burnish))
    write_machines({NAME: found})
    assert sys.executable in burnish.read_text()
    return found


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def burnish(tmp_path: Path, runs: Path) -> Burnish:
    """Runs one command here."""

    def call(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        return in_process.call(list(map(str, arguments)), tmp_path, {**os.environ, "BURNISH_RUNS": str(runs)})

    return call


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """Two steps of the demo; the files' names are relative to the spec."""
    return write_spec(tmp_path)
