"""Owns how a run hears people: request files, looked at a few times a second, and the folder's disappearance."""

import time

from backend.contract.errors import RunFailed
from backend.contract.run_folder import RunFolder


class Interrupted(Exception):
    """A person asked the run to stop or pause in the middle of a long stage."""

    def __init__(self, request: str) -> None:
        super().__init__(request)
        self.request = request


class Requests:
    """Open requests of a run; a look costs a system call or two, so there is one per `interval` seconds."""

    def __init__(self, folder: RunFolder, interval: float = 0.2) -> None:
        self._folder = folder
        self._interval = interval
        self._looked = 0.0

    def pending(self) -> str | None:
        """The most urgent open request, or None. Raises RunFailed where the run folder was deleted."""
        now = time.monotonic()
        if now - self._looked < self._interval:
            return None
        self._looked = now
        if not self._folder.exists():
            raise self._gone()
        return self._folder.requested()

    def cause(self, error: Exception) -> Exception:
        """What ended the run: whatever fails in a folder that is gone fails because it is gone."""
        return error if self._folder.exists() else self._gone()

    def _gone(self) -> RunFailed:
        return RunFailed(
            f"the run folder {self._folder.path} was deleted or moved while the run was going on; "
            "nothing more can be saved there",
            code="folder_gone",
        )

    def interrupt(self) -> None:
        """Raises Interrupted where a stop or a pause is asked for; called from within long stages."""
        request = self.pending()
        if request in ("stop", "pause"):
            raise Interrupted(request)

    def answered(self, request: str) -> None:
        """Take the request away; its event is written."""
        self._folder.clear_request(request)
