"""Tests that Burnish is installed on a machine that has only Python, and that whatever keeps it from that is one sentence."""

import io
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from backend.contract.errors import InputError
from backend.contract.machines import Machine, find_machine, write_machines
from backend.remote import connection, installation, installer

UseSsh = Callable[[str], None]


def _ignore(*_: object) -> None:
    """Nobody looks at the progress."""


@pytest.fixture
def bare(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """The machine without Burnish; its packages come from this environment, and the lock asks for none."""
    packages = sysconfig.get_paths()["purelib"]
    found = machine.model_copy(update={"command": "burnish", "setup": f"export PYTHONPATH='{packages}'"})
    write_machines({"lab": found})
    lock = tmp_path / "requirements-cpu.txt"
    lock.write_text("# nothing\n")
    monkeypatch.setattr(installation, "lock_file", lambda kind: lock)
    return found


@pytest.mark.slow
def test_installed_burnish_answers_and_is_updated_in_place(bare: Machine, place: Path) -> None:
    parts: list[str] = []
    program = installation.install("lab", lambda part, *_: parts.append(part))
    assert find_machine("lab").command == program
    assert Path(program).is_relative_to(place / "environments")
    assert list(dict.fromkeys(parts)) == ["send", "environment", "install"]
    assert connection.check("lab").folder == str(place)
    before = Path(program).stat().st_mtime_ns
    assert installation.install("lab", _ignore) == program  # it is there already
    assert Path(program).stat().st_mtime_ns == before
    assert not (place / "installing").exists()


@pytest.mark.slow
def test_interrupted_installation_is_made_anew(bare: Machine, place: Path) -> None:
    program = Path(installation.install("lab", _ignore))
    (program.parents[1] / installer.FINISHED).unlink()
    (program.parents[1] / "half").touch()
    assert Path(installation.install("lab", _ignore)) == program
    assert not (program.parents[1] / "half").exists()


def test_installation_that_breaks_off_keeps_the_environment_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    place = tmp_path / "environments" / "1.0"
    place.mkdir(parents=True)
    (place / installer.FINISHED).touch()
    order = json.dumps({"name": "1.0", "files": [{"name": "burnish.whl", "size": 5}]}).encode() + b"\n12"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(order)))
    installer.main(str(tmp_path))
    assert (place / installer.FINISHED).exists()
    assert not (tmp_path / "installing").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what its processes run")
def test_environment_that_a_process_uses_is_kept(tmp_path: Path) -> None:
    for name in ("old", "older", "present", "previous"):
        (tmp_path / name).mkdir()
    for age, name in enumerate(("previous", "old", "older")):
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    command = [sys.executable, "-c", "input()", str(tmp_path / "older" / "bin" / "burnish")]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        installer.remove_others(tmp_path, tmp_path / "present")
        process.communicate(b"\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["older", "present", "previous"]


def test_wheel_of_this_burnish_is_whole_and_always_the_same(tmp_path: Path) -> None:
    wheels = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        wheels.append(installation._make_wheel(tmp_path / name))
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    names = set(zipfile.ZipFile(wheels[0]).namelist())
    assert {"burnish/__main__.py", "burnish/backend/__main__.py", "burnish/resources/demo/sentiment.yaml"} <= names
    assert not [name for name in names if "__pycache__" in name]


def _there(**changes: object) -> str:
    """What a machine says of itself, in which something is different."""
    described = {"system": "Linux", "processor": "x86_64", "python": "3.11.2", "free": 10**12, "gpu": False, **changes}
    return repr(described).replace("'", '"').replace("False", "false").replace("True", "true")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("exit 64", "lab has no Python 3.11, 3.12 or 3.13; install one"),
        ('echo "ssh: connect to host lab port 22: Connection refused" >&2; exit 255', "no connection to lab: nothing answers there"),
        (f"echo burnish installer 1; echo '{_there(processor='aarch64')}'; cat > /dev/null", "no list of tested packages for Linux aarch64"),
        (f"echo burnish installer 1; echo '{_there(free=10**9)}'; cat > /dev/null", "Burnish and its packages need 2,500 MB, but only 1,000 MB"),
        (f"echo burnish installer 1; echo '{_there(free=5 * 10**9, gpu=True)}'; cat > /dev/null", "need 9,000 MB"),
        (f"echo burnish installer 1; echo '{_there()}'; echo '{{\"error\": \"its disk is full\"}}'; cat > /dev/null", "lab: its disk is full"),
        ("echo burnish installer 1; echo nonsense", "no connection to lab"),
    ],
)  # fmt: skip
def test_what_keeps_it_from_being_installed_is_one_sentence(bare: Machine, use_ssh: UseSsh, lines: str, sentence: str) -> None:  # fmt: skip
    use_ssh(lines)
    with pytest.raises(InputError, match=sentence):
        installation.install("lab", _ignore)
    assert find_machine("lab").command == "burnish"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("The virtual environment was not created successfully because ensurepip is not available.", "python3-venv"),
        ("/usr/bin/python3: No module named venv", "its Python has no pip and venv"),
        ("Error: something else", "Error: something else"),
    ],
)
def test_python_without_pip_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, sentence: str) -> None:  # fmt: skip
    python = tmp_path / "python3"
    python.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(installer.Refused, match=sentence):
        installer.make_environment(tmp_path / "environment")


def test_folder_without_wheels_is_refused_before_anything_is_sent(bare: Machine, tmp_path: Path, place: Path) -> None:
    with pytest.raises(InputError, match=r"--wheels .*: there are no wheels in this folder"):
        installation.install("lab", _ignore, tmp_path / "none")
    assert not shutil.which("burnish", path=str(place))
    assert not place.exists()
