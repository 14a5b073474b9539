"""A host that is not the first waits for the run of the first, and says what it waited for in vain."""

import socket
import threading
from pathlib import Path

import pytest

from backend.commands import joining
from backend.contract.errors import InputError
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder
from backend.engines.hosts import Position


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "POLL_SECONDS", 0.02)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run whose first attempt lives."""
    folder = RunFolder(tmp_path / "novels")
    folder.path.mkdir()
    folder.spec.write_text("name: novels\n", encoding="utf-8")
    folder.write_process_record(ProcessRecord(1, "h", "b", 1, 2, 0.0))
    return folder


@pytest.fixture
def listening():
    """An address at which somebody answers."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        yield f"127.0.0.1:{one.getsockname()[1]}"


def nowhere() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def test_it_gets_a_folder_of_its_own_with_the_same_spec(run: RunFolder, listening: str):
    own = joining.join(run.path, Position(1, 2, listening, 10))
    assert own.path == run.path / "host-1"
    assert own.spec.read_text(encoding="utf-8") == "name: novels\n"
    assert own.main_folder().path == run.path


def test_it_waits_until_the_next_attempt_begins(run: RunFolder, listening: str):
    run.write_exit_record(ExitRecord(1, 1, 0.0))
    later = threading.Timer(0.3, lambda: run.write_process_record(ProcessRecord(2, "h", "b", 1, 2, 0.0)))
    later.start()
    joining.join(run.path, Position(1, 2, listening, 30))
    assert (run.host(1).path / "ready.json").read_text(encoding="utf-8").split() == ["{", '"attempt":', "2", "}"]


def test_a_run_that_nobody_begins_is_said(tmp_path: Path):
    with pytest.raises(InputError, match=r"no run was started there within 0\.1 seconds; start the first host"):
        joining.join(tmp_path / "novels", Position(1, 2, nowhere(), 0.1))
    assert not (tmp_path / "novels").exists()


def test_a_first_host_that_cannot_be_reached_is_said_and_not_left_waiting(run: RunFolder):
    where = nowhere()
    with pytest.raises(InputError, match=f"^hardware.coordinator: there is no answer at {where} within") as refusal:
        joining.join(run.path, Position(1, 2, where, 0.1))
    assert refusal.value.field == "hardware.coordinator"
    assert not (run.host(1).path / "ready.json").exists()


def test_a_first_host_that_ends_meanwhile_is_said(run: RunFolder):
    later = threading.Timer(0.3, lambda: run.write_exit_record(ExitRecord(1, 0, 0.0)))
    later.start()
    with pytest.raises(
        InputError,
        match="the first host ended before this one took part; resume the run on all hosts with: burnish resume",
    ):
        joining.join(run.path, Position(1, 2, nowhere(), 60))
    assert not (run.host(1).path / "ready.json").exists()


def test_hosts_need_one_folder():
    with pytest.raises(InputError, match=r"^--run-folder: 2 hosts train one run; name a folder"):
        joining.require_folder(Position(1, 2), None)
    joining.require_folder(Position(), None)
