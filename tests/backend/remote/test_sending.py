"""Tests that a copy to another machine tells how far it is, can be cancelled, and then leaves nothing there; and consent to code there."""

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.contract import consents
from backend.contract.machines import Machine
from backend.contract.processes import python_command
from backend.remote import agent, connection
from backend.remote.connection import connect, discarding
from tests.backend.remote.remote_runs import Burnish

Until = Callable[[Callable[[], object]], None]
PLENTY = 10**12


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _names(place: Path) -> list[str]:
    return [path.name for path in (place / "files").iterdir()]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A small file, and one of several pieces."""
    found = {}
    for name, size in (("small", 10), ("large", 9_000_000)):
        path = tmp_path / name
        path.write_bytes(os.urandom(size))
        found[_digest(path)] = path
    return found


@pytest.mark.parametrize("reason", [KeyboardInterrupt, SystemExit])
def test_cancelled_copy_leaves_nothing_there(machine: Machine, place: Path, files: dict[str, Path], reason: type[BaseException]) -> None:  # fmt: skip
    def report(done: int, total: int, unit: str) -> None:
        if 4_000_000 < done < total:
            raise reason

    with pytest.raises(reason), discarding("lab", files), connect("lab", machine) as (there, _):
        there.put_files(files, PLENTY, report)
    assert _names(place) == []


def test_copy_whose_connection_was_lost_keeps_what_has_arrived(machine: Machine, place: Path, files: dict[str, Path]) -> None:  # fmt: skip
    def report(done: int, total: int, unit: str) -> None:
        if 4_000_000 < done < total:
            raise OSError

    with pytest.raises(OSError), discarding("lab", files), connect("lab", machine) as (there, _):  # noqa: PT011
        there.put_files(files, PLENTY, report)
    assert any(name.endswith(".part") for name in _names(place))


def test_data_of_another_run_stay_when_a_copy_is_cancelled(machine: Machine, place: Path, files: dict[str, Path]) -> None:  # fmt: skip
    with connect("lab", machine) as (there, _):
        there.put_files(files, PLENTY, lambda done, total, unit: None)
    used = next(iter(files))
    (place / "data" / "tree").mkdir()
    (place / "data" / "tree" / "file").hardlink_to(place / "files" / used)
    with pytest.raises(KeyboardInterrupt), discarding("lab", files):
        raise KeyboardInterrupt
    assert _names(place) == [used]


def test_pieces_that_nobody_came_back_for_are_deleted(machine: Machine, place: Path) -> None:
    (place / "files").mkdir(parents=True)
    for name, age in (("a" * 64, agent.KEPT_SECONDS + 60), ("b" * 64, 60.0)):
        path = place / "files" / f"{name}.part"
        path.touch()
        os.utime(path, (time.time() - age, time.time() - age))
    with connect("lab", machine):
        pass
    assert _names(place) == [f"{'b' * 64}.part"]


def test_progress_is_lines_of_json_before_the_result(burnish: Burnish, machine: Machine, spec: Path, until: Until) -> None:  # fmt: skip
    started = burnish("train", spec, "--on", "lab", "--detach", "--json", "--report-progress")
    assert started.returncode == 0, started.stderr
    *progress, last = map(json.loads, started.stdout.splitlines())
    assert [line["progress"]["part"] for line in progress][-1] == "start"
    sent = [line["progress"] for line in progress if line["progress"]["part"] == "send"][-1]
    assert sent["done"] == sent["total"] > 0
    assert Path(last["run"]).is_dir()


def test_signal_while_libraries_are_loaded_interrupts(tmp_path: Path) -> None:
    """The command's own process, in which a module that it imports takes long."""
    (tmp_path / "pydantic").mkdir()
    (tmp_path / "pydantic" / "__init__.py").write_text("import pathlib, time\npathlib.Path('reached').touch()\ntime.sleep(60)\n")  # fmt: skip
    (tmp_path / "spec.yaml").write_text("version: 1\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(python_command("backend", "train", "spec.yaml"), cwd=tmp_path, env=environment)
    until = time.monotonic() + 60
    while not (tmp_path / "reached").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(30) == 75


def test_consent_to_code_is_that_of_the_machine(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use_ssh: Callable[[str], None]) -> None:  # fmt: skip
    there = tmp_path / "config there"
    use_ssh(f'BURNISH_CONFIG="{there}" exec sh -c "$last"')
    consents.agree("some/model", "1" * 40, "2" * 64)  # here
    assert not connection.is_approved("lab", {"2" * 64})
    with monkeypatch.context() as patch:
        patch.setenv("BURNISH_CONFIG", str(there))
        consents.agree("some/model", "1" * 40, "2" * 64)
    assert connection.is_approved("lab", {"2" * 64})
    assert not connection.is_approved("lab", {"2" * 64, "3" * 64})
