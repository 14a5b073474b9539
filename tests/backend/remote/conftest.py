"""A machine to connect to: a program `ssh` that starts the agent on this computer, as the real one does on another."""

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.contract.machines import Machine, write_machines
from backend.contract.processes import python_command

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
    found = Machine(address="someone@lab", folder=str(place), command=str(burnish))
    write_machines({NAME: found})
    assert sys.executable in burnish.read_text()
    return found
