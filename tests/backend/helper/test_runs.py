"""A training is tried out in a process of its own: what it tells is kept, and however it ends nothing else is left."""

import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from backend import __main__, process_tree
from backend.contract import spec_file
from backend.contract.resources import resource

pytestmark = pytest.mark.slow


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of its own; a helper that is started after it uses it too."""
    monkeypatch.setenv("BURNISH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def asked(cache: Path, helper):
    """A helper with that cache."""
    return helper


def demo(**changes: Any) -> dict[str, Any]:
    values = spec_file.read(resource("demo", "sentiment.yaml"))
    values["model"] = {"name_or_path": str(resource("demo", "bert-tiny"))}
    folder = resource("demo", "sentiment")
    values["data"] |= {"train": str(folder / "train.csv"), "validation": str(folder / "validation.csv")}
    return spec_file.set_values(values, changes)


def trial(asked) -> int:
    """The process that measures, 0 while there is none."""
    own = asked.workers()
    found = [one.pid for one in process_tree.processes() if one.pid in own and "_measure" in one.command]
    return found[0] if found else 0


def test_a_measurement_is_kept_for_what_it_only_scales(asked, cache: Path) -> None:
    assert asked.answer("measure_time", spec=demo()) == {"shortage": "", "remedies": []}
    stages = list(dict.fromkeys(one["progress"]["part"] for one in asked.progress))
    assert (stages[0], stages[-1], "training" in stages) == ("", "saving", True)
    first, longer, other = (
        asked.answer("plan", spec=demo(**changes))
        for changes in ({}, {"training.epochs": 400}, {"training.batch_size": 8})
    )
    assert {part["name"] for part in first["time"]} >= {"Startup", "Training", "Evaluations", "Checkpoints", "Saving"}
    assert first["measured"]["steps"] >= 3
    assert first["measured"]["memory_mb"] > 100
    assert first["least_seconds"] < first["seconds"] < first["most_seconds"]
    assert longer["seconds"] > 20 * first["seconds"]
    assert other["measured"] is None
    assert not (cache / "scratch").exists()


def test_a_stopped_measurement_leaves_nothing(asked, cache: Path, until) -> None:
    number = asked.ask("measure_time", spec=demo())
    until(lambda: trial(asked) and any((cache / "scratch").glob("*/events.jsonl")))
    pid = trial(asked)
    asked.cancel(number)
    assert asked.reply(number)["error"]["message"] == "cancelled"
    until(lambda: pid not in {one.pid for one in process_tree.processes()})
    assert not (cache / "scratch").exists()
    assert not (cache / "measurements.json").exists()


def test_a_trial_has_the_priority_of_a_run_though_other_questions_give_way(asked, until) -> None:
    asked.answer("plan", spec=demo())
    number = asked.ask("measure_time", spec=demo())
    until(lambda: trial(asked))
    assert psutil.Process(trial(asked)).nice() == psutil.Process().nice()
    asked.cancel(number)
    asked.reply(number)
    assert all(psutil.Process(worker).nice() > psutil.Process().nice() for worker in asked.workers())


def test_a_process_that_the_system_killed_lacked_memory(asked, cache: Path, until) -> None:
    number = asked.ask("measure_time", spec=demo())
    until(lambda: trial(asked) and any((cache / "scratch").glob("*/events.jsonl")))
    process_tree.kill(trial(asked))
    found = asked.reply(number)["answer"]
    assert found["shortage"] == "the computer ran out of memory"
    assert "Gradient checkpointing" in [one["title"] for one in found["remedies"]]
    assert not (cache / "scratch").exists()


def test_the_command_measures_and_then_plans(cache: Path, tmp_path: Path, capfd) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(json.dumps(demo(**{"training.batch_size": 32})), encoding="utf-8")
    assert __main__.main(["plan", str(spec), "--measure"]) == 0
    told = capfd.readouterr()
    assert "measuring: training" in told.err
    assert "measured on this machine just now" in told.out
    assert __main__.main(["plan", str(spec), "--measure", "--set", "hardware.memory_limit=0.1"]) == 2
    assert "it needs about" in capfd.readouterr().err
