"""A host that is not the first waits for the run of the first, and says what it waited for in vain."""

import threading
from pathlib import Path

import pytest

from backend.commands import join
from backend.contract.errors import InputError
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder
from backend.engines.hosts import Position


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "POLL_SECONDS", 0.02)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run whose first attempt lives."""
    folder = RunFolder(tmp_path / "novels")
    folder.path.mkdir()
    folder.spec.write_text("name: novels\n", encoding="utf-8")
    folder.write_process_record(ProcessRecord(1, "h", "b", 1, 2, 0.0))
    return folder


def test_a_host_has_a_folder_of_its_own_in_the_run(run: RunFolder):
    own = join.join(run.path, Position(1, 2, "10.0.0.1:8476", 10))
    assert own.path == run.path / "host-1"
    assert own.spec.read_text(encoding="utf-8") == "name: novels\n"
    assert own.main_folder().path == run.path


def test_it_waits_until_the_next_attempt_begins(run: RunFolder):
    run.write_exit_record(ExitRecord(1, 1, 0.0))
    later = threading.Timer(0.2, lambda: run.write_process_record(ProcessRecord(2, "h", "b", 1, 2, 0.0)))
    later.start()
    assert join.join(run.path, Position(1, 2, "10.0.0.1:8476", 30)).path == run.path / "host-1"
    assert run.exit_record() is None


def test_a_run_that_nobody_begins_is_said(tmp_path: Path):
    with pytest.raises(InputError, match=r"no run was started there within 0\.1 seconds; start the first host"):
        join.join(tmp_path / "novels", Position(1, 2, "10.0.0.1:8476", 0.1))
    assert not (tmp_path / "novels").exists()


def test_hosts_need_one_folder():
    with pytest.raises(InputError, match=r"^--run-folder: 2 hosts train one run; name a folder"):
        join.require_folder(Position(1, 2), None)
    join.require_folder(Position(), None)
