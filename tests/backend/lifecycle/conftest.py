"""Starts real runs with real supervisors and tiny engines, for the tests of a run's life cycle."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend import process_tree
from backend.contract.run.folder import WHOLE_COMPUTER, DeviceRequest, RunFolder

SUPERVISE = """
import sys
from backend import supervisor
from backend.contract.run.folder import DeviceRequest, RunFolder
from backend.supervisor import GracePeriods, supervise
supervisor.POLL_SECONDS = 0.02  # so that no test waits for a look
supervisor.RESTART_SECONDS = 0.02
folder, script, polite, most, *queue = sys.argv[1:]
command, patience = [sys.executable, "-c", script, folder], GracePeriods(float(polite))
request = DeviceRequest(int(queue[0]), tuple(queue[1:])) if queue else None
sys.exit(supervise(RunFolder(folder), command, patience, queue=request, max_restarts=int(most)))
"""

Supervise = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    """A run folder whose name has a space, with a spec; whatever carries it is gone afterwards."""
    path = tmp_path / "my runs" / "2026-11-21-1530-tiny"
    path.mkdir(parents=True)
    (path / "spec.yaml").write_text("version: 1\nhardware: {environment: {OMP_WAIT_POLICY: passive}}\n")
    yield RunFolder(path)
    process_tree.end_all(lambda: process_tree.of_run(str(path)))


@pytest.fixture
def supervise(folder: RunFolder) -> Iterator[Supervise]:
    """Starts a supervisor in a session of its own around an engine that is a few lines of Python."""
    started: list[subprocess.Popen[str]] = []

    def start(
        script: str,
        polite: float = 60,
        *,
        run: RunFolder = folder,
        queue: bool = False,
        request: DeviceRequest = WHOLE_COMPUTER,
        max_restarts: int = 0,
    ) -> "subprocess.Popen[str]":
        more = [str(request.count), *request.devices] if queue else []
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", SUPERVISE, str(run.path), script, str(polite), str(max_restarts), *more],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def alive() -> Callable[[int], bool]:
    """Whether a process lives; a zombie does not."""
    return lambda pid: any(process.pid == pid for process in process_tree.processes())
