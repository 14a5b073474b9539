"""Lets an idle loaded model release its accelerator to a run that starts."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.places import runtime_folder

POLL_SECONDS = 0.2


def claim() -> None:
    """Announce that a run needs an accelerator of this machine; if that fails, the run starts anyway."""
    try:
        path = _path()
        path.touch()
        os.utime(path)
    except (OSError, InputError):  # disk full, or another user's folder: then an idle model keeps its memory
        return


class ClaimWatcher:
    """Watches for claims from now on; `on_claim` is called once, from a separate thread."""

    def __init__(self, on_claim: Callable[[], None]) -> None:
        self._on_claim, self._since, self._over = on_claim, _claim_time(), threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        """Stop watching."""
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            if _claim_time() != self._since:
                self._on_claim()
                return


def _path() -> Path:
    return runtime_folder() / "accelerator-wanted"


def _claim_time() -> int:
    try:
        return _path().stat().st_mtime_ns
    except (OSError, InputError):
        return 0
