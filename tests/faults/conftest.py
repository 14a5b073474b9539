"""The seed of the faults, the undisturbed runs, and the table of what was struck."""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from end_to_end.burnish_process import Burnish, small_csv
from faults.trial import LAUNCHERS, SPEC, Launcher, Trial, numbers

from backend.contract.run.folder import RunFolder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults-seed", type=int, default=None, help="repeat the faults of an earlier run of make faults")


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "faults_seed", 0) is None:  # without the option, as in a run of all tests, it is 1
        config.option.faults_seed = random.SystemRandom().randrange(10**6)


def pytest_report_header(config: pytest.Config) -> str:
    return f"faults: --faults-seed {config.option.faults_seed}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A Markdown table of the faults: launcher, what was struck, how often, and how those runs went on."""
    counts: Counter[tuple[str, str]] = Counter()
    alone: Counter[tuple[str, str]] = Counter()
    for report in (*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())):
        for name, value in report.user_properties:
            if name == "fault":
                launcher, victim, resumes = value
                counts[launcher, victim] += 1
                alone[launcher, victim] += not resumes
    if counts:
        terminalreporter.write_line("| launcher | killed | times | went on by itself | after a resume |")
        terminalreporter.write_line("|---|---|---|---|---|")
    for (launcher, victim), count in counts.items():
        itself = alone[launcher, victim]
        terminalreporter.write_line(f"| {launcher} | {victim} | {count} | {itself} | {count - itself} |")


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers by the seed and the test's name."""
    return random.Random(f"{request.config.getoption('--faults-seed', 1)} {request.node.name}")


def make_burnish(home: Path) -> Burnish:
    """A home with a few rows of the demo's data."""
    home.mkdir()
    small_csv(home / "train.csv", "train", 64)
    small_csv(home / "validation.csv", "validation", 24)
    return Burnish(home, {"BURNISH_CACHE": str(home / "cache")})


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Trial]]:
    """Makes a trial with a launcher; what it leaves running is killed at the end."""
    monkeypatch.setenv("BURNISH_CONFIG", os.environ["BURNISH_CONFIG"])
    trials: list[Trial] = []

    def make(launcher: Launcher, *, is_followed: bool = False) -> Trial:
        trials.append(Trial(make_burnish(tmp_path / "home"), launcher, is_followed))
        return trials[-1]

    yield make
    for trial in trials:
        trial.end()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Launcher], dict[str, Any]]:
    """The numbers of the run that nothing disturbs, here, with the launcher's own settings."""
    known: dict[str, dict[str, Any]] = {}

    def look_up(launcher: Launcher) -> dict[str, Any]:
        key = str(launcher.spec)
        if key not in known:
            burnish = make_burnish(tmp_path_factory.mktemp("undisturbed") / "home")
            burnish.in_process = "hardware" not in launcher.spec
            sections = {name: {**SPEC[name], **launcher.spec.get(name, {})} for name in SPEC}
            done = burnish("train", str(burnish.spec(**sections)), "--run-folder", str(burnish.home / "run"))
            assert done.returncode == 0, done.stderr
            known[key] = numbers(RunFolder(burnish.home / "run"))
        return known[key]

    return look_up


@pytest.fixture(params=list(LAUNCHERS))
def launcher(request: pytest.FixtureRequest) -> Launcher:
    """Each launcher in turn."""
    return LAUNCHERS[request.param]
