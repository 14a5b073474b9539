"""The job of a run on a cluster: when its scheduler is asked, and how a pending job is cancelled."""

import secrets
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.run.folder import RunFolder
from backend.contract.run.job import JobRecord

TROUBLE_PATIENCE = 10
"""How many times less often a scheduler is asked that refuses to answer, such as for a token that has expired."""


def new_job_name() -> str:
    """A name for a job, given before it is submitted: so it can be looked up even if nobody hears whether it was taken."""
    return f"burnish-{secrets.token_hex(6)}"


class Job(ABC):
    """The job of a run, as its scheduler knows it; each scheduler has a class of its own."""

    PENDING_STATES: ClassVar[tuple[str, ...]]

    def __init__(self, record: JobRecord, poll_seconds: float) -> None:
        self.record = record
        self.state = ""
        """The scheduler's own word, such as RUNNING; empty if it is not known yet."""
        self.has_changed = False
        """Whether the last call of `poll` found something new in the record."""
        self.trouble = ""
        """Why the scheduler refuses to say anything about the job, if it does; the run itself may be well."""
        self._end_state = ""
        """In which the run ends, because the job was cancelled for it."""
        self._poll_seconds = poll_seconds
        self._asked = self._cancelled = -poll_seconds

    def poll(self) -> None:
        """Ask the scheduler, if it was not asked lately."""
        self.has_changed = False
        if time.monotonic() - self._asked < self._poll_seconds * (TROUBLE_PATIENCE if self.trouble else 1):
            return
        self._asked, before = time.monotonic(), self.record
        self._look_up()
        self.has_changed = self.record != before

    @abstractmethod
    def _look_up(self) -> None:
        """Update `state` and `record`; leave them if the scheduler does not answer."""

    @abstractmethod
    def life(self, folder: RunFolder) -> str:
        """As `RunFolder.life`; the scheduler knows it, while locks are often not seen by other nodes."""

    @abstractmethod
    def stop(self) -> None:
        """Cancel it, even if it is running; one that has ended stays as it is. Raises InputError."""

    @abstractmethod
    def end(self, folder: RunFolder) -> tuple[str, str]:
        """The state in which the run ends, if it is not `failed`, and why, if the run itself could not say so."""

    def cancel(self, end_state: str) -> bool:
        """Cancel it while it is pending, so that the run ends in this state; False if that cannot be done now."""
        if time.monotonic() - self._cancelled < self._poll_seconds:
            return False
        self._cancelled = time.monotonic()
        try:
            self.stop()
        except InputError:
            return False
        self._end_state = end_state
        return True

    @property
    def is_pending(self) -> bool:
        """Whether it waits for its turn."""
        return self.state in self.PENDING_STATES


def entrypoint(setup: str, program: str, run: Path, options: Sequence[str]) -> str:
    """The command of a run's job, which a shell reads: it checks the spec, then trains."""
    return in_folder(setup, run, f"exec {shlex.quote(program)} resume {shlex.join([str(run), *options])}")


def in_folder(setup: str, folder: Path, command: str) -> str:
    """A command for a job, which is given a shell, in the folder and with the machine's set-up commands."""
    place = shlex.quote(str(folder))
    missing = shlex.quote(
        message(
            "the cluster does not see {folder}; choose a folder on storage that all of its nodes share", folder=folder
        )
    )
    lines = [f"cd {place} 2> /dev/null || {{ echo {missing} >&2; exit 2; }}", setup, command]
    return f"exec sh -c {shlex.quote(chr(10).join(filter(None, lines)))}"
