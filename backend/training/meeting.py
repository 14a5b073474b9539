"""Lets the first host learn through the run folder that the others have arrived, before it listens for them."""

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from backend.contract.errors import RunFailed
from backend.contract.messages import join, message
from backend.contract.run.folder import RECORD_BYTES, ExitRecord, RunFolder, write_json
from backend.contract.safe_files import read_unlinked
from backend.engines.hosts import Position, describe_wait

LOOK_SECONDS = 0.2

Look = Callable[[int], None]
"""Receives the number of hosts that have arrived; may raise."""


def come(run: RunFolder, number: int, attempt: int) -> None:
    """Announce that a host has arrived for an attempt."""
    write_json(_note(run, number), {"attempt": attempt})


def go(run: RunFolder, number: int) -> None:
    """Announce that it stopped waiting."""
    _note(run, number).unlink(missing_ok=True)


def wait(run: RunFolder, here: Position, look: Look) -> None:
    """Wait until all others have arrived. Raises RunFailed if one is late."""
    until = time.monotonic() + here.timeout
    while missing := [number for number in range(1, here.count) if not _has_come(run, number)]:
        look(here.count - len(missing))
        if time.monotonic() >= until:
            raise _not_met(
                here,
                message(
                    "{missing} did not connect within {wait}",
                    missing=_list_hosts(missing),
                    wait=describe_wait(here.timeout),
                ),
            )
        time.sleep(LOOK_SECONDS)


class Arrival:
    """Watches the arrived hosts on the first host while they connect to its address."""

    def __init__(self, run: RunFolder, here: Position, look: Look) -> None:
        self._run, self._here, self._look = run, here, look
        self._until = time.monotonic() + here.timeout
        self._ends = {number: self._end(number) for number in range(1, here.count)}

    def look(self) -> None:
        """Raises RunFailed if one has given up or ended, or if all should have connected by now."""
        self._look(self._here.count)
        for number, before in self._ends.items():
            if not _has_come(self._run, number):
                raise _not_met(
                    self._here,
                    message(
                        "host {number} cannot reach {coordinator} and has given up",
                        number=number,
                        coordinator=self._here.coordinator,
                    ),
                )
            if (now := self._end(number)) not in (None, before):
                raise _not_met(
                    self._here,
                    message("host {number} exited while starting: {message}", number=number, message=now.message),
                )
        if time.monotonic() >= self._until:
            raise _not_met(
                self._here,
                message("the hosts could not communicate within {wait}", wait=describe_wait(self._here.timeout)),
            )

    def _end(self, number: int) -> ExitRecord | None:
        return self._run.host(number).exit_record()


def _has_come(run: RunFolder, number: int) -> bool:
    record = run.process_record()
    try:
        note = json.loads(read_unlinked(_note(run, number), RECORD_BYTES))
    except (OSError, ValueError):
        return False
    return record is not None and note.get("attempt") == record.attempt


def _note(run: RunFolder, number: int) -> Path:
    return run.host(number).path / "ready.json"


def _list_hosts(numbers: Iterable[int]) -> str:
    return join(", ", (message("host {number}", number=number) for number in numbers))


def _not_met(here: Position, what: str) -> RunFailed:
    return RunFailed(
        what,
        "hosts_not_met",
        hint=message(
            "Run the same command on all {count} hosts at about the same time, or raise hardware.host_timeout.",
            count=here.count,
        ),
    )
