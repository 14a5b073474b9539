"""Kills either side while a run moves: it is whole on one side and alive on one at most, and ends with the same numbers."""

import dataclasses
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from faults.trial import SSH, STEPS, Trial, assert_same

from backend.contract.run.folder import run_folders

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]
MOVED = dataclasses.replace(SSH, name="moved", arguments=())
"""Starts here, where a machine is described."""
VICTIMS = ("command", "agent", "connection")
LONGEST_SECONDS = 5.0
"""A move takes about so long, most of it to load libraries."""
MOST_TRIES = 5


def assert_alive_once(trial: Trial) -> None:
    """The run computes on one side at most."""
    here = trial.folder.life() == "alive" and trial.folder.remote_run() is None
    there = [
        folder for folder in run_folders(trial.burnish.home / "far" / "burnish" / "runs") if folder.life() == "alive"
    ]
    assert here + len(there) <= 1, (here, there)


def kill_one(trial: Trial, victim: str, command: int) -> bool:
    """Kill that part of the move; False if it is not there."""
    pids = [command] if victim == "command" else trial.launcher.victims[victim](trial)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


def move(trial: Trial, place: str, victim: str, chance: random.Random) -> bool:
    """Move the run and kill one part of the move at a random moment; then try until it is there. Returns whether one was killed."""
    process = trial.burnish.start("resume", trial.folder.name, "--on", place, "--detach")
    until = time.monotonic() + chance.uniform(0, LONGEST_SECONDS)
    is_struck = False
    while process.poll() is None:
        if time.monotonic() >= until and not is_struck:
            is_struck = kill_one(trial, victim, process.pid)
        time.sleep(0.02)
    said = process.communicate()[1].strip().splitlines()
    assert_alive_once(trial)
    for _ in range(MOST_TRIES):
        if process.returncode == 0:
            return is_struck
        assert process.returncode == -signal.SIGKILL or (process.returncode == 2 and said), (process.returncode, said)
        done = trial.burnish.process("resume", trial.folder.name, "--on", place, "--detach")
        assert_alive_once(trial)
        remote = trial.folder.remote_run()
        if done.returncode == 0 or (remote.machine if remote else "local") == place:
            return is_struck
        trial.sentences.append(done.stderr)
    raise AssertionError(trial.sentences)


def pause(trial: Trial) -> None:
    """Pause the run, wherever it is, and follow it again where nobody does."""

    def is_over() -> bool:
        if trial.folder.life() == "alive":
            trial.burnish("pause", trial.folder.name)
            return False
        return True

    trial.until(is_over)


@pytest.mark.parametrize("number", range(6))
def test_move_that_is_killed_loses_nothing(
    number: int, begin: Callable[..., Trial], undisturbed, chance: random.Random, record_property
) -> None:
    trial = begin(MOVED)
    trial.start()
    trial.reach(chance.randrange(1, STEPS // 3))
    pause(trial)
    for place, step in (("lab", STEPS * 2 // 3), ("local", STEPS)):
        victim = VICTIMS[number % len(VICTIMS)]
        if trial.is_over():
            break
        if move(trial, place, victim, chance):
            record_property("fault", (MOVED.name, f"{victim}, moving to {place}", 0))
        if step < STEPS:
            trial.reach(min(step, trial.step() + chance.randrange(STEPS // 4)))
            pause(trial)
    trial.carry_to_end()
    assert_same(trial.folder, undisturbed(MOVED))
    trial.assert_nothing_is_left()
