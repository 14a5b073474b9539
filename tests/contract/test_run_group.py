"""A group is derived from its folder and its name; its spread over seeds is Student's."""

import json
from datetime import datetime

import numpy as np
import pytest
from scipy import stats

from backend.contract.errors import InputError
from backend.contract.metrics import spread, spreads, student_quantile
from backend.contract.run.folder import RunFolder, run_folders
from backend.contract.run.group import find_group, group_of, new_group_folder, run_groups, state_of
from backend.contract.spec import TrainingSection, validate

NOON = datetime(2026, 11, 28, 12, 0)


@pytest.fixture
def group(tmp_path):
    found = new_group_folder(tmp_path, "a name", [3, 1], NOON)
    found.write({"name": "a name", "training": {"seed": 42, "seeds": [3, 1]}}, ["because"])
    return found


def make(run):
    run.path.mkdir()
    run.spec.write_text("name: a name")


def test_the_runs_follow_from_the_groups_name(group, tmp_path):
    assert group.name == "2026-11-28-1200-a-name"
    assert [run.path for run in group.runs()] == [tmp_path / f"{group.name}-seed-{seed}" for seed in (3, 1)]
    assert group.made_runs() == []


def test_a_group_is_found_by_name_and_path_and_is_no_run(group, tmp_path):
    by_name, by_path = find_group(group.name, tmp_path), find_group(str(group.path), tmp_path / "other")
    assert by_name is not None
    assert by_path is not None
    assert by_name.path == by_path.path == group.path
    assert [one.path for one in run_groups(tmp_path)] == [group.path]
    assert run_folders(tmp_path) == []


def test_a_run_knows_its_group(group, tmp_path):
    own = group.run(3)
    make(own)
    assert getattr(group_of(own), "path", None) == group.path
    assert group_of(RunFolder(tmp_path / f"{group.name}-seed-7")) is None
    assert group_of(RunFolder(tmp_path / "2026-11-28-1200-other-seed-3")) is None


def test_a_second_group_in_the_same_minute_takes_no_run_of_another(group, tmp_path):
    assert new_group_folder(tmp_path, "a name", [1], NOON).name == f"{group.name}-2"
    make(RunFolder(tmp_path / f"{group.name}-3-seed-1"))
    assert new_group_folder(tmp_path, "a name", [1], NOON).name == f"{group.name}-4"


@pytest.mark.parametrize(
    "training",
    [{}, {"seeds": []}, {"seeds": [1, 1]}, {"seeds": [-1, 2]}, {"seeds": ["../x", 2]}, {"seeds": list(range(101))}, 5],
)
def test_a_damaged_group_is_one_sentence(group, tmp_path, training):
    group.file.write_text(json.dumps({"spec": {"training": training}, "reasons": []}))
    with pytest.raises(InputError, match="this file of a group is damaged"):
        find_group(group.name, tmp_path)
    assert group_of(group.run(3)) is None


def test_a_group_through_a_link_is_refused(group, tmp_path):
    elsewhere = tmp_path / "elsewhere.json"
    group.file.rename(elsewhere)
    group.file.symlink_to(elsewhere)
    with pytest.raises(InputError):
        group.read()


@pytest.mark.parametrize(
    ("states", "state"),
    [
        (["finished", "finished"], "finished"),
        (["finished", "running", "queued"], "running"),
        (["finished", "starting"], "running"),
        (["finished", "queued", "failed"], "queued"),
        (["finished", "failed", "stopped"], "failed"),
        (["finished", "lost"], "lost"),
        (["stopped", "paused"], "paused"),
    ],
)
def test_the_state_is_the_most_important_of_all_runs(states, state):
    assert state_of(states) == state


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 99])
def test_the_quantile_is_that_of_scipy(freedom):
    assert student_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)


def test_the_interval_over_seeds_is_that_of_scipy():
    values = [0.71, 0.68, 0.74, 0.70, 0.66]
    found = spread(values)
    oracle = stats.t.interval(0.95, 4, np.mean(values), stats.sem(values))
    assert found.mean == pytest.approx(np.mean(values))
    assert found.deviation == pytest.approx(np.std(values, ddof=1))
    assert found.interval == pytest.approx(oracle)


def test_one_seed_has_no_interval():
    assert spread([0.5]).interval is None


def test_only_what_every_seed_has_is_spread():
    found = spreads([{"f1": 0.5, "loss": 1.0, "x": None}, {"loss": 2.0, "f1": 0.7, "x": 1.0}, {"loss": 3.0, "f1": 0.9}])
    assert list(found) == ["f1", "loss"]
    assert found["loss"].mean == 2.0
    assert spreads([]) == {}


def test_a_number_of_seeds_counts_from_the_seed():
    assert TrainingSection(seed=7, seeds=3).group_seeds == (7, 8, 9)
    assert TrainingSection(seeds=[5, 2]).group_seeds == (5, 2)
    assert TrainingSection().group_seeds == ()


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ([1, 2, 1], "the seed 1 occurs in it twice"),
        ([], "at least two seeds"),
        ([1], "at least two seeds"),
        ([1, -2], "greater than or equal to 0"),
        (1, "at least two seeds; for one run set training.seed"),
        (0, "at least two seeds"),
        (2**32, "would exceed the largest"),
        (list(range(200)), "at most 100 seeds"),
    ],
)
def test_wrong_seeds_are_one_sentence(seeds, words):
    with pytest.raises(InputError, match=words):
        validate(TrainingSection, {"seeds": seeds}, "training")
