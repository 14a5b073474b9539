"""What a start does once: it parses and validates the spec, fits the task and hashes a checkpoint."""

import hashlib
import json
import os
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from backend.commands import new_run
from backend.contract import spec_file
from backend.contract.run.events import DataLoaded, Warned
from backend.contract.run.folder import RunFolder
from backend.contract.spec import RunSpec
from backend.preflight import task_facts
from backend.preflight.datasets import load_splits
from backend.preflight.resolve import read_run, read_spec
from backend.tasks.text_classification import TASK
from backend.training import loop
from backend.training.event_log import read_events
from tests.backend.training.test_evaluations import run_folder
from tests.in_process import call

ASKED = Namespace(run_folder=None, convert_weights=False, trust_remote_code=False)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[Any]:
    """How often what costs something was done: `parse` of a spec file, `validate`, `fit`, and each file that was hashed."""
    found: Counter[Any] = Counter()
    parse, validate, fit, digest = spec_file.parse, RunSpec.model_validate, TASK.fit, hashlib.file_digest

    def count_parse(text: str, name: str = "spec") -> Any:
        found["parse"] += not name.startswith("--set")
        return parse(text, name)

    def count_validate(values: Any) -> RunSpec:
        found["validate"] += 1
        return validate(values)

    def count_fit(*arguments: Any) -> Any:
        found["fit"] += 1
        return fit(*arguments)

    def count_hash(file: Any, kind: Any) -> Any:
        found[os.fstat(file.fileno()).st_ino] += 1
        return digest(file, kind)

    monkeypatch.setattr(spec_file, "parse", count_parse)
    monkeypatch.setattr(RunSpec, "model_validate", count_validate)
    monkeypatch.setattr(TASK, "fit", count_fit)
    monkeypatch.setattr(hashlib, "file_digest", count_hash)
    return found


@pytest.fixture
def written(tmp_path: Path) -> RunFolder:
    """A run of one step, as `burnish train` writes it."""
    spec = run_folder(tmp_path, training={"max_steps": 1, "checkpoint_every": "never"}).spec
    return new_run.write_run(new_run.prepare(read_spec(spec), ASKED), tmp_path / "run")


def test_the_command_and_its_engine_parse_once_each_and_fit_once(tmp_path: Path, counts: Counter[Any]) -> None:
    spec = run_folder(tmp_path, training={"max_steps": 1, "checkpoint_every": "never"}).spec
    run = RunFolder(tmp_path / "run")
    counts.clear()
    arguments = ["train", str(spec), "--run-folder", str(run.path), "--set", "training.seed=7"]
    assert call(arguments, tmp_path, os.environ).returncode == 0
    assert (counts["parse"], counts["validate"], counts["fit"]) == (2, 2, 1)


@pytest.mark.slow
def test_the_engine_parses_once_and_takes_the_facts_of_the_command(written: RunFolder, counts: Counter[Any]) -> None:
    assert loop.run(written) == 0
    assert (counts["parse"], counts["validate"], counts["fit"]) == (1, 1, 0)
    labels = [event.labels for event in read_events(written.events) if isinstance(event, DataLoaded)]
    assert labels  # with the facts the rows were encoded
    assert [event for event in read_events(written.events) if isinstance(event, Warned) and event.code == "data"] == []


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: {**kept, "key": "of other rows"},
        lambda kept: {**kept, "facts": {"labels": [1, 2]}},
        lambda kept: {**kept, "facts": {}},
        lambda kept: [kept],
        lambda kept: {"key": 1},
    ],
    ids=["different rows", "labels that are none", "no labels", "a list", "no facts"],
)
def test_facts_of_a_stranger_that_do_not_fit_are_fitted_anew(written: RunFolder, counts: Counter[Any], change) -> None:
    spec, own = read_run(written), task_facts.read_kept(written)
    written.facts.write_text(json.dumps(change(json.loads(written.facts.read_bytes()))), encoding="utf-8")
    found = load_splits(spec, Path(spec.model.name_or_path), kept=task_facts.read_kept(written))
    assert (counts["fit"], found.fitted) == (1, own)


def test_facts_behind_a_link_are_not_read(written: RunFolder, tmp_path: Path) -> None:
    elsewhere = written.facts.rename(tmp_path / "elsewhere.json")
    written.facts.symlink_to(elsewhere)
    assert task_facts.read_kept(written) is None


def test_the_engine_writes_facts_where_there_are_none(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, training={"max_steps": 1, "checkpoint_every": "never"})
    assert loop.run(folder) == 0
    assert task_facts.read_kept(folder) is not None


@pytest.mark.slow
def test_a_checkpoint_is_hashed_once_at_a_resume(tmp_path: Path, counts: Counter[Any]) -> None:
    folder = run_folder(
        tmp_path,
        training={"max_steps": 2, "checkpoint_every": 1, "learning_rate": 1e-12},
        evaluation={"every": 1, "best_metric": "accuracy"},  # which does not change: the first step stays the best
    )
    assert loop.run(folder) == 0
    counts.clear()
    assert loop.run(folder) == 0
    files = [path for path in folder.checkpoint(2).rglob("*") if path.is_file() and path.name != "checkpoint.json"]
    assert files
    assert [counts[path.stat().st_ino] for path in files] == [1] * len(files)
