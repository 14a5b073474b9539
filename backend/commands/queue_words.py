"""Owns what a terminal says of a run that waits in the queue."""

import time

from backend.commands.screen import Screen
from backend.contract.run.folder import RunFolder
from backend.contract.run.queue import queue_of
from backend.contract.safe_text import one_line

LOOK_SECONDS = 2.0
"""Between two looks at the locks of all runs."""


def waits_for(folder: RunFolder) -> str:
    """`waits for rte-3 and 1 more (1 of 2 in the queue)`; empty where it waits no more."""
    queue = queue_of(folder.path.parent)
    names = [run.name for run in queue.waiting]
    if folder.name not in names:
        return ""
    place = f"({names.index(folder.name) + 1} of {len(names)} in the queue)"
    ahead = queue.running or queue.ahead(folder)[:1]
    if not ahead:
        return f"is about to begin {place}"
    more = f" and {len(ahead) - 1} more" if len(ahead) > 1 else ""
    return f"waits for {ahead[0].name}{more} {place}"


class QueueTeller:
    """Tells in lines what a run waits for, and when it begins."""

    def __init__(self, folder: RunFolder, screen: Screen) -> None:
        self._folder, self._screen = folder, screen
        self._told, self._looked = "", 0.0

    def look(self) -> None:
        """Say what has changed; called again and again."""
        now = time.monotonic()
        if not self._folder.queued.exists():
            self._tell_beginning()
        elif now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._tell(waits_for(self._folder))

    def _tell(self, words: str) -> None:
        if words and words != self._told:
            first = not self._told
            self._told = words
            self._screen.line(f"{one_line(self._folder.name)} {words}{'; Ctrl-C takes it out' if first else ''}")

    def _tell_beginning(self) -> None:
        if self._told and self._folder.exit_record() is None:
            self._screen.line(f"{one_line(self._folder.name)} begins; Ctrl-C stops it")
        self._told = ""
