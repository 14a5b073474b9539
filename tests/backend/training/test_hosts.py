"""Hosts of one run agree: the first decides, the others hear; one that ends ends the others, and says why."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from backend.contract.errors import RunFailed
from backend.contract.run.events import RunFinished, StepFinished, encode
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder
from backend.engines.engine import StepNumbers, StepResult
from backend.engines.hosts import Position
from backend.engines.jax import JaxEntry
from backend.training import hosts
from backend.training.background import Interrupted
from backend.training.checkpoints import Checkpoints
from backend.training.event_log import EventLog
from backend.training.hosts import ALONE, Hosts
from backend.training.pending_metrics import PendingSteps
from backend.training.requests import Requests

Until = Callable[[Callable[[], object]], None]


@dataclass
class Words:
    """A store of this process, for hosts that are threads."""

    words: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, threading.Barrier] = field(default_factory=lambda: defaultdict(lambda: threading.Barrier(2)))
    changed: threading.Condition = field(default_factory=threading.Condition)

    def put(self, key: str, word: str) -> None:
        with self.changed:
            self.words[key] = word
            self.changed.notify_all()

    def get(self, key: str, seconds: float) -> str | None:
        with self.changed:
            self.changed.wait_for(lambda: key in self.words, seconds)
            return self.words.get(key)

    def forget(self, folder: str) -> None:
        with self.changed:
            self.words = {key: word for key, word in self.words.items() if not key.startswith(f"{folder}/")}

    def wait_for_all(self, name: str) -> None:
        self.waiting[name].wait(10)

    def is_torn(self, error: Exception) -> bool:
        return isinstance(error, ConnectionError)

    def leave(self) -> None:
        """Nothing is open."""


@dataclass
class Pair:
    """The first host and another one."""

    first: Hosts
    other: Hosts
    words: Words
    run: RunFolder


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.setattr(hosts, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(hosts, "RECORD_SECONDS", 0.1)
    words, run, found = Words(), RunFolder(tmp_path), (Hosts(), Hosts())
    monkeypatch.setattr(JaxEntry, "join", staticmethod(lambda position: words))
    run.write_process_record(ProcessRecord(1, "h", "b", 1, 2, 0.0))
    run.host(1).path.mkdir()
    for number, each in enumerate(found):
        each.join(Position(number, 2), JaxEntry, run, lambda: None)
    return Pair(*found, words, run)


def test_a_run_on_one_host_decides_by_itself():
    assert ALONE.agree(lambda: ("as", "it", "is")) == ("as", "it", "is")
    assert (ALONE.count, ALONE.is_first) == (1, True)


def test_the_others_do_what_the_first_decides(pair: Pair):
    assert [pair.first.agree(lambda number=number: {"step": number}) for number in range(3)][2] == {"step": 2}
    heard = [pair.other.agree(lambda: pytest.fail("it is not asked")) for _ in range(3)]
    assert heard == [{"step": 0}, {"step": 1}, {"step": 2}]


def test_another_host_waits_for_the_word_of_the_first(pair: Pair):
    heard: list[str] = []
    waiting = threading.Thread(target=lambda: heard.append(pair.other.agree(lambda: "own")), daemon=True)
    waiting.start()
    pair.first.agree(lambda: "the first's")
    waiting.join(10)
    assert heard == ["the first's"]


def test_words_that_all_have_heard_are_deleted(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hosts, "PAGE", 10)
    hearing = threading.Thread(target=lambda: [pair.other.agree(lambda: None) for _ in range(25)], daemon=True)
    hearing.start()
    for number in range(25):
        pair.first.agree(lambda number=number: number)
    hearing.join(10)
    assert not hearing.is_alive()
    assert sorted(pair.words.words) == [f"said/2/{number}" for number in range(20, 25)]


def test_hosts_with_other_rows_are_told_apart(pair: Pair):
    for _ in range(2):
        pair.first.require_same({"train": "abc"}, "reads different rows")
    pair.other.require_same({"train": "abc"}, "reads different rows")
    with pytest.raises(
        RunFailed, match="this host reads different rows, unlike the first host; make them the same on all"
    ) as refusal:
        pair.other.require_same({"train": "xyz"}, "reads different rows")
    assert refusal.value.code == "hosts_differ"


def test_the_first_says_why_another_failed(pair: Pair):
    pair.other.leave("failed", "the disk is full")
    with pytest.raises(RunFailed, match=r"^host 1 failed: the disk is full$"):
        pair.first.agree(lambda: 1)


def test_the_others_end_as_the_first_was_asked_to_before_the_first_step(pair: Pair):
    pair.first.leave("paused")
    with pytest.raises(Interrupted) as wish:
        pair.other.agree(lambda: None)
    assert wish.value.request == "pause"


def test_once_together_a_pause_is_heard_at_its_step_alone(pair: Pair):
    pair.first.go_together()
    pair.other.go_together()
    pair.first.leave("paused")
    pair.other.check()
    assert "end" not in pair.words.words


def test_a_first_host_that_ends_is_not_waited_for(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    pair.run.write_exit_record(ExitRecord(1, -9, 0.0, "it was killed"))
    monkeypatch.setattr(JaxEntry, "join", staticmethod(lambda position: time.sleep(10)))
    with pytest.raises(RunFailed, match=r"^the first host disappeared: it was killed$"):
        Hosts().join(Position(1, 2), JaxEntry, pair.run, lambda: None)
    pair.run.write_exit_record(ExitRecord(1, 0, 0.0))
    pair.run.events.write_bytes(encode(RunFinished(time=1.0, state="stopped", step=0)))
    with pytest.raises(Interrupted) as interruption:
        Hosts().join(Position(1, 2), JaxEntry, pair.run, lambda: None)
    assert interruption.value.request == "stop"


def test_who_is_ready_waits_for_the_first_and_ends_as_it_did(pair: Pair):
    pair.first.leave("stopped")
    with pytest.raises(Interrupted):
        pair.other.go_together()
    assert not pair.other.are_together


def test_all_hosts_hear_a_request_at_the_same_step(pair: Pair):
    pair.run.spec.touch()
    first, other = Requests(pair.run, pair.first, interval=0.0), Requests(pair.run, pair.other, interval=0.0)
    asked = []
    for step in range(3):
        if step == 1:
            pair.run.request("checkpoint")
        asked.append(first.pending())
        if asked[-1]:
            first.close("checkpoint")
    pair.run.request("stop")  # whose hour has not come, whatever the other host sees on the disk
    assert [other.pending() for _ in range(3)] == asked == [None, "checkpoint", None]
    other.close("stop")
    assert pair.run.open_request() == "stop"


def test_before_the_first_step_the_first_alone_hears(pair: Pair):
    pair.run.spec.touch()
    pair.run.request("stop")
    Requests(pair.run, pair.other, interval=0.0).interrupt()
    with pytest.raises(Interrupted):
        Requests(pair.run, pair.first, interval=0.0).interrupt()


def test_every_host_writes_its_part_of_a_checkpoint_and_the_first_puts_it_in_place(pair: Pair, until: Until):
    first, other = Checkpoints(pair.run, pair.first), Checkpoints(pair.run, pair.other)

    def write_first(beside: Path) -> None:
        (beside / "first").touch()
        until((beside / "other").exists)  # as Orbax waits for the parts of all

    writing = threading.Thread(target=lambda: first.save(4, write_first), daemon=True)
    writing.start()
    assert other.save(4, lambda beside: (beside / "other").touch()) == pair.run.checkpoint(4)
    writing.join(60)
    assert {path.name for path in pair.run.checkpoint(4).iterdir()} == {"first", "other", "checkpoint.json"}
    assert other.remove_older(4, keep=0, best_step=None).steps == []
    assert other.latest() == 4


def test_a_checkpoint_that_is_there_is_written_by_nobody(pair: Pair):
    first, other = Checkpoints(pair.run, pair.first), Checkpoints(pair.run, pair.other)
    Checkpoints(pair.run).save(4, lambda beside: (beside / "whole").touch())
    for each in (first, other):
        assert each.save(4, lambda beside: pytest.fail("it is there")) == pair.run.checkpoint(4)


def test_all_hosts_read_the_same_groups_of_losses(pair: Pair, tmp_path: Path):
    hours = iter([0.0, 0.1, 0.1, 0.2, 9.0, 9.0, 9.0, 9.0])
    first, other = Reading(), Reading()
    for engine, group, clock in ((first, pair.first, lambda: next(hours)), (other, pair.other, lambda: 0.0)):
        log = EventLog(tmp_path / f"{id(engine)}.jsonl")
        waiting = PendingSteps(engine, log, clock, group)  # type: ignore[arg-type]
        for step in range(1, 4):
            waiting.add(step_finished(step), StepResult(1.0, 1.0))
        log.close()
    assert first.groups == other.groups == [1, 2]


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (0, "the other hosts did not connect within 0.1 seconds"),
        (1, "there is no answer at 10.0.0.1:1 within 0.1 seconds"),
    ],
)
def test_hosts_that_do_not_meet_are_not_waited_for_longer(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, number: int, sentence: str
):
    monkeypatch.setattr(JaxEntry, "join", staticmethod(lambda position: time.sleep(10)))
    with pytest.raises(RunFailed) as failure:
        Hosts().join(Position(number, 2, "10.0.0.1:1", 0.1), JaxEntry, pair.run, lambda: None)
    assert (str(failure.value), failure.value.code) == (sentence, "hosts_not_met")


def test_an_error_of_a_torn_connection_is_the_loss_of_a_host(pair: Pair):
    mistake, torn = KeyError("own"), ConnectionError("closed by peer\nin a file")
    assert pair.first.real_cause(mistake, pair.run) is mistake
    sentence = "another host of the run is gone, or cannot be reached (closed by peer)"
    assert str(pair.first.real_cause(torn, pair.run)) == sentence
    own = pair.run.host(1)
    own.write_process_record(ProcessRecord(1, "h", "b", 1, 2, 0.0))
    own.write_exit_record(ExitRecord(1, -9, 0.0, "the engine process was killed (SIGKILL)"))
    assert str(pair.first.real_cause(torn, pair.run)) == "host 1 disappeared: the engine process was killed (SIGKILL)"
    own.events.write_bytes(encode(RunFinished(time=1.0, state="failed", step=3, message="the disk is full")))
    assert str(pair.first.real_cause(torn, pair.run)) == "host 1 disappeared: the disk is full"


class Reading:
    """Of an engine only what reads losses; `groups` are how many were read at once."""

    def __init__(self) -> None:
        self.groups: list[int] = []

    def read(self, results: list[StepResult]) -> list[StepNumbers]:
        self.groups.append(len(results))
        return [StepNumbers(one.loss, one.gradient_norm) for one in results]

    def device_memory_mb(self) -> None:
        """A processor does not say."""


def step_finished(step: int) -> StepFinished:
    """Of eight rows, in a tenth of a second."""
    return StepFinished(
        time=0.0, step=step, epoch=1.0, loss=None, learning_rate=0.1, gradient_norm=None, rows=8, tokens=80, seconds=0.1
    )
