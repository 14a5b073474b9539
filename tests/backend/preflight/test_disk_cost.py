"""A plan says what a run writes to which disk, warns if there is no room, and offers what really fits."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.commands.plan import _format_disk, _format_disk_problem
from backend.contract.catalog import Device
from backend.contract.heads import Head
from backend.contract.resources import resource
from backend.contract.rpc.plan import DiskPlan
from backend.contract.spec import RunSpec
from backend.contract.spec_file import set_values
from backend.data.rows import Rows
from backend.preflight import cost, datasets, resolve
from backend.preflight.disk_cost import CACHE, HUB, RUNS, DiskFacts, Place, find_places, plan_disk
from backend.preflight.time_estimate import Amounts

CPU = Device("cpu", 0, "Processor", 8000, 6000, ["float32"])
WEIGHTS_MB = 4_385_920 * 4 / 1e6
DEMO = resource("demo", "sentiment")


def spec_with(**changes: Any) -> RunSpec:
    values = {
        "task": {"type": "text_classification"},
        "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
        "data": {"train": str(DEMO / "train.csv"), "validation": str(DEMO / "validation.csv")},
        "training": {"epochs": 5, "batch_size": 16, "learning_rate": 3e-4, "warmup": 0},
        "evaluation": {"best_metric": "accuracy"},
    }
    return resolve.resolve(set_values(values, changes), Path("/"))


@pytest.fixture(scope="module")
def rows() -> dict[str, Rows]:
    return datasets.load_splits(spec_with(), None).rows


def facts_of(spec: RunSpec, rows: dict[str, Rows], device: str = "cuda", **changes: Any) -> DiskFacts:
    amounts = Amounts(spec, {split: len(part) for split, part in rows.items()}, 12.0, 150, 750, 1e-4)
    values = {
        "folder": resource("demo", "bert-tiny"), "head": Head.SEQUENCE_CLASSIFICATION, "parameters": 4_385_920,
        "features": 2400, "tokens": 28_800, "distinct": 5000, "device": device, "amounts": amounts, "rows": rows,
    }  # fmt: skip
    return DiskFacts(**{**values, **changes})


def places(free_mb: float, cache_mb: float = 1000.0) -> dict[str, Place]:
    """Runs on one disk, both caches on another."""
    runs = Place(Path("/runs"), 1, free_mb, 1000.0)
    return {
        RUNS: runs,
        CACHE: Place(Path("/cache"), 2, cache_mb, 1000.0),
        HUB: Place(Path("/hub"), 2, cache_mb, 1000.0),
    }


def disk(spec: RunSpec, rows: dict[str, Rows], free_mb: float, cache_mb: float = 1000.0, **changes: Any) -> DiskPlan:
    return plan_disk(spec, facts_of(spec, rows, **changes), places(free_mb, cache_mb))


def part(plan: DiskPlan, name: str) -> float:
    return next((one.megabytes for one in plan.parts if one.name == name), 0.0)


def test_a_checkpoint_has_weights_and_what_the_optimizer_keeps(rows):
    plan = disk(spec_with(), rows, 500)
    assert part(plan, "Checkpoints") == pytest.approx(
        3 * 3 * WEIGHTS_MB
    )  # two and the best one; Adam keeps two moments
    assert part(disk(spec_with(**{"training.optimizer": "sgd"}), rows, 500), "Checkpoints") < 3 * 3 * WEIGHTS_MB
    assert part(plan, "Final model") == pytest.approx(WEIGHTS_MB, rel=0.1)


def test_no_more_checkpoints_are_counted_than_are_written(rows):
    assert part(disk(spec_with(**{"training.max_steps": 1}), rows, 500, amounts=one_step(rows)), "Checkpoints") == (
        pytest.approx(3 * WEIGHTS_MB)
    )
    without = spec_with(**{"training.checkpoint_every": "never", "evaluation.best_metric": None})
    assert part(disk(without, rows, 500), "Checkpoints") == 0


def one_step(rows: dict[str, Rows]) -> Amounts:
    return Amounts(spec_with(), {split: len(part) for split, part in rows.items()}, 12.0, 150, 1, 1e-4)


def test_words_that_never_occur_keep_no_state_on_a_cpu(rows):
    sparse = disk(spec_with(), rows, 500, device="cpu")
    seen = 5000 * (2400 / 2000) ** 0.5
    assert part(sparse, "Checkpoints") == pytest.approx(
        3 * (3 * WEIGHTS_MB - (30522 - seen) * 128 * 8 / 1e6), rel=0.001
    )


def test_an_adapter_saves_little_but_a_whole_model(rows):
    plan = disk(spec_with(adapter={"type": "lora"}), rows, 500)
    assert part(plan, "Checkpoints") < 1
    assert part(plan, "Final model") == pytest.approx(WEIGHTS_MB, rel=0.1)
    assert part(disk(spec_with(adapter={"type": "lora", "saved": "adapter"}), rows, 500), "Final model") < 2


def test_parts_on_one_disk_share_its_room(rows):
    plan = disk(spec_with(), rows, 500, download_mb=440.0)
    [runs, caches] = plan.volumes
    assert (runs.folder, caches.folder) == ("/runs", "/cache")
    assert caches.needed_mb == pytest.approx(440 + part(plan, "Prepared data"))
    assert plan.problem == ""
    assert plan.fixes == []


def test_what_is_prepared_already_is_not_counted(rows):
    spec = spec_with()
    made = Amounts(spec, {}, 12.0, 150, 750, 1e-4, frozenset(rows))
    assert part(disk(spec, rows, 500, amounts=made), "Prepared data") == 0


def test_a_full_disk_is_a_problem_with_the_way_out(rows):
    plan = disk(spec_with(), rows, 190)
    assert plan.problem.startswith(
        "The disk will be full: the run writes about 211 MB to /runs, where 190 MB is free; "
    )
    assert plan.problem.endswith("choose one of the settings that need less")


@pytest.mark.parametrize("free_mb", [30, 60, 130, 190])
def test_with_each_fix_that_is_said_to_fit_the_plan_fits(rows, free_mb: float):
    fixes = [fix for fix in disk(spec_with(), rows, free_mb).fixes if fix.fits]
    assert fixes
    for fix in fixes:
        assert disk(spec_with(**fix.changes), rows, free_mb).problem == "", fix.title


def test_the_gentlest_fix_comes_first_and_all_of_them_only_if_none_is_enough(rows):
    assert disk(spec_with(), rows, 190).fixes[0].title == "Keep one checkpoint"
    assert "Save only the final model" not in [fix.title for fix in disk(spec_with(), rows, 190).fixes]
    tight = {fix.title: fix.fits for fix in disk(spec_with(), rows, 25).fixes}
    assert tight["Save only the final model"]
    assert not tight["Keep one checkpoint"]


def test_a_download_without_room_is_not_helped_by_settings(rows):
    plan = disk(spec_with(), rows, 500, cache_mb=100, download_mb=440.0)
    assert not any(fix.fits for fix in plan.fixes)
    assert "to /cache, where 100 MB is free; free up some space, or choose another folder" in plan.problem


def test_the_terminal_lists_the_parts_and_each_fix_with_its_options(rows):
    lines = _format_disk(disk(spec_with(), rows, 190)) + _format_disk_problem(disk(spec_with(), rows, 190))
    assert (
        lines[0]
        == "disk       about 211 MB; 190 MB of 1.0 GB free at /runs, of which it needs 211 MB; 1.0 GB of 1.0 GB free at /cache, of which it needs 0.3 MB"
    )
    assert "  Checkpoints              158 MB  3 × 53 MB" in lines
    assert "  Keep one checkpoint: about 158 MB, fits (--set training.keep_checkpoints=1)" in lines


def test_the_room_for_hub_models_matters_only_to_a_run_that_downloads_one():
    assert set(find_places(downloads=False)) == {RUNS, CACHE}
    assert set(find_places(downloads=True)) == {RUNS, CACHE, HUB}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 100 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_small_disk_is_found_where_the_runs_are(small_disk: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("BURNISH_RUNS", str(small_disk / "runs"))
    monkeypatch.setenv("BURNISH_CACHE", str(tmp_path / "cache"))
    (small_disk / "other").write_bytes(bytes(50_000_000))
    found = cost.plan(spec_with(), [CPU]).disk
    assert found is not None
    assert found.volumes[0].folder == str(small_disk / "runs")
    assert found.volumes[0].total_mb == pytest.approx(100 * 1.048576)
    assert found.volumes[0].free_mb == pytest.approx(54.8, abs=0.5)
    assert "The disk will be full" in found.problem
    fix = next(one for one in found.fixes if one.fits)
    fixed = cost.plan(spec_with(**fix.changes), [CPU]).disk
    assert fixed is not None
    assert fixed.problem == ""


def test_a_model_that_is_not_held_in_float32_is_copied_while_it_is_saved(rows):
    merged = {"adapter": {"type": "lora"}, "model.weights": "nf4"}
    alone = {**merged, "adapter": {"type": "lora", "saved": "adapter"}}
    assert part(disk(spec_with(**merged), rows, 1000.0), "While saving") == pytest.approx(WEIGHTS_MB)
    assert part(disk(spec_with(**alone), rows, 1000.0), "While saving") < WEIGHTS_MB / 10
