"""Tests that a run is started by one hand only, whoever asks, and that its processes can be found by its path."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backend.__main__ import main
from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder
from backend.contract.spec import HardwareSection
from backend.launchers.local import LAUNCHER
from backend.preflight.resolve import read_run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

WAITS = """
import pathlib, signal, sys
(pathlib.Path(sys.argv[1]) / "ready").touch()
while True: signal.pause()
"""
HARDWARE = HardwareSection(environment={"OMP_WAIT_POLICY": "passive"})


def test_of_many_supervisors_at_once_exactly_one_carries_the_run(folder: RunFolder, supervise, until) -> None:
    crowd = [supervise(WAITS) for _ in range(5)]

    until(lambda: sum(one.poll() is not None for one in crowd) == 4)

    assert sorted(one.poll() for one in crowd if one.poll() is not None) == [2, 2, 2, 2]
    assert folder.life() == "alive"


def test_start_of_a_running_run_is_refused_in_one_sentence(folder: RunFolder, supervise, until) -> None:
    first = supervise(WAITS)
    until((folder.path / "ready").exists)
    log = folder.log.read_bytes()

    with pytest.raises(InputError) as refusal:
        LAUNCHER().start(folder, HARDWARE)

    assert str(refusal.value) == f"{folder.name}: this run is already running (process {first.pid})"
    assert folder.log.read_bytes() == log


def test_words_of_the_interpreter_are_no_refusal(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "nonsense")  # said on stderr by every interpreter that starts

    LAUNCHER().start(folder, HARDWARE).wait()

    assert folder.exit_record()


def test_resume_of_a_running_run_exits_with_two(folder: RunFolder, supervise, until, capsys) -> None:
    folder.spec.write_text("task: {type: causal_lm}\nmodel: {name_or_path: x}\ndata: {train: x.txt}\n")
    supervise(WAITS)
    until((folder.path / "ready").exists)

    assert main(["resume", str(folder.path)]) == 2

    said = capsys.readouterr().err
    assert "already running" in said
    assert said.count("\n") == 1


def test_started_run_outlives_who_started_it(folder: RunFolder, until) -> None:
    # A spec without a model fails, but as a run: with a final event and an exit record, after the starter is gone.
    starter = (
        "import sys; from backend.contract.run.folder import RunFolder\n"
        "from backend.contract.spec import HardwareSection\n"
        "from backend.launchers.local import LAUNCHER\n"
        "supervisor = LAUNCHER().start(RunFolder(sys.argv[1]), HardwareSection()); print(supervisor.pid, flush=True)\n"
        "import os; os._exit(0)"
    )
    command = [sys.executable, "-P", "-c", starter, str(folder.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    record = folder.process_record()
    assert record
    assert record.supervisor_pid == int(done.stdout)
    until(lambda: folder.life() == "ended")
    assert b'"failed"' in folder.events.read_bytes()


def test_supervisor_has_a_session_of_its_own_the_runs_path_and_the_environment_of_the_spec(folder: RunFolder) -> None:
    supervisor = LAUNCHER().start(folder, HARDWARE)

    session = os.getsid(supervisor.pid)
    command = Path(f"/proc/{supervisor.pid}/cmdline").read_bytes().split(b"\0")
    environment = Path(f"/proc/{supervisor.pid}/environ").read_bytes().split(b"\0")
    supervisor.wait()

    assert session == supervisor.pid
    assert os.fsencode(folder.path) in command
    assert b"OMP_WAIT_POLICY=passive" in environment


@pytest.mark.parametrize(
    "environment", ["LD_PRELOAD: ./evil.so", "LD_LIBRARY_PATH: lib", "OMP_NUM_THREADS: four ä", "3"]
)
def test_refused_variable_starts_no_process(folder: RunFolder, environment: str) -> None:
    hardware = f"hardware: {{environment: {{{environment}}}}}\n"
    folder.spec.write_text("task: {type: causal_lm}\nmodel: {name_or_path: x}\ndata: {train: x.txt}\n" + hardware)

    with pytest.raises(InputError, match=r"^hardware\.environment"):
        LAUNCHER().start(folder, read_run(folder).hardware)

    assert folder.process_record() is None


@pytest.mark.parametrize("kind", ["stop", "pause", "checkpoint"])
def test_request_of_a_person_reaches_the_run_folder(folder: RunFolder, supervise, until, kind: str, capsys) -> None:
    supervise(WAITS)
    until((folder.path / "ready").exists)

    assert main([kind, str(folder.path)]) == 0

    assert capsys.readouterr().err == ""
    assert folder.open_request() == kind


def test_stop_now_ends_an_engine_that_does_not_listen(folder: RunFolder, supervise, until) -> None:
    supervisor = supervise(WAITS)
    until((folder.path / "ready").exists)
    until(lambda: folder.process_record().engine_pid)

    assert main(["stop", str(folder.path), "--now"]) == 0

    assert supervisor.wait() == 1
    record = folder.exit_record()
    assert record
    assert record.returncode == -signal.SIGKILL
