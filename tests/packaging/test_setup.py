"""Setting up says in plain words what is missing on a machine, and never fails because apt could not run."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "packaging" / "setup.sh"
TOOLS = ("sh", "dirname", "grep", "uname")


class Machine:
    """A checkout on a computer on which nothing is installed but what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "checkout"
        self.programs = folder / "bin"
        (self.checkout / "packaging").mkdir(parents=True)
        self.programs.mkdir()
        shutil.copy(SETUP, self.checkout / "packaging")
        for name in TOOLS:
            found = shutil.which(name)
            assert found, name
            (self.programs / name).symlink_to(found)

    def put(self, name: str, script: str) -> None:
        """A program of that name."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def set_up(self) -> subprocess.CompletedProcess[str]:
        """What `make` runs."""
        command = [str(self.programs / "sh"), "packaging/setup.sh"]
        environment = {"PATH": str(self.programs)}
        return subprocess.run(command, cwd=self.checkout, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A bare Linux where we are nobody in particular."""
    machine = Machine(tmp_path)
    machine.put("id", "echo 1000")
    return machine


def test_missing_python_is_named_with_the_command(machine: Machine):
    done = machine.set_up()
    assert done.returncode == 1
    assert "Burnish needs Python 3.11 or newer" in done.stderr
    assert "apt-get install python3" in done.stderr
    assert done.stdout == ""


def test_old_python_is_no_python(machine: Machine):
    machine.put("python3", "exit 1  # what the question for 3.11 answers")
    assert "needs Python 3.11 or newer" in machine.set_up().stderr


def test_python_without_venv_is_told_from_no_python(machine: Machine):
    """Debian ships venv apart."""
    machine.put(
        "python3",
        f'case "$2" in *ensurepip*) exit 1;; *) exec {sys.executable} "$@";; esac',
    )
    machine.put("apt-get", "echo unreached >&2; exit 1")
    done = machine.set_up()
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    assert done.returncode == 1
    assert f"sudo apt-get install --no-install-recommends {version}" in done.stderr
    assert "unreached" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the libraries are looked for on Debian alone")
def test_missing_libraries_do_not_stop_the_set_up(machine: Machine):
    """Neither a person without rights nor an apt without network is a reason to go without the rest."""
    machine.put("python3", f'exec {sys.executable} "$@"')
    machine.put("apt-get", "echo no network >&2; exit 100")
    machine.put("ldconfig", "echo '  libEGL.so.1 (libc6,x86-64) => /usr/lib/libEGL.so.1'")
    environment = machine.checkout / ".venv" / "bin"
    environment.mkdir(parents=True)
    (environment / "pip").write_text(f"#!/bin/sh\n# {environment}/python\n")
    (environment / "pip").chmod(0o755)
    (environment / "python").write_text('#!/bin/sh\necho "installs: $*" >&2\n')
    (environment / "python").chmod(0o755)

    without_rights = machine.set_up()
    machine.put("id", "echo 0")
    machine.put("env", 'shift; exec "$@"')
    without_network = machine.set_up()

    for done in (without_rights, without_network):
        assert done.returncode == 0, done.stderr
        assert "sudo apt-get install --no-install-recommends libgl1 libxkbcommon0" in done.stderr
        assert "libegl1" not in done.stderr
        assert "[torch,quantized,onnx,search,jax,window,dev]" in done.stderr
    assert "no network" in without_network.stderr


def test_environment_behind_a_link_is_not_emptied(machine: Machine):
    other = machine.checkout.parent / "other"
    other.mkdir()
    (machine.checkout / ".venv").symlink_to(other)
    machine.put("python3", f"touch {other}/emptied  # stands for venv --clear")
    done = machine.set_up()
    assert (done.returncode, [*other.iterdir()]) == (1, [])
    assert ".venv is a link" in done.stderr
