"""The first host listens only when the others have come, and stops waiting where one cannot."""

from pathlib import Path

import pytest

from backend.contract.errors import RunFailed
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder
from backend.engines.hosts import Position
from backend.training import meeting

HERE = Position(0, 3, "10.0.0.1:8476", 0.05)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run in its second attempt, with folders of two more hosts."""
    folder = RunFolder(tmp_path)
    folder.write_process_record(ProcessRecord(2, "h", "b", 1, 2, 0.0))
    for number in (1, 2):
        folder.host(number).path.mkdir()
    return folder


def quiet(come: int) -> None:
    """Nobody is told."""


def test_it_waits_until_all_have_come(run: RunFolder):
    counted: list[int] = []

    def look(come: int) -> None:
        counted.append(come)
        meeting.come(run, len(counted), 2)

    meeting.wait(run, Position(0, 3, HERE.coordinator, 60), look)
    assert counted == [1, 2]


def test_who_came_to_an_earlier_attempt_has_not_come(run: RunFolder):
    meeting.come(run, 1, 2)
    meeting.come(run, 2, 1)
    with pytest.raises(RunFailed, match=r"^host 2 did not connect within 0\.05 seconds$") as failure:
        meeting.wait(run, HERE, quiet)
    assert (failure.value.code, "all 3 hosts" in failure.value.hint) == ("hosts_not_met", True)


@pytest.fixture
def arrival(run: RunFolder) -> meeting.Arrival:
    for number in (1, 2):
        meeting.come(run, number, 2)
    own = run.host(2)
    own.write_process_record(ProcessRecord(1, "h", "b", 1, 2, 0.0))
    own.write_exit_record(ExitRecord(1, 1, 0.0, "it ended in the first attempt"))
    return meeting.Arrival(run, Position(0, 3, HERE.coordinator, 60), quiet)


def test_one_that_cannot_reach_the_first_is_said(run: RunFolder, arrival: meeting.Arrival):
    arrival.look()
    meeting.go(run, 1)
    with pytest.raises(RunFailed, match=r"host 1 cannot reach 10\.0\.0\.1:8476 and has given up"):
        arrival.look()


def test_one_that_ends_while_it_begins_is_said(run: RunFolder, arrival: meeting.Arrival):
    own = run.host(2)
    own.write_process_record(ProcessRecord(2, "h", "b", 1, 2, 0.0))
    arrival.look()
    own.write_exit_record(ExitRecord(2, 1, 0.0, "it has no jax"))
    with pytest.raises(RunFailed, match="host 2 exited while starting: it has no jax"):
        arrival.look()


def test_hosts_that_have_come_and_cannot_talk_are_said(run: RunFolder, arrival: meeting.Arrival):
    arrival._until = 0.0
    with pytest.raises(RunFailed, match="the hosts could not communicate within 60 seconds"):
        arrival.look()
