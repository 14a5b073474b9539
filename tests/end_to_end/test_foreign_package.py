"""A package that somebody else wrote and installed adds tasks, metrics and optimizers; a broken part of it is left out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backend.contract.run.events import EvaluationFinished
from backend.contract.run.folder import RunFolder
from tests.end_to_end.burnish_process import Burnish, events_of, small_csv
from tests.foreign_package import install


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("foreign"))


@pytest.fixture
def plugged(burnish: Burnish, site: Path) -> Burnish:
    """`burnish` where that package is installed."""
    known = burnish.variables()["PYTHONPATH"]
    burnish.environment["PYTHONPATH"] = os.pathsep.join([known, str(site)])
    return burnish


def described(burnish: Burnish) -> dict:
    return json.loads(burnish("describe", "--json", "--no-devices").stdout)


ONE_AFTER_ANOTHER = """
import json, os, sys
from pathlib import Path
from tests import in_process
done = [in_process.call(each, Path.cwd(), os.environ) for each in json.loads(sys.argv[1])]
print(json.dumps([(each.returncode, each.stdout, each.stderr) for each in done]))
"""


@pytest.fixture(scope="module")
def said(site: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """Exit code, stdout and stderr of commands where the package is installed, all of one process."""
    one = Burnish(tmp_path_factory.mktemp("plugged"))
    small_csv(one.home / "train.csv", "train", 64)
    small_csv(one.home / "validation.csv", "validation", 24)
    commands = {
        "catalog": ["describe", "--json", "--no-devices"],
        "task": ["train", str(one.spec("task.yaml", task={"type": "broken"}))],
        "metric": ["train", str(one.spec("metric.yaml", evaluation={"metrics": ["exactness"]}))],
        "doctor": ["doctor"],
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", ONE_AFTER_ANOTHER, json.dumps(list(commands.values()))],
        env={**one.variables(), "PYTHONPATH": os.pathsep.join([one.variables()["PYTHONPATH"], str(site)])},
        cwd=one.home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(commands, json.loads(done.stdout), strict=True))


@pytest.fixture
def catalog(said: dict[str, tuple[int, str, str]]) -> dict:
    """What `burnish describe` says there."""
    return json.loads(said["catalog"][1])


@pytest.fixture(autouse=True)
def processes(burnish: Burnish) -> None:
    """Every command is one, with other packages on its path."""
    burnish.in_process = False


def test_the_catalog_lists_what_the_package_adds(catalog: dict):
    assert "shouting" in {task["name"] for task in catalog["tasks"]}
    directions = {metric["name"]: metric["greater_is_better"] for metric in catalog["metrics"]}
    assert (directions["exactness"], directions["loss"]) == (True, False)
    assert "signs" in catalog["spec"]["$defs"]["TrainingSection"]["properties"]["optimizer"]["enum"]


def test_broken_parts_are_named_and_left_out(catalog: dict):
    assert not {"broken", "hollow"} & {task["name"] for task in catalog["tasks"]}
    said = "\n".join(catalog["problems"])
    assert "broken from the package foreign cannot be loaded (ModuleNotFoundError" in said
    assert "hollow from the package foreign cannot be used: it has no description" in said


def test_a_name_that_burnish_has_already_stays_its_own(catalog: dict):
    assert any("text_classification from the package foreign was skipped" in problem for problem in catalog["problems"])
    titles = {task["name"]: task["title"] for task in catalog["tasks"]}
    assert titles["text_classification"] != titles["shouting"]


def test_the_kept_catalog_is_made_anew_when_the_package_goes(catalog: dict, burnish: Burnish):
    assert "shouting" in {task["name"] for task in catalog["tasks"]}
    assert "shouting" not in {task["name"] for task in described(burnish)["tasks"]}


@pytest.mark.slow
def test_a_run_trains_with_the_task_the_metric_and_the_optimizer(plugged: Burnish):
    spec = plugged.spec(
        task={"type": "shouting", "max_length": 32},
        training={"max_steps": 3, "batch_size": 8, "learning_rate": 1e-4, "optimizer": "signs"},
        evaluation={"every": 3, "metrics": ["exactness"], "best_metric": "exactness"},
    )
    done = plugged("train", str(spec))
    assert done.returncode == 0, done.stderr
    folder: RunFolder = plugged.run_folder()
    evaluation = next(event for event in events_of(folder) if isinstance(event, EvaluationFinished))
    assert evaluation.metrics["exactness"] == evaluation.metrics["accuracy"]
    assert evaluation.metrics["exactness_rows"] == evaluation.rows


def test_a_broken_task_is_refused_with_the_reason(said: dict[str, tuple[int, str, str]]):
    code, _, words = said["task"]
    assert code == 2
    assert "task.type: the task broken from the package foreign cannot be loaded" in words


def test_a_metric_of_another_task_is_refused(said: dict[str, tuple[int, str, str]]):
    code, _, words = said["metric"]
    assert code == 2
    assert "evaluation.metrics: exactness is a metric for shouting, not text_classification" in words


def test_doctor_names_what_is_broken(said: dict[str, tuple[int, str, str]]):
    assert "broken from the package foreign" in said["doctor"][1]
