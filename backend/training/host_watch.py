"""Lets the hosts of a run notice that one of them has ended, by heartbeats and exit notes."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from backend.contract.errors import RunFailed
from backend.contract.messages import message
from backend.contract.run.folder import ENDS, RunFolder
from backend.engines.hosts import Board, Position
from backend.training.background import Interrupted

BEAT_SECONDS = 1.0
LOST_SECONDS = 180.0
"""A host that gives no sign of life for so long is lost; loading a library from a busy disk may hold one up for a minute."""
GRACE_SECONDS = 10.0
"""What this host may take to end by itself once another is gone; it may be waiting for an answer that never comes."""

PAGE = 1000
"""Words of the first host that are kept together, and taken away together once every host has heard them."""

_REQUESTS = {state: request for request, state in ENDS.items()}


@dataclass
class _Other:
    sign: str | None
    since: float


class Watch:
    """A thread that sends heartbeats and watches the others': the first host watches all, the others watch the first.

    `ending` is why this host must end too: RunFailed, or Interrupted if the first host was stopped before step 1.
    """

    def __init__(
        self, here: Position, board: Board, run: RunFolder, on_lost: Callable[[Exception], None]
    ) -> None:  # fmt: skip
        self.ending: Exception | None = None
        self.heard = 0
        """Words of the first host that this one has heard."""
        self.are_together = False
        self._here, self._board, self._run, self._on_lost = here, board, run, on_lost
        watched = range(1, here.count) if here.is_first else (0,)
        self._others = {number: _Other(None, time.monotonic()) for number in watched}
        self._over, self._found = threading.Event(), threading.Event()
        self._beats, self._forgotten = 0, 0
        self._thread = threading.Thread(target=self._watch, name="hosts", daemon=True)
        self._thread.start()

    def found(self, seconds: float) -> Exception | None:
        """Wait until it is known why this host must end too; None if all others are alive."""
        self._found.wait(seconds + BEAT_SECONDS)
        return self.ending

    def stop(self, state: str, sentence: str) -> None:
        """Post a final note and stop watching; after a failure only once the others could read it."""
        self._over.set()
        self._thread.join(GRACE_SECONDS)
        try:
            self._board.put(f"over/{self._here.number}", json.dumps([state, sentence]))
            if state == "failed" and self._here.is_first:
                self._wait_for_last_words()
        except RunFailed:
            return  # no process is left that could read them

    def _wait_for_last_words(self) -> None:
        until = time.monotonic() + GRACE_SECONDS / 2
        for number in self._others:
            self._board.get(f"over/{number}", max(0.0, until - time.monotonic()))

    def _watch(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            try:
                self._give_sign()
                found = next(filter(None, map(self._ended, self._others)), None)
                self._forget()
            except RunFailed as error:
                found = self._recorded(0) or error
            if found is not None:
                self.ending = found
                self._found.set()
                if not self._over.wait(GRACE_SECONDS):
                    self._on_lost(found)
                return

    def _give_sign(self) -> None:
        self._beats += 1
        self._board.put(f"sign/{self._here.number}", f"{self._beats} {self.heard}")

    def _forget(self) -> None:
        """Delete notes that every host has read; they would fill the board in a long run."""
        if not self._here.is_first:
            return
        heard = min(int((other.sign or "0 0").split()[1]) for other in self._others.values())
        while self._forgotten < heard // PAGE:
            self._board.forget(f"said/{self._forgotten}")
            self._forgotten += 1

    def _ended(self, number: int) -> Exception | None:
        words = self._board.get(f"over/{number}", 0)
        if words is not None:
            return self._worded(number, *json.loads(words))
        return self._recorded(number) or self._silent(number)

    def _worded(self, number: int, state: str, sentence: str) -> Exception | None:
        if state == "failed":
            return RunFailed("{number} failed: {sentence}", "host_lost", number=_name(number), sentence=sentence)
        if number == 0 and state in _REQUESTS and not self.are_together:
            return Interrupted(_REQUESTS[state])
        return None  # all end alike, and some are sooner done

    def _recorded(self, number: int) -> RunFailed | None:
        record = self._run.host(number).exit_record()
        if record is None or not record.has_failed:
            return None
        return RunFailed(
            "{number} disappeared: {message}",
            "host_lost",
            hint=self._hint(),
            number=_name(number),
            message=record.message,
        )

    def _silent(self, number: int) -> RunFailed | None:
        sign, other, now = self._board.get(f"sign/{number}", 0), self._others[number], time.monotonic()
        if sign != other.sign:
            other.sign, other.since = sign, now
        if now - other.since < LOST_SECONDS:
            return None
        return RunFailed(
            "{number} has not responded for {lost_seconds:g} seconds",
            "host_lost",
            hint=self._hint(),
            number=_name(number),
            lost_seconds=LOST_SECONDS,
        )

    def _hint(self) -> str:
        return message(
            "Restart the hosts with burnish resume {path}; they continue from the last checkpoint.",
            path=self._run.path,
        )


def _name(number: int) -> str:
    return message("host {number}", number=number) if number else message("the first host")
