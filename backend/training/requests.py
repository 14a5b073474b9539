"""Watches a run's request files several times a second, and notices if its folder disappears."""

import os
import time

from backend.contract.errors import RunFailed
from backend.contract.run.folder import ENDS, RunFolder
from backend.training.background import Interrupted
from backend.training.hosts import ALONE, Hosts


class Requests:
    """A run's open requests; a check costs a system call or two, so it happens once per `interval` seconds.

    With several hosts the first checks, and all see a request at the same step.
    """

    def __init__(self, folder: RunFolder, hosts: Hosts = ALONE, interval: float = 0.2) -> None:
        self._folder, self._hosts = folder, hosts
        self._interval = interval
        self._looked = 0.0
        self._supervisor = os.getppid()
        self._kept: dict[str, float] = {}
        """Answered requests whose files cannot be deleted, as another user's in a shared folder: kind → time of the file."""

    def pending(self) -> str | None:
        """The most urgent open request, or None. Raises RunFailed if the run folder was deleted."""
        return self._hosts.agree(self._find_open)

    def _find_open(self) -> str | None:
        now = time.monotonic()
        if now - self._looked < self._interval:
            return None
        self._looked = now
        if not self._folder.exists():
            raise self._folder_gone_error()
        if os.getppid() != self._supervisor:  # killed; only Linux ends this process with it
            return "interrupt"
        return next((kind for kind in self._folder.requests() if self._is_open(kind)), None)

    def _is_open(self, kind: str) -> bool:
        return kind not in self._kept or self._folder.request_time(kind) != self._kept[kind]

    def explain(self, error: Exception) -> Exception:
        """The real cause of an error: if the folder is gone, that is why."""
        return error if self._folder.exists() else self._folder_gone_error()

    def _folder_gone_error(self) -> RunFailed:
        return RunFailed(
            "the run folder {path} was deleted or moved during the run; nothing more can be saved there",
            "folder_gone",
            path=self._folder.path,
        )

    def interrupt(self) -> None:
        """Raises Interrupted if the run is asked to stop; called during long stages."""
        request = self.pending() if self._hosts.are_together else self._pending_before_start()
        if request in ENDS:
            raise Interrupted(request)

    def interrupt_compiling(self) -> None:
        """As `interrupt`. Compile times differ by host, so several hosts see a request only after all have compiled."""
        if self._hosts.count == 1:
            self.interrupt()
        else:
            self._hosts.check()

    def _pending_before_start(self) -> str | None:
        """Before the first step hosts run independently: the first sees requests, and the others stop with it."""
        self._hosts.check()
        return self._find_open() if self._hosts.is_first else None

    def close(self, request: str) -> None:
        """Delete the request; its event is written."""
        if not self._hosts.is_first:
            return
        try:
            self._folder.clear_request(request)
        except OSError:
            self._kept[request] = self._folder.request_time(request)
