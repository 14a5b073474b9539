"""What happens around a run: a full disk, a power failure, a wrong clock, two windows, a deleted folder."""

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from faults.trial import CLOCK, LAUNCHERS, STEPS, Launcher, Trial, assert_same

from backend.contract.run.folder import RunFolder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]
HOUR = 3600
FULL_SECONDS = 15.0
"""How long a disk stays full, unless the run ends before."""
WRONG_CLOCK = f"""
import os, time
_true, _offset = time.time, float(os.environ.get({CLOCK!r}, "0"))
if _offset:
    time.time = lambda: _true() + _offset
"""
"""Of a process's start: there is no way to change the clock of a part of the computer."""


@pytest.fixture
def mount() -> Iterator:
    """Makes a folder a small disk of its own; needs root."""
    folders: list[Path] = []

    def make(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("only root can mount a small disk")
        folders.append(folder)

    yield make
    for folder in folders:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def middle(chance: random.Random) -> int:
    """A step at which something happens."""
    return chance.randrange(1, STEPS * 3 // 4)


def delete(folder: Path) -> bool:
    """Delete it, unless something was just being written there."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


@pytest.mark.parametrize(
    ("name", "disk"), [(name, disk) for name, launcher in LAUNCHERS.items() for disk in launcher.disks]
)
def test_full_disk_costs_nothing_once_there_is_room(
    name: str, disk: str, begin, undisturbed, mount, chance: random.Random, record_property
) -> None:
    trial: Trial = begin(LAUNCHERS[name])
    folder = trial.burnish.home / trial.launcher.disks[disk]
    mount(folder)
    trial.start(**trial.launcher.spec)
    trial.reach(middle(chance))
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(1 << 20)):
            pass
    until = time.monotonic() + FULL_SECONDS
    trial.until(lambda: trial.folder.life() != "alive" or time.monotonic() > until)
    filler.unlink()
    trial.carry_to_end()
    record_property("fault", (name, f"full disk {disk}", trial.resumes))
    assert_same(trial.folder, undisturbed(trial.launcher))
    trial.assert_nothing_is_left()


def test_power_failure_leaves_a_run_that_resumes(
    launcher: Launcher, begin, undisturbed, chance: random.Random, record_property
) -> None:
    trial: Trial = begin(launcher)
    trial.start(**launcher.spec)
    trial.reach(middle(chance))
    for pid in trial.processes():
        os.kill(pid, 9)
    trial.carry_to_end()
    record_property("fault", (launcher.name, "power failure", trial.resumes))
    assert_same(trial.folder, undisturbed(launcher))
    trial.assert_nothing_is_left()


@pytest.mark.parametrize("offset", [HOUR, -HOUR])
def test_clock_that_is_off_by_an_hour_changes_nothing(
    launcher: Launcher, offset: int, begin, undisturbed, chance: random.Random, record_property
) -> None:
    trial: Trial = begin(launcher)
    (trial.burnish.home / "sitecustomize.py").write_text(WRONG_CLOCK)
    trial.burnish.environment["PYTHONPATH"] = f"{trial.burnish.home}{os.pathsep}{os.environ['PYTHONPATH']}"
    launcher.set_clock(trial.burnish, offset)
    trial.start(**launcher.spec)
    trial.reach(middle(chance))
    launcher.set_clock(trial.burnish, 0)  # the next attempt is right again
    trial.strike("supervisor")
    trial.carry_to_end()
    record_property("fault", (launcher.name, "clock off by an hour", trial.resumes))
    assert_same(trial.folder, undisturbed(launcher))
    trial.assert_nothing_is_left()


def test_of_two_windows_that_resume_one_does(
    launcher: Launcher, begin, undisturbed, chance: random.Random, record_property
) -> None:
    trial: Trial = begin(launcher)
    trial.start(**launcher.spec)
    trial.reach(middle(chance))
    trial.strike("supervisor")
    trial.until(lambda: trial.folder.life() == "lost")
    both = [trial.burnish.start("resume", trial.folder.name, "--detach") for _ in range(2)]
    ended = [(process.communicate()[1].strip(), process.returncode) for process in both]
    codes = sorted(code for _, code in ended)
    assert codes in ([0, 2], [0, 1]), ended
    assert any("this run is" in said.splitlines()[-1] for said, code in ended if code), ended
    trial.carry_to_end()
    record_property("fault", (launcher.name, "two windows", trial.resumes))
    assert_same(trial.folder, undisturbed(launcher))
    trial.assert_nothing_is_left()


def test_deleted_folder_ends_the_run_in_one_sentence(
    launcher: Launcher, begin, chance: random.Random, record_property
) -> None:
    trial: Trial = begin(launcher, is_followed=True)
    trial.start(**launcher.spec)
    trial.reach(middle(chance))
    trial.until(lambda: delete(trial.there.path))
    [command] = trial.followers()
    said = command.communicate(timeout=120)[1].splitlines()[-1]
    assert command.returncode == 1
    assert "deleted" in said, said
    record_property("fault", (launcher.name, "folder deleted", 0))
    trial.assert_nothing_is_left()


def test_run_whose_copy_was_deleted_is_adopted(begin, undisturbed, chance: random.Random, record_property) -> None:
    launcher = LAUNCHERS["ssh"]
    trial: Trial = begin(launcher)
    trial.start()
    trial.reach(middle(chance))
    there = trial.there
    trial.until(lambda: delete(trial.folder.path))
    adopted = trial.burnish("adopt", f"lab:{there.name}")
    assert adopted.returncode == 0, adopted.stderr
    trial.folder = trial.until(lambda: next(iter(trial.burnish.runs.glob("*/spec.yaml")), None))
    trial.folder = RunFolder(trial.folder.parent)
    trial.carry_to_end()
    record_property("fault", (launcher.name, "copy deleted", trial.resumes))
    assert_same(trial.folder, undisturbed(launcher))
    trial.assert_nothing_is_left()
