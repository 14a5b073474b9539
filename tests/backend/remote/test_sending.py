"""Tests that a copy to another machine tells how far it is, can be cancelled, and then leaves nothing there; and consent to code there."""

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backend.contract import consents
from backend.contract.machines import Machine
from backend.contract.processes import python_command
from backend.contract.run.folder import ProcessRecord, RunFolder, run_folders
from backend.process_tree import processes
from backend.remote import connection, protocol, store
from backend.remote.connection import connect, discarding
from tests.backend.remote.remote_runs import Burnish, losses

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
    for name, age in (("a" * 64, store.KEPT_SECONDS + 60), ("b" * 64, 60.0)):
        path = place / "files" / f"{name}.part"
        path.touch()
        os.utime(path, (time.time() - age, time.time() - age))
    with connect("lab", machine):
        pass
    assert _names(place) == [f"{'b' * 64}.part"]


def _play(use_ssh: Callable[[str], None], folder: Path, *replies: protocol.Message) -> str:
    """A line of shell with which `ssh` reaches a machine that gives these replies, then hangs up."""
    greeting = protocol.Greeting(contract_version="1.0", versions={}, folder=str(folder / "far"), free_bytes=PLENTY)
    said = b"".join(msgspec.json.encode(one) + b"\n" for one in (greeting, *replies))
    (folder / "replies").write_bytes(b"burnish agent 1\n" + said)
    return f'cat "{folder}/replies"; while read question; do :; done'


def test_run_whose_answer_was_lost_is_asked_for_again(machine: Machine, place: Path, use_ssh: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(connection, "ASK_AGAIN_SECONDS", (0.0, 0.0))
    far = RunFolder(place / "runs" / "one")
    far.path.mkdir(parents=True)
    far.spec.write_text("name: one\n")
    far.write_process_record(ProcessRecord(1, "", "", 1, 1, 0.0))  # the first question has started it
    first = f'cat "{tmp_path}/replies"; read question'
    _play(use_ssh, tmp_path)
    use_ssh(f'[ -e "{tmp_path}/tried" ] || {{ touch "{tmp_path}/tried"; {first}; exit; }}; exec sh -c "$last"')
    with connect("lab", machine) as (there, _):
        started = connection.start("lab", there, protocol.Start(spec="", trees={}, run="one"))
    assert started.run == str(far.path)


def test_run_of_which_nothing_is_heard_is_known_here_and_the_sentence_says_how_to_look(burnish: Burnish, machine: Machine, use_ssh: Callable[[str], None], tmp_path: Path, runs: Path, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(connection, "ASK_AGAIN_SECONDS", (0.0,))
    _play(use_ssh, tmp_path, protocol.Missing(files={}), protocol.Missing(files={}))
    lost = 'echo "ssh: connect to host lab port 22: Network is unreachable" >&2; exit 255'
    use_ssh(
        f'[ -e "{tmp_path}/tried" ] && {{ {lost}; }}; touch "{tmp_path}/tried"; cat "{tmp_path}/replies"; head -n 3 > /dev/null'
    )
    result = burnish("train", spec, "--on", "lab")
    assert result.returncode == 2
    assert "the network does not reach it" in result.stderr.splitlines()[-1]
    [copy] = run_folders(runs)
    assert f"burnish resume {copy.name} asks again, and starts no second one" in result.stderr.splitlines()[-1]
    remote = copy.remote_run()
    assert remote
    assert (Path(remote.run).parent, remote.is_started) == (tmp_path / "far" / "runs", False)


@pytest.mark.slow
def test_run_of_which_nothing_was_heard_is_started_once_by_a_resume(burnish: Burnish, machine: Machine, runs: Path, spec: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    begun = connection.start

    def start(*arguments: Any) -> None:
        begun(*arguments)
        raise connection.StartUnknown("its answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(connection, "start", start)
        assert "starts no second one" in burnish("train", spec, "--on", "lab").stderr
    [copy] = run_folders(runs)
    resumed = burnish("resume", copy.path)
    assert resumed.returncode == 0, resumed.stderr
    assert len(losses(copy)) == 2
    assert len(run_folders(place / "runs")) == 1


@pytest.mark.slow
def test_run_that_is_cancelled_while_it_starts_is_ended_there(burnish: Burnish, machine: Machine, spec: Path, runs: Path, place: Path, monkeypatch: pytest.MonkeyPatch, until: Until) -> None:  # fmt: skip
    begun = connection.start

    def start(*arguments: Any) -> None:
        begun(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(connection, "start", start)
    with suppress(KeyboardInterrupt):
        burnish("train", spec, "--on", "lab", "--set", "training.max_steps=100000")
    assert (run_folders(runs), run_folders(place / "runs")) == ([], [])
    until(lambda: not any(str(place / "runs") in " ".join(one.command) for one in processes()))


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
