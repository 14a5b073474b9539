"""Coordinates the hosts of one run: the first decides, the others do the same. On one host there is nothing to do."""

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
    """The hosts of a run as one of them sees them. Before `join`, and on one host, it is alone and decides by itself."""

    def __init__(self) -> None:
        self._here = Position()
        self._board: Board | None = None
        self._watch: Watch | None = None
        self._said = 0
        self.are_together = False

    @property
    def count(self) -> int:
        """All of them, this one included."""
        return self._here.count

    @property
    def is_first(self) -> bool:
        """Whether the run's files are this host's to write, and requests its to hear."""
        return self._here.is_first

    def join(self, spec: RunSpec, run: RunFolder, look: meeting.Look, on_lost: Lost) -> None:
        """Meet the other hosts of the spec, if there are any. Raises InputError, or RunFailed where one does not come.

        `look` is told meanwhile how many have come, and may raise. `on_lost` ends this process; it is called from a thread
        where another host is gone and this one waits for it.
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
        """From here on every host takes the same steps, so whatever a person asks is heard by all at the same one.

        The others wait for the first: where that was asked to end before, they end as it did.
        """
        self.agree(lambda: None)
        self.are_together = True
        if self._watch is not None:
            self._watch.are_together = True

    def agree(self, decide: Callable[[], Said]) -> Said:
        """What `decide` gives on the first host, plain JSON; the others wait for it, and decide nothing."""
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
        """Raises RunFailed, which says `otherwise` of this host, where `value`, plain JSON, is another on the first."""
        first = self.agree(lambda: value)
        if json.dumps(first) != json.dumps(value):
            raise RunFailed(
                "this host {otherwise}, unlike the first; make them the same on all hosts",
                "hosts_differ",
                otherwise=otherwise,
            )

    def check(self) -> None:
        """Raises RunFailed where another host is gone, Interrupted where the first was asked to end before the first step."""
        if self._watch is not None and self._watch.ending is not None:
            raise self._watch.ending

    def cause(self, error: Exception) -> Exception:
        """What ended the run: where another host is gone, whatever is computed with it fails in words of its own."""
        if self._board is None or self._watch is None or not self._board.is_torn(error):
            return error
        return self._watch.found(LOST_SECONDS) or error

    def leave(self, state: str, sentence: str = "") -> None:
        """Tell the others how it ended here, and wait until they have ended too; what is gone by then is not missed."""
        if self._board is None or self._watch is None:
            return
        self._watch.stop(state, sentence)
        if state != "failed":
            with suppress(RunFailed):
                self._board.leave()


ALONE = Hosts()
"""A run on one host, for whoever has no other."""
