"""Tests that runs in the queue begin one after another, each alone, whatever becomes of those before them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from backend import process_tree
from backend.commands.follow import GroupFollower
from backend.contract.run import events, queue
from backend.contract.run.folder import WHOLE_COMPUTER, DeviceRequest, ProcessRecord, RunFolder
from backend.contract.run.group import RunGroup
from backend.contract.run.lock import RunLocked, hold_lock, is_locked
from backend.contract.spec import HardwareSection
from backend.launchers.local import LAUNCHER

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

UNTIL_TOLD = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
with (folder.parent / "order.txt").open("a") as file: file.write(folder.name + " begins\\n")
while not (folder / "end").exists(): time.sleep(0.01)
with (folder.parent / "order.txt").open("a") as file: file.write(folder.name + " ends\\n")
"""
CLAIMING = f"""
import sys
from backend.contract.run.folder import RunFolder
RunFolder(sys.argv[1]).claim_devices(["{{device}}"])
{UNTIL_TOLD.replace("{", "{{").replace("}", "}}")}
"""
CARDS = ("cuda:0", "cuda:1")
STUBBORN = """
import os, pathlib, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0: os.setsid()
(pathlib.Path(sys.argv[1]) / f"ready{os.getpid()}").touch()
while True: signal.pause()
"""

MakeRun = Callable[[str], RunFolder]


def computed(pid: int) -> float:
    """Seconds of a processor that a process has used."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def run(folder: RunFolder) -> Iterator[MakeRun]:
    """Makes a run beside the first one; whatever carries it is gone afterwards."""
    made: list[RunFolder] = []

    def make(name: str) -> RunFolder:
        one = RunFolder(folder.path.with_name(name))
        one.path.mkdir()
        one.spec.write_bytes(folder.spec.read_bytes())
        made.append(one)
        return one

    yield make
    for one in made:
        process_tree.end_all(lambda one=one: process_tree.of_run(str(one.path)))


@pytest.fixture
def line(folder: RunFolder, run: MakeRun, supervise, until) -> tuple[RunFolder, RunFolder, RunFolder]:
    """A run that goes on and two that wait, the first of which has the later name."""
    runs = (folder, run("b"), run("a"))
    for number, one in enumerate(runs):
        supervise(UNTIL_TOLD, run=one, queue=number > 0)
        until(one.is_queued if number else lambda: told(folder))
    return runs


def told(folder: RunFolder) -> list[str]:
    """What the engines have said, in order."""
    order = folder.path.with_name("order.txt")
    return order.read_text().splitlines() if order.exists() else []


def end(one: RunFolder) -> None:
    """Let its engine come to its end."""
    (one.path / "end").touch()


def waiting(folder: RunFolder) -> list[str]:
    return [one.name for one in queue.queue_of(folder.path.parent).waiting]


def test_runs_of_the_queue_begin_in_the_order_in_which_they_joined_each_alone(folder, line, until) -> None:
    assert waiting(folder) == ["b", "a"]
    for one in line:
        end(one)
    until(lambda: all(one.life() == "ended" for one in line))

    names = [one.name for one in line]
    assert told(folder) == [f"{name} {what}" for name in names for what in ("begins", "ends")]
    assert [one.exit_record().returncode for one in line] == [0, 0, 0]


def test_a_group_is_followed_run_by_run_until_all_are_over(folder: RunFolder, run, supervise, until, capsys) -> None:
    finished = events.encode(
        events.RunFinished(time=1, state="finished", step=3, metrics={"accuracy": 0.5})
    ).decode()  # fmt: skip
    script = f"{UNTIL_TOLD}(folder / 'events.jsonl').write_text({finished!r})"
    group = GroupFollower(RunGroup(folder.path.with_name("group")))
    for one in (first := run("first"), second := run("second")):
        group.add(one, lambda one=one: supervise(script, run=one, queue=True))
        until(lambda one=one: one.life() == "alive")
    end(first)
    end(second)

    assert group.watch() == 0
    assert told(folder) == [f"{name} {what}" for name in ("first", "second") for what in ("begins", "ends")]
    lines = [line for line in capsys.readouterr().err.splitlines() if "first" in line or "second" in line]
    assert [line for line in lines if "waits" not in line and "starts" not in line] == [
        "first: run 1 of 2", "first finished: accuracy 0.5", "second: run 2 of 2", "second finished: accuracy 0.5",
    ]  # fmt: skip


def test_a_waiting_run_is_alive_and_has_no_engine(line) -> None:
    _, second, _ = line

    assert second.life() == "alive"
    assert second.process_record().engine_pid == 0


def test_with_nothing_before_it_a_queued_run_begins_at_once(folder: RunFolder, supervise) -> None:
    assert supervise("pass", queue=True).wait() == 0

    assert not folder.queued.exists()


def test_a_queued_run_starts_beside_another_on_a_device_that_is_free(folder, run, supervise, until) -> None:
    supervise(CLAIMING.format(device="cuda:0"))
    until(lambda: folder.claimed_devices() == {"cuda:0"})
    beside, behind = run("beside"), run("behind")
    supervise(CLAIMING.format(device="cuda:1"), run=beside, queue=True, request=DeviceRequest(1, CARDS))
    until(lambda: beside.claimed_devices() == {"cuda:1"})
    supervise(CLAIMING.format(device="cuda:0"), run=behind, queue=True, request=DeviceRequest(1, CARDS))
    until(behind.is_queued)
    assert {run.name for run in queue.queue_of(folder.path.parent).find_blocking_runs(behind)} == {
        folder.name,
        "beside",
    }

    end(folder)
    until(lambda: behind.claimed_devices() == {"cuda:0"})
    assert beside.life() == "alive"


def test_a_run_that_needs_two_devices_waits_for_two_and_is_not_overtaken(folder, run, supervise, until) -> None:
    supervise(CLAIMING.format(device="cuda:0"))
    until(lambda: folder.claimed_devices() == {"cuda:0"})
    large, small = run("large"), run("small")
    supervise(UNTIL_TOLD, run=large, queue=True, request=DeviceRequest(2, CARDS))
    until(large.is_queued)
    supervise(UNTIL_TOLD, run=small, queue=True, request=DeviceRequest(1, CARDS))
    until(small.is_queued)
    assert [run.name for run in queue.queue_of(folder.path.parent).find_blocking_runs(small)] == [folder.name, "large"]

    end(folder)
    until(lambda: "large begins" in told(folder))
    assert waiting(folder) == ["small"]


@pytest.mark.parametrize(
    ("request_", "claims", "earlier", "blocking"),
    [
        (DeviceRequest(1, ("cpu",)), [{"cuda:0"}], [], []),  # a run on the CPU beside one on a GPU
        (DeviceRequest(1, ("cuda:1",)), [{"cuda:0"}], [], []),  # pinned to a free one
        (DeviceRequest(1, ("cuda:0",)), [{"cuda:0"}], [], ["running 0"]),
        (DeviceRequest(1, CARDS), [None], [], ["running 0"]),  # may take any
        (DeviceRequest(1, CARDS), [], [DeviceRequest(1, CARDS)], []),
        (DeviceRequest(1, CARDS), [{"cuda:1"}], [DeviceRequest(1, CARDS)], ["running 0", "queued 0"]),
        (DeviceRequest(1, CARDS), [], [WHOLE_COMPUTER], ["queued 0"]),
        (DeviceRequest(1, CARDS), [{"cuda:0"}], [DeviceRequest(1, ("cuda:0",))], []),  # which needs the other one
        (DeviceRequest(1, CARDS), [], [DeviceRequest(2, CARDS)], ["queued 0"]),
        (WHOLE_COMPUTER, [{"cuda:0"}], [], ["running 0"]),
        (WHOLE_COMPUTER, [], [], []),
    ],
)
def test_a_run_waits_only_for_those_that_leave_it_too_few_devices(request_, claims, earlier, blocking) -> None:
    running = [(f"running {place}", claim) for place, claim in enumerate(claims)]
    queued = [(f"queued {place}", other) for place, other in enumerate(earlier)]
    assert queue.find_blocking_runs(request_, running, queued) == blocking


@pytest.mark.parametrize(("claimed", "is_blocked"), [("cuda:0", False), ("cuda:1", True)])
def test_once_a_run_has_chosen_its_devices_it_blocks_only_runs_that_need_them(
    folder: RunFolder, run, claimed: str, is_blocked: bool
) -> None:
    other = run("other")
    other.write_process_record(ProcessRecord(1, "host", "boot", 1, 1, 0.0))
    folder.join_queue(request=DeviceRequest(1, ("cuda:1",)))
    with hold_lock(folder.lock), hold_lock(other.lock):
        blocking = queue.take_turn(folder)
        assert [one.name for one in blocking] == ["other"]
        assert queue.is_blocked(folder, blocking)
        other.claim_devices([claimed])
        assert queue.is_blocked(folder, blocking) is is_blocked


def test_a_run_avoids_the_devices_that_others_use_or_wait_for(folder: RunFolder, run) -> None:
    using, waiting, flexible = run("using"), run("waiting"), run("flexible")
    using.write_process_record(ProcessRecord(1, "host", "boot", 1, 1, 0.0))
    using.claim_devices(["cuda:0"])
    waiting.join_queue(request=DeviceRequest(1, ("cuda:1",)))
    flexible.join_queue(request=DeviceRequest(1, ("cuda:2", "cuda:3")))
    with (
        hold_lock(using.lock),
        hold_lock(waiting.lock),
        hold_lock(flexible.lock),
        queue.choosing_devices(folder) as taken,
    ):
        assert taken == {"cuda:0", "cuda:1"}


def test_a_claim_of_an_earlier_attempt_holds_nothing(folder: RunFolder) -> None:
    record = ProcessRecord(1, "host", "boot", 1, 1, 0.0)
    folder.write_process_record(record)
    folder.claim_devices(["cuda:0"])
    assert folder.claimed_devices() == {"cuda:0"}
    folder.write_process_record(replace(record, attempt=2))
    assert folder.claimed_devices() is None


@pytest.mark.parametrize(
    "words", ["", "[]", '{"attempt": 1}', '{"attempt": 1, "devices": 3}', '{"attempt": "x", "devices": []}']
)
def test_a_claim_that_cannot_be_read_may_be_of_any_device(folder: RunFolder, words: str) -> None:
    folder.write_process_record(ProcessRecord(1, "host", "boot", 1, 1, 0.0))
    folder.devices.write_text(words)
    assert folder.claimed_devices() is None


@pytest.mark.parametrize("words", ["", "[]", '{"joined": 1, "count": "x"}', '{"joined": 1, "devices": 3}'])
def test_a_request_that_cannot_be_read_waits_for_the_whole_computer(folder: RunFolder, words: str) -> None:
    folder.queued.write_text(words)
    assert folder.device_request() == WHOLE_COMPUTER


def test_when_several_wait_for_the_same_end_only_one_begins(folder: RunFolder, run, supervise, until) -> None:
    supervise(UNTIL_TOLD)
    until(lambda: told(folder))
    crowd = [run(f"run-{number}") for number in range(5)]
    for one in crowd:
        supervise(UNTIL_TOLD, run=one, queue=True)
        end(one)
    until(lambda: len(waiting(folder)) == 5)

    end(folder)
    until(lambda: all(one.life() == "ended" for one in crowd))

    said = told(folder)
    assert len(said) == 12
    assert [line.rpartition(" ")[2] for line in said] == ["begins", "ends"] * 6
    assert all(began.split()[0] == ended.split()[0] for began, ended in zip(said[::2], said[1::2], strict=True))


@pytest.mark.parametrize("alias", ["0-latest", "zz-latest"])
def test_a_run_with_a_second_name_in_its_folder_does_not_wait_for_itself(folder: RunFolder, alias: str) -> None:
    folder.path.with_name(alias).symlink_to(folder.path)
    folder.join_queue()
    with hold_lock(folder.lock):
        assert queue.take_turn(folder) == []


def test_whoever_joins_after_the_clock_was_put_back_waits_behind_the_others(folder: RunFolder, run) -> None:
    later = run("before-it-by-name")
    folder.join_queue(after=time.time() + 3600)
    with hold_lock(folder.lock), hold_lock(later.lock):
        queue.join(later)
        assert waiting(folder) == [folder.name, later.name]


def test_while_one_decides_nobody_else_does(folder: RunFolder) -> None:
    folder.join_queue()
    with hold_lock(folder.path.parent / queue.DECIDING), pytest.raises(RunLocked):
        queue.take_turn(folder)

    assert queue.take_turn(folder) == []
    assert not folder.queued.exists()


def test_a_run_that_is_killed_with_its_whole_tree_lets_the_next_one_begin(
    folder: RunFolder, run, supervise, until
) -> None:
    supervisor = supervise(STUBBORN)
    until(lambda: len(list(folder.path.glob("ready*"))) == 2)
    second = run("second")
    supervise(UNTIL_TOLD, run=second, queue=True)
    until(second.is_queued)

    for pid in process_tree.descendants(supervisor.pid) | {supervisor.pid}:
        os.kill(pid, signal.SIGKILL)

    until(lambda: told(folder) == ["second begins"])
    assert folder.life() == "lost"


def test_a_waiting_run_that_is_killed_is_lost_and_in_nobodys_way(folder: RunFolder, line, until) -> None:
    first, second, third = line
    os.kill(second.process_record().supervisor_pid, signal.SIGKILL)
    until(lambda: second.life() == "lost")

    end(first)
    until(lambda: told(folder)[-1] == "a begins")

    assert second.queued.exists()  # so that it is known to wait again when it is resumed
    assert not second.is_queued()
    assert waiting(folder) == []
    end(third)


@pytest.mark.parametrize(("request_", "state"), [("stop", "stopped"), ("pause", "paused")])
def test_a_request_ends_the_waiting_at_once_and_leaves_nothing(line, until, request_: str, state: str) -> None:
    _, second, third = line
    second.request(request_)
    until(lambda: second.life() == "ended")

    record = second.exit_record()
    assert (record.returncode, record.state) == (0, state)
    assert sorted(path.name for path in second.path.iterdir()) == [
        "exit.json", "process.json", "process.log", "run.lock", "spec.yaml",
    ]  # fmt: skip
    assert waiting(second) == [third.name]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_run_that_is_interrupted_while_it_waits_keeps_its_place_in_mind(line, until, number: signal.Signals) -> None:
    _, second, third = line
    os.kill(second.process_record().supervisor_pid, number)

    until(lambda: second.life() == "ended")
    assert second.exit_record().state == "interrupted"
    assert second.queued.exists()  # so that it is known to wait again when it is resumed
    assert waiting(second) == [third.name]


def test_a_supervisor_that_is_told_to_end_leaves_the_queue_though_no_request_can_be_written(line, until) -> None:
    _, second, _ = line
    (second.path / "interrupt").symlink_to("/nowhere/interrupt")  # as on a full disk
    os.kill(second.process_record().supervisor_pid, signal.SIGTERM)

    until(lambda: second.life() == "ended")
    assert second.exit_record().state == "interrupted"


def test_a_run_whose_engine_cannot_be_started_when_its_turn_comes_says_why(line, until) -> None:
    first, second, _ = line
    second.log.unlink()
    second.log.mkdir()
    end(first)

    until(lambda: second.life() == "ended")
    assert second.exit_record().message.startswith("the run could not be started: [Errno 21] Is a directory")


def test_a_run_whose_waiting_file_is_taken_away_begins_beside_the_others(folder: RunFolder, line, until) -> None:
    _, _, third = line
    third.leave_queue()

    until(lambda: "a begins" in told(folder))
    assert told(folder) == [f"{folder.name} begins", "a begins"]


def test_the_folder_of_a_waiting_run_may_be_deleted(folder: RunFolder, line, until, alive) -> None:
    _, second, _ = line
    supervisor = second.process_record().supervisor_pid
    subprocess.run(["rm", "-rf", str(second.path)], check=True)

    until(lambda: not alive(supervisor))
    assert not second.path.exists()


def test_when_it_began_is_when_its_turn_came(folder: RunFolder, line, until) -> None:
    first, second, _ = line
    joined = second.process_record().started
    now = time.time()
    end(first)
    until(lambda: second.process_record().engine_pid)

    assert joined < now <= second.process_record().started


def test_a_new_life_that_does_not_queue_begins_at_once(folder: RunFolder, line, supervise, until) -> None:
    _, second, _ = line
    os.kill(second.process_record().supervisor_pid, signal.SIGKILL)
    until(lambda: second.life() == "lost")

    supervise(UNTIL_TOLD, run=second)

    until(lambda: "b begins" in told(folder))
    assert not second.queued.exists()


def test_the_launcher_returns_while_the_run_waits(folder: RunFolder, run, supervise, until) -> None:
    supervise(UNTIL_TOLD)
    until(lambda: told(folder))
    second = run("second")

    supervisor = LAUNCHER().start(second, HardwareSection(), queue=DeviceRequest())

    assert second.is_queued()
    second.request("stop")
    assert supervisor.wait() == 0


def test_words_of_the_interpreter_do_not_keep_a_run_from_waiting(
    folder: RunFolder, run, supervise, until, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervise(UNTIL_TOLD)
    until(lambda: told(folder))
    monkeypatch.setenv("PYTHONWARNINGS", "nonsense")

    second = run("second")
    supervisor = LAUNCHER().start(second, HardwareSection(), queue=DeviceRequest())

    assert second.is_queued()
    second.request("stop")
    supervisor.wait()


def test_a_second_supervisor_is_told_that_the_run_waits(line, supervise) -> None:
    _, second, _ = line
    refused = supervise("pass", run=second)

    assert refused.wait() == 2
    assert "already waiting in the queue (process" in refused.stderr.read()


def test_a_waiting_supervisor_costs_next_to_no_time(folder: RunFolder, run, supervise, until) -> None:
    supervise(UNTIL_TOLD)
    until(lambda: told(folder))
    second = run("second")
    supervisor = LAUNCHER().start(second, HardwareSection(), queue=DeviceRequest())
    before, began = computed(supervisor.pid), time.monotonic()
    until(lambda: time.monotonic() - began > 1.5)

    assert computed(supervisor.pid) - before < 0.075
    second.request("stop")
    assert supervisor.wait() == 0


def test_a_run_that_is_moved_forward_begins_first(line, until) -> None:
    going, second, third = line
    assert queue.move(third, -1) == 1
    end(going)
    until(lambda: f"{third.name} begins" in told(third))
    assert f"{second.name} begins" not in told(third)


def test_a_run_moves_no_further_than_the_ends_of_the_queue_and_keeps_what_it_waits_for(line) -> None:
    _, second, third = line
    request = second.device_request()
    assert (queue.move(second, 9), queue.move(third, 9), queue.move(third, -9)) == (2, 2, 1)
    assert [run.name for run in queue.queue_of(second.path.parent).waiting] == [third.name, second.name]
    assert second.device_request() == request


def test_a_run_that_does_not_wait_is_not_moved(line) -> None:
    assert queue.move(line[0], 1) is None
    assert not line[0].queued.exists()


@pytest.fixture
def queued(folder: RunFolder, run: MakeRun) -> Iterator[list[RunFolder]]:
    """Three runs of the queue in their order, which this process holds."""
    runs = [folder, run("b"), run("c")]
    with ExitStack() as stack:
        for number, one in enumerate(runs):
            one.join_queue(after=time.time() + number)
            stack.enter_context(hold_lock(one.lock))
        yield runs


@pytest.mark.parametrize(("number", "places", "order"), [(2, -2, [2, 0, 1]), (2, -1, [0, 2, 1]), (0, 2, [1, 2, 0])])
def test_moving_a_run_changes_no_file_of_the_others(queued, number: int, places: int, order: list[int]) -> None:
    others = [one for one in queued if one is not queued[number]]
    before = [one.queued.stat().st_ino for one in others]
    queue.move(queued[number], places)
    assert waiting(queued[0]) == [queued[place].name for place in order]
    assert [one.queued.stat().st_ino for one in others] == before


def test_runs_that_joined_at_one_moment_are_moved(queued) -> None:
    for one in queued:
        one.rejoin_queue(1.0)
    first, second, third = waiting(queued[0])
    moved = next(one for one in queued if one.name == third)
    assert queue.move(moved, -1) == 2
    assert waiting(queued[0]) == [first, third, second]


def test_a_run_that_leaves_the_queue_while_another_is_moved_is_not_queued_again(queued, monkeypatch) -> None:
    found = queue.queue_of(queued[0].path.parent)
    queued[1].leave_queue()
    monkeypatch.setattr(queue, "queue_of", lambda runs: found)
    queue.move(queued[2], -2)
    assert not queued[1].queued.exists()


def test_a_run_alone_in_the_queue_stays_first(folder: RunFolder) -> None:
    folder.join_queue()
    with hold_lock(folder.lock):
        assert (queue.move(folder, -1), queue.move(folder, 1)) == (1, 1)


def test_a_run_with_a_second_name_is_moved(queued) -> None:
    queued[0].path.with_name("z-latest").symlink_to(queued[0].path)
    queue.move(queued[0], 1)
    assert [name for name in waiting(queued[0]) if name != "z-latest"] == ["b", queued[0].name, "c"]


def test_a_run_is_not_started_now_while_another_is_moved(folder: RunFolder, monkeypatch) -> None:
    folder.join_queue()
    held: list[bool | None] = []
    monkeypatch.setattr(RunFolder, "leave_queue", lambda run: held.append(is_locked(run.path.parent / queue.DECIDING)))
    queue.start_now(folder)
    assert held == [True]
