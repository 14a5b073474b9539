"""Coordinates the hosts of one run: the first decides, the others follow. On one host there is nothing to do."""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from backend.contract.errors import RunFailed
from backend.contract.run.folder import RunFolder
from backend.contract.spec import RunSpec
from backend.engines.hosts import Board, EngineOfHosts, Position
from backend.preflight.engine_choice import engine_of_hosts, position
from backend.training import meeting
from backend.training.background import run_beside
from backend.training.host_watch import LOST_SECONDS, PAGE, Watch

Said = TypeVar("Said")
Lost = Callable[[Exception], None]

WAIT_SECONDS = 0.5
"""How often a host that waits for a word looks whether the others are still there."""


class Hosts:
    """The hosts of a run, seen from one of them. Before `join`, and on one host, it decides alone."""

    def __init__(self) -> None:
        self._here = Position()
        self._board: Board | None = None
        self._watch: Watch | None = None
        self._said = 0
        self.are_together = False

    @property
    def count(self) -> int:
        """The number of hosts, including this one."""
        return self._here.count

    @property
    def is_first(self) -> bool:
        """Whether this host writes the run's files and reads its requests."""
        return self._here.is_first

    def join(self, spec: RunSpec, run: RunFolder, look: meeting.Look, on_lost: Lost) -> None:
        """Connect to the spec's other hosts, if there are any. Raises InputError, or RunFailed if one does not arrive.

        `look` receives how many have arrived, and may raise. `on_lost` ends this process; called from a thread
        if another host is gone and this one is waiting for it.
        """
        here = position(spec)
        if here.count == 1:
            return
        self._board = self._joined(here, run, look, engine_of_hosts(spec))
        self._here, self._watch = here, Watch(here, self._board, run, on_lost)

    def _joined(self, here: Position, run: RunFolder, look: meeting.Look, engine: EngineOfHosts) -> Board:
        if here.is_first:
            meeting.wait(run, here, look)
            look_around = meeting.Arrival(run, here, look).look
        else:
            look_around = partial(look, here.count)
        return run_beside(lambda: engine.join(here), look_around, "joining")

    def go_together(self) -> None:
        """From here on every host runs the same steps, so that all see a request at the same step.

        The others wait for the first: if that was asked to stop earlier, they stop too.
        """
        self.agree(lambda: None)
        self.are_together = True
        if self._watch is not None:
            self._watch.are_together = True

    def agree(self, decide: Callable[[], Said]) -> Said:
        """The result of `decide` on the first host, plain JSON; the others only wait for it."""
        if self._board is None:
            return decide()
        self.check()
        key, self._said = f"said/{self._said // PAGE}/{self._said}", self._said + 1
        if self._here.is_first:
            value = decide()
            self._board.put(key, json.dumps(value))
            return value
        return json.loads(self._heard(self._board, key))

    def _heard(self, board: Board, key: str) -> str:
        while (word := board.get(key, WAIT_SECONDS)) is None:
            self.check()
        assert self._watch is not None
        self._watch.heard = self._said
        return word

    def same(self, value: Any, otherwise: str) -> None:
        """Raises RunFailed with the sentence `otherwise` if `value`, plain JSON, differs from the first host's."""
        first = self.agree(lambda: value)
        if json.dumps(first) != json.dumps(value):
            raise RunFailed(
                "this host {otherwise}, unlike the first host; make them the same on all hosts",
                "hosts_differ",
                otherwise=otherwise,
            )

    def check(self) -> None:
        """Raises RunFailed if another host is gone, Interrupted if the first was asked to stop before step 1."""
        if self._watch is not None and self._watch.ending is not None:
            raise self._watch.ending

    def cause(self, error: Exception) -> Exception:
        """The real cause of an error: once another host is gone, joint computations fail with unrelated messages."""
        if self._board is None or self._watch is None or not self._board.is_torn(error):
            return error
        return self._watch.found(LOST_SECONDS) or error

    def leave(self, state: str, sentence: str = "") -> None:
        """Tell the others how this host ended, and wait until they have ended too; hosts that are gone are ignored."""
        if self._board is None or self._watch is None:
            return
        self._watch.stop(state, sentence)
        if state != "failed":
            with suppress(RunFailed):
                self._board.leave()


ALONE = Hosts()
"""A run on a single host, the default."""
