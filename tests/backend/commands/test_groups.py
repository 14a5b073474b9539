"""Tests of groups of runs from a terminal: made, listed, continued, stopped, compared, and used as one model."""

import json
import os
import shutil
import time
from pathlib import Path

import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet
import pytest

from backend.commands import new_run
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.run.event_summary import landmarks
from backend.contract.run.events import DataLoaded
from backend.contract.run.folder import RunFolder, run_folders
from backend.contract.run.group import RunGroup, run_groups
from backend.inference.ensemble import write_predictions
from backend.training.run_group import make_runs
from tests import in_process

SHORT = ("--set", "training.max_steps=3", "--set", "data.validation=0.05", "--set", "data.max_rows=400")
DATA = resource("demo", "sentiment", "validation.csv")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A short group of two seeds, to be read alone, and what `burnish train` printed of it."""
    place = tmp_path_factory.mktemp("group")
    spec = str(resource("demo", "sentiment.yaml"))
    environment = {"BURNISH_RUNS": str(place / "runs"), "BURNISH_CACHE": str(place / "cache")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(new_run, "start", in_process.start)
        done = in_process.call(["train", spec, "--seeds", "3,1", *SHORT, "--json"], place, _with_own(environment))
    assert done.returncode == 0, done.stderr
    group = run_groups(place / "runs")[0]
    return group, json.loads(done.stdout.splitlines()[-1])


def _with_own(environment):
    return {**os.environ, **environment}


@pytest.fixture
def call(trained, tmp_path):
    """Runs one command where the trained group is."""

    def run(*arguments):
        return in_process.call(
            list(map(str, arguments)), tmp_path, _with_own({"BURNISH_RUNS": str(trained[0].path.parent)})
        )

    return run


def test_the_runs_of_a_group_differ_in_nothing_but_the_seed(trained):
    group, _ = trained
    specs = [spec_file.read_run(run.spec) for run in group.runs()]
    assert [spec["training"].pop("seed") for spec in specs] == [3, 1]
    assert specs[0] == specs[1]
    assert specs[0]["training"]["seeds"] is None


def test_the_runs_of_a_group_share_tokenised_data_and_validation_rows(trained):
    group, _ = trained
    loaded = [
        {event.split: event for event in landmarks(run.events) if isinstance(event, DataLoaded)} for run in group.runs()
    ]
    first, second = sorted(loaded, key=lambda events: events["train"].cached)
    assert [one["train"].cached for one in (first, second)] == [False, True]
    assert first["validation"].fingerprint == second["validation"].fingerprint


def test_train_reports_the_group_as_one(trained):
    group, printed = trained
    assert printed["group"] == printed["run"] == str(group.path)
    assert (printed["state"], printed["message"], printed["seeds"]) == ("finished", "2 of 2 finished", [3, 1])
    low, high = printed["intervals"]["accuracy"]
    assert low <= printed["metrics"]["accuracy"] <= high
    assert "accuracy" in printed["deviations"]


def test_runs_show_a_group_as_one_row(trained, call):
    group, _ = trained
    lines = call("runs").stdout.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"{group.name}  finished")
    assert "2 of 2 finished, accuracy" in lines[0]
    assert len(call("runs", "--members").stdout.splitlines()) == 3


def test_runs_as_json_have_the_group_and_its_runs(trained, call):
    group, _ = trained
    found = {run["name"]: run for run in json.loads(call("runs", "--json").stdout)}
    assert found[group.name]["runs"] == [str(run.path) for run in group.runs()]
    assert {found[run.name]["group"] for run in group.runs()} == {str(group.path)}
    assert found[group.name]["group"] == ""


def test_a_group_predicts_together_and_by_seed(trained, call, tmp_path):
    group, _ = trained
    output = tmp_path / "out.csv"
    done = call("predict", group.name, "--data", DATA, "--output", output, "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    table = arrow_csv.read_csv(output)
    alone = call("predict", group.run(1).name, "--data", DATA, "--output", tmp_path / "one.csv")
    assert alone.returncode == 0, alone.stderr
    one = arrow_csv.read_csv(tmp_path / "one.csv")
    assert table.column_names == [*one.column_names, "prediction_seed_3", "prediction_seed_1"]
    assert table["prediction_seed_1"].to_pylist() == one["prediction"].to_pylist()
    assert set(printed["seeds"]) == {"3", "1"}
    right = sum(a == b for a, b in zip(table["prediction"].to_pylist(), table["actual"].to_pylist(), strict=True))
    assert printed["together"]["metrics"]["accuracy"] == pytest.approx(right / len(table))


def test_training_leaves_the_groups_own_predictions(trained):
    group, _ = trained
    own = arrow_csv.read_csv(RunFolder(group.path).predictions())
    each = [arrow_csv.read_csv(run.predictions()) for run in group.runs()]
    means = [sum(values) / 2 for values in zip(*(one["probability_positive"].to_pylist() for one in each), strict=True)]
    assert own["probability_positive"].to_pylist() == pytest.approx(means)


def test_the_groups_own_predictions_follow_its_runs(trained, tmp_path):
    shutil.copytree(trained[0].path.parent, tmp_path / "runs")
    group = RunGroup(tmp_path / "runs" / trained[0].name)
    kept = RunFolder(group.path).predictions("validation", "parquet")
    assert write_predictions(group) == []
    before = parquet.read_table(kept)
    parquet.write_table(before.append_column("prediction_seed_9", before["prediction"]), kept)  # a seed since deleted
    assert write_predictions(group) == [RunFolder(group.path).predictions()]
    assert parquet.read_table(kept).column_names == before.column_names
    own = group.run(1).predictions("validation", "parquet")
    table = parquet.read_table(own)
    names = [name.replace("positive", "fine") for name in table.column_names]
    parquet.write_table(table.rename_columns(names), own)
    with pytest.raises(InputError, match="were not trained for the same labels"):
        write_predictions(group)


def test_a_group_has_slices(trained, call):
    done = call("slices", trained[0].name)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "no slice has 30 rows, so none can be told from the others"


def test_a_link_in_a_strangers_group_is_not_followed(trained, tmp_path):
    group = RunGroup(tmp_path / "runs" / "group")
    group.path.mkdir(parents=True)
    shutil.copy(trained[0].file, group.file)
    (tmp_path / "elsewhere").mkdir()
    group.run(3).path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="this is a link"):
        make_runs(group)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_group_is_evaluated_by_seed_and_together(trained, call):
    group, _ = trained
    done = call("evaluate", group.name, "--data", DATA)
    assert done.returncode == 0, done.stderr
    starts = [line.split("accuracy")[0].strip() for line in done.stdout.splitlines()]
    assert starts[:4] == ["seed 3", "seed 1", "mean", "together"]


def test_a_group_is_compared_with_a_run(trained, call):
    group, _ = trained
    done = call("compare", group.name, group.run(1).name, "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert {test["test"] for test in printed["tests"]} == {"bootstrap_seeds_rows"}
    assert printed["settings"]["training.seeds"] == {group.name: "[3, 1]", group.run(1).name: "–"}


@pytest.mark.parametrize("command", [("generate", "--prompt", "x"), ("export", "--csv", "-"), ("start",)])
def test_what_takes_one_run_names_those_of_the_group(trained, call, command):
    group, _ = trained
    name, *rest = command
    done = call(name, group.name, *rest)
    assert done.returncode == 2
    assert f"{group.name}: this is a group of runs; name one of them: {group.run(3).name}" in done.stderr


def test_a_note_belongs_to_the_group(trained, call):
    group, _ = trained
    assert call("note", group.name, "--tag", "seeds").returncode == 0
    assert "#seeds" in call("runs").stdout
    call("note", group.name, "--untag", "seeds")


def test_a_finished_group_is_not_resumed(trained, call):
    group, _ = trained
    done = call("resume", group.name)
    assert done.returncode == 2
    assert "all runs of this group have finished" in done.stderr


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ("1,2,1", "the seed 1 occurs in it twice"),
        ("", "at least two seeds"),
        ("7,", "at least two seeds"),
        ("1,-2", "-2 cannot be used"),
        ("1,x", "'x' cannot be used"),
        ("1", "at least two seeds"),
    ],
)
def test_wrong_seeds_make_nothing(burnish, spec, runs, seeds, words):
    done = burnish("train", spec, "--seeds", seeds)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not runs.exists()


def test_a_group_on_another_machine_is_refused(burnish, spec):
    done = burnish("train", spec, "--seeds", "2", "--on", "lab")
    assert done.returncode == 2
    assert done.stderr.startswith("--on: a group trains on this computer")


@pytest.mark.slow
def test_a_group_is_stopped_and_continued(burnish, spec, runs):
    begun = burnish("train", spec, "--seeds", "2", "--detach", *SHORT)
    assert begun.returncode == 0, begun.stderr
    group = run_groups(runs)[0]
    assert begun.stdout.splitlines()[-1] == f"group        {group.path}"
    stopped = burnish("stop", group.name)
    assert stopped.returncode == 0, stopped.stderr
    deadline = time.monotonic() + 60
    while any(run.life() == "alive" for run in group.runs()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    shutil.rmtree(group.run(43).path)
    done = burnish("resume", group.name)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 finished" in done.stdout
    assert [run.name for run in run_folders(runs)] == [f"{group.name}-seed-43", f"{group.name}-seed-42"]


def test_what_a_kill_left_unmade_is_made(trained, burnish, runs: Path):
    group, _ = trained
    runs.mkdir()
    copy = RunGroup(runs / group.name)
    copy.path.mkdir()
    shutil.copy(group.file, copy.file)
    copy.run(3).path.mkdir()  # killed between the folder and its spec
    assert "0 of 2 finished" in burnish("runs").stdout
    make_runs(copy)
    assert [run.spec.read_text() for run in copy.runs()] == [run.spec.read_text() for run in group.runs()]
    shutil.rmtree(copy.run(3).path)
    before = copy.run(1).spec.stat().st_mtime_ns
    make_runs(copy)
    assert copy.run(3).exists()
    assert copy.run(1).spec.stat().st_mtime_ns == before
