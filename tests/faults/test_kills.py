"""Kills every process that a run needs, at random moments: the run ends with exactly the numbers of the undisturbed one."""

import random
import sys
import time
from collections.abc import Callable, Sequence

import pytest
from faults.trial import KILLS, LAUNCHERS, LOCAL, SSH, Trial, assert_same, draw_moments

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

EARLY_SECONDS = 4.0
"""Every third kill comes within so many seconds of the one before, when a process is perhaps starting again."""
PRESENT_SECONDS = 10.0
"""How long to wait for a process that is to be killed; the command that followed the run is not started again."""

Record = Callable[[str, object], None]


def kill(trial: Trial, victims: Sequence[str], chance: random.Random, record: Record) -> None:
    """Strike these parts of the run, each at a random moment, then carry it to its end."""
    struck, resumes = "", 0
    for number, (victim, step) in enumerate(zip(victims, draw_moments(chance, len(victims)), strict=True)):
        if number % 3 == 2:
            time.sleep(chance.uniform(0, EARLY_SECONDS))
        else:
            trial.reach(step)
            time.sleep(chance.uniform(0, 0.05))
        before, struck = struck, _strike(trial, victim)
        if before:
            record("fault", (trial.launcher.name, before, trial.resumes - resumes))
        resumes = trial.resumes
    trial.carry_to_end()
    if struck:
        record("fault", (trial.launcher.name, struck, trial.resumes - resumes))


def _strike(trial: Trial, victim: str) -> str:
    """Strike it, or the engine if it is not there; what was struck, nothing if the run is over."""
    until = time.monotonic() + PRESENT_SECONDS
    while not trial.is_over():
        trial.resume_if_ended()
        if time.monotonic() > until:
            victim = next(iter(trial.launcher.victims))
        if trial.strike(victim):
            return victim
        time.sleep(0.02)
    return ""


def strike_in_checkpoint(trial: Trial) -> None:
    """Kill engine and supervisor as soon as a checkpoint appears that is being written."""
    before = set(trial.folder.checkpoints.glob("*"))

    def is_writing() -> bool:
        trial.resume_if_ended()
        return bool(set(trial.folder.checkpoints.glob("*")) - before) or trial.is_over()

    trial.until(is_writing)
    for victim in ("engine", "supervisor"):
        trial.strike(victim)


@pytest.mark.slow
def test_kill_while_a_checkpoint_is_written_costs_no_more_than_that_one(
    begin, undisturbed, chance: random.Random, record_property: Record
) -> None:
    trial = begin(LOCAL)
    trial.start()
    for step in draw_moments(chance, KILLS):
        trial.reach(step)
        strike_in_checkpoint(trial)
        record_property("fault", (LOCAL.name, "while a checkpoint is written", 1))
    trial.carry_to_end()
    assert_same(trial.folder, undisturbed(LOCAL))
    trial.assert_nothing_is_left()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, one in LAUNCHERS.items() for number in range(one.trials)]
)
def test_killed_run_ends_with_the_same_numbers(
    name: str, number: int, begin, undisturbed, chance: random.Random, record_property: Record
) -> None:
    launcher = LAUNCHERS[name]
    parts = list(launcher.victims)
    victims = [parts[(KILLS * number + index) % len(parts)] for index in range(KILLS)]
    chance.shuffle(victims)
    trial = begin(launcher, is_followed="command" in victims)
    trial.start(**launcher.spec)
    kill(trial, victims, chance, record_property)
    assert_same(trial.folder, undisturbed(launcher))
    trial.assert_nothing_is_left()


@pytest.mark.parametrize(
    ("name", "victims"),
    [
        (LOCAL.name, ("engine", "supervisor")),
        pytest.param(SSH.name, ("mirror", "connection", "supervisor there", "supervisor"), marks=pytest.mark.slow),
    ],
)
def test_killed_run_ends_with_the_same_numbers_in_short(
    name: str, victims: tuple[str, ...], begin, undisturbed, chance: random.Random, record_property: Record
) -> None:
    launcher = LAUNCHERS[name]
    trial = begin(launcher)
    trial.start(**launcher.spec)
    kill(trial, victims, chance, record_property)
    assert trial.resumes <= 1, (
        trial.sentences
    )  # its supervisor here is the only one that nobody restarts, if it still lived
    assert_same(trial.folder, undisturbed(launcher))
    trial.assert_nothing_is_left()
