"""Kills what a run needs on the real things: an ssh server, Slurm and Ray on this computer, each skipped if it is not installed."""

import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from end_to_end.burnish_process import Burnish
from faults.test_kills import kill
from faults.trial import (
    SSH,
    STEPS,
    Launcher,
    Trial,
    assert_same,
    describe_machine,
    processes_named,
)

from backend.remote import ray_jobs
from tests.backend.remote import clusters

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]
MIRRORED = {"mirror": SSH.victims["mirror"], "agent": SSH.victims["agent"], "supervisor": SSH.victims["supervisor"]}
LONGER = {"training": {"max_steps": 400, "checkpoint_every": 20}}
"""A run that does not end before it can be struck: whoever is to be killed must be found in another process's folder first."""
THERE = {"engine there": SSH.victims["engine there"], "supervisor there": SSH.victims["supervisor there"]}


def _sshd(found: Any) -> Launcher:
    prepare = lambda burnish: describe_machine(burnish, address="lab", ssh_config=str(found))  # noqa: E731
    sessions = {"connection": lambda trial: processes_named(trial, "ssh -F")}
    return replace(SSH, name="sshd", prepare=prepare, victims={**THERE, **MIRRORED, **sessions}, spec=LONGER)


def _slurm(found: Any) -> Launcher:
    def prepare(burnish: Burnish) -> None:
        describe_machine(burnish, scheduler="slurm", time="20")
        burnish.environment |= {"SLURM_CONF": str(found), "PATH": clusters.SYSTEM_PATH}

    victims = {**THERE, "job": lambda trial: processes_named(trial, f"resume {trial.there.path}"), **MIRRORED}
    return replace(SSH, name="slurm", prepare=prepare, victims=victims, spec=LONGER)


def _ray(found: Any) -> Launcher:
    def prepare(burnish: Burnish) -> None:
        describe_machine(burnish, scheduler="ray", dashboard=found.dashboard)
        burnish.environment[ray_jobs.TOKEN] = found.token

    def worker(trial: Trial) -> list[int]:
        return processes_named(trial, f"{trial.there.path} --rank 0")

    victims = {
        "worker": worker,
        "driver": THERE["engine there"],
        "supervisor there": THERE["supervisor there"],
        **MIRRORED,
    }
    return replace(
        SSH, name="ray", prepare=prepare, victims=victims, seconds=600, spec=LONGER
    )  # its first workers take minutes to start


REAL: dict[str, tuple[Callable[[Path], AbstractContextManager[Any]], Callable[[Any], Launcher]]] = {
    "sshd": (clusters.sshd, _sshd),
    "slurm": (clusters.slurm, _slurm),
    "ray": (clusters.ray, _ray),
}


@pytest.fixture(scope="module", params=list(REAL))
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """Each of them in turn, running."""
    if reason := clusters.missing(request.param):
        pytest.skip(reason)
    run, describe = REAL[request.param]
    with run(tmp_path_factory.mktemp(request.param)) as found:
        yield describe(found)


def test_killed_run_ends_with_the_same_numbers(
    real: Launcher, begin, undisturbed, chance: random.Random, record_property
) -> None:
    trial: Trial = begin(real)
    trial.start(**real.spec)
    victims = list(real.victims)
    chance.shuffle(victims)
    struck: list[object] = []

    def record(name: str, value: object) -> None:
        struck.append(value)
        record_property(name, value)

    kill(trial, victims, chance, record)
    assert len(struck) == len(victims), struck
    assert_same(trial.folder, undisturbed(real))
    trial.assert_nothing_is_left()


def test_machine_that_comes_back_continues_the_run(
    real: Launcher, begin, undisturbed, chance: random.Random, record_property
) -> None:
    trial: Trial = begin(real)
    trial.start(**real.spec)
    trial.reach(chance.randrange(1, STEPS * 3 // 4))
    for pid in trial.processes():
        os.kill(pid, 9)
    trial.carry_to_end()
    record_property("fault", (real.name, "power failure", trial.resumes))
    assert_same(trial.folder, undisturbed(real))
    trial.assert_nothing_is_left()
