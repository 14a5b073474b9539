"""Lets the hosts of one run take the same decisions: the first decides, the others hear it through the framework's own store.

The framework lets them meet, watches them and ends them together (`backend.engines.hosts`); nothing here listens or sends heartbeats.
"""

import json
import time
from collections.abc import Callable
from typing import Any, TypeVar

from backend.contract.errors import RunFailed
from backend.contract.messages import message
from backend.contract.run.event_summary import landmarks
from backend.contract.run.events import RunFinished
from backend.contract.run.folder import ENDS, RunFolder
from backend.engines.hosts import EngineOfHosts, Position, Store, describe_wait
from backend.training.background import Interrupted, run_beside

Answer = TypeVar("Answer")

WAIT_SECONDS = 0.5
"""How often a host that waits for a word looks whether another one has ended the run."""
RECORD_SECONDS = 10.0
"""How long it may take until a process that ended has a record of it."""
PAGE = 1000
"""Words of the first host that are kept together, and deleted together once every host has heard them."""
_END = "end"
_REQUESTS = {state: request for request, state in ENDS.items()}


class Hosts:
    """The hosts of a run, seen from one of them. Before `join`, and on one host, it decides alone."""

    def __init__(self) -> None:
        self._here = Position()
        self._store: Store | None = None
        self._said = 0
        self._looked = 0.0
        self.are_together = False

    @property
    def count(self) -> int:
        """The number of hosts, including this one."""
        return self._here.count

    @property
    def is_first(self) -> bool:
        """Whether this host writes the run's files and reads its requests."""
        return self._here.is_first

    def join(self, here: Position, engine: EngineOfHosts, run: RunFolder, poll: Callable[[], None]) -> None:
        """Meet the others, if there are any. Raises RunFailed if one does not arrive; `poll` is called meanwhile, and may raise."""
        if here.count == 1:
            return

        until = time.monotonic() + here.timeout

        def look() -> None:
            poll()
            if not here.is_first:
                _raise_end_of_first(run)
            if time.monotonic() >= until:  # a framework may end the process when it gives up
                raise _not_met(here)

        self._here = here  # only the first one obeys requests meanwhile
        self._store = run_beside(lambda: engine.join(here), look, "joining")

    def go_together(self) -> None:
        """From here on every host runs the same steps, so that all see a request at the same step.

        The others wait for the first: if that was asked to stop earlier, they stop too.
        """
        self.agree(lambda: None)
        self.are_together = True

    def agree(self, decide: Callable[[], Answer]) -> Answer:
        """The result of `decide` on the first host, plain JSON; the others only wait for it."""
        if self._store is None:
            return decide()
        page, key = self._said // PAGE, f"said/{self._said // PAGE}/{self._said}"
        if self._said % PAGE == 0 and page > 0:
            self._turn_page(self._store, page)
        self._said += 1
        if self._here.is_first:
            self.check()
            value = decide()
            self._store.put(key, json.dumps(value))
            return value
        while (word := self._store.get(key, WAIT_SECONDS)) is None:
            self.check()
        return json.loads(word)

    def _turn_page(self, store: Store, page: int) -> None:
        """Delete words that every host has heard; they would fill the store in a long run."""
        store.wait_for_all(f"page-{page}")
        if self._here.is_first:
            store.forget(f"said/{page - 1}")

    def require_same(self, value: Any, otherwise: str) -> None:
        """Raises RunFailed with the sentence `otherwise` if `value`, plain JSON, differs from the first host's."""
        first = self.agree(lambda: value)
        if json.dumps(first) != json.dumps(value):
            raise RunFailed(
                "this host {otherwise}, unlike the first host; make them the same on all hosts",
                "hosts_differ",
                otherwise=otherwise,
            )

    def check(self) -> None:
        """Raises RunFailed if another host has failed, Interrupted if the first was asked to stop before step 1."""
        now = time.monotonic()
        if self._store is None or now - self._looked < WAIT_SECONDS:
            return
        self._looked = now
        if (word := self._store.get(_END, 0)) is None:
            return
        number, state, sentence = json.loads(word)
        if state == "failed":
            raise RunFailed("{number} failed: {sentence}", "host_lost", number=_name(number), sentence=sentence)
        if not self.are_together:
            raise Interrupted(_REQUESTS[state])

    def real_cause(self, error: Exception, run: RunFolder) -> Exception:
        """The real cause of an error: once another host is gone, joint computations fail with unrelated messages."""
        if self._store is None or not self._store.is_torn(error):
            return error
        others = [number for number in range(self.count) if number != self._here.number]
        hint = message(
            "Restart the hosts with burnish resume {path}; they continue from the last checkpoint.", path=run.path
        )
        until = time.monotonic() + RECORD_SECONDS
        while time.monotonic() < until:
            for number in others:
                if sentence := _failure_of(run.host(number)):
                    return RunFailed(
                        "{number} disappeared: {message}",
                        "host_lost",
                        hint=hint,
                        number=_name(number),
                        message=sentence,
                    )
            time.sleep(WAIT_SECONDS)
        reason = next(iter(str(error).splitlines()), "")
        return RunFailed(
            "another host of the run is gone, or cannot be reached ({error})", "host_lost", hint=hint, error=reason
        )

    def leave(self, state: str, sentence: str = "") -> None:
        """Tell the others how this host ended, if they could not know, and leave the framework's group together with them."""
        if self._store is None:
            return
        try:
            if state == "failed" or (self.is_first and not self.are_together):
                self._store.put(_END, json.dumps([self._here.number, state, sentence]))
            if state != "failed":
                self._store.leave()
        except RunFailed:
            return  # the others are gone


ALONE = Hosts()
"""A run on a single host, the default."""


def _not_met(here: Position) -> RunFailed:
    wait = describe_wait(here.timeout)
    return RunFailed(
        message("the other hosts did not connect within {wait}", wait=wait)
        if here.is_first
        else message("there is no answer at {coordinator} within {wait}", coordinator=here.coordinator, wait=wait),
        "hosts_not_met",
        hint=message(
            "Run the same command on all {count} hosts at about the same time, or raise hardware.host_timeout.",
            count=here.count,
        ),
    )


def _raise_end_of_first(run: RunFolder) -> None:
    """Raises Interrupted or RunFailed as the first host has ended, if it has."""
    if (record := run.exit_record()) is None:
        return
    last = _last_words(run)
    if last is not None and last.state in _REQUESTS:
        raise Interrupted(_REQUESTS[last.state])
    raise RunFailed(
        "{number} disappeared: {message}",
        "host_lost",
        number=_name(0),
        message=last.message if last and last.message else record.message,
    )


def _failure_of(run: RunFolder) -> str:
    """How the last attempt of a host failed; empty if it has not, or has not said so yet."""
    record, last = run.exit_record(), _last_words(run)
    if record is None or not record.has_failed:
        return ""
    return last.message if last is not None and last.message else record.message


def _last_words(run: RunFolder) -> RunFinished | None:
    """The last event of the last attempt, if it says how that ended."""
    process, last = run.process_record(), next(iter(landmarks(run.events)[-1:]), None)
    return last if process is not None and isinstance(last, RunFinished) and last.time >= process.started else None


def _name(number: int) -> str:
    return message("host {number}", number=number) if number else message("the first host")
