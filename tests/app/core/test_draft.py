"""The spec that is being edited, and the command that does the same."""

import shlex
import subprocess
from pathlib import Path

import pytest

from app.core.draft.draft import Draft, read_draft
from backend.contract import spec_file
from backend.contract.resources import resource


def test_a_change_shows_in_the_values():
    draft = Draft({"training": {"epochs": 3}})
    assert draft.set("training.epochs", 4)
    assert draft.set("task.type", "text_classification")
    assert draft.values()["training"] == {"epochs": 4}
    assert draft.values()["task"] == {"type": "text_classification"}


def test_setting_the_same_value_is_no_change():
    assert not Draft({"training": {"epochs": 3}}).set("training.epochs", 3)


def test_true_and_one_are_different_values():
    assert Draft({"model": {"trust_remote_code": 1}}).set("model.trust_remote_code", True)


def test_values_are_a_copy():
    draft = Draft({"training": {"epochs": 3}})
    draft.values()["training"]["epochs"] = 9
    assert draft.get("training.epochs") == 3


def test_a_default_is_read_but_not_written():
    draft = Draft({}, {"training": {"batch_size": 32}})
    assert draft.get("training.batch_size") == 32
    assert "training" not in draft.values()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("training.learning_rate", 3e-5),
        ("training.epochs", 4),
        ("task.labels", ["praise", "it's bad", "yes"]),
        ("evaluation.best_metric", "f1_macro"),
        ("evaluation.best_metric", None),
        ("model.trust_remote_code", True),
        ("name", "true"),
        ("name", "12"),
        ("data.train", "/data/my file; rm -rf $HOME.csv"),
        ("name", "naïve — 日本語"),
        ("hardware.memory_limit", 1e-7),
    ],
)
def test_the_command_carries_every_value_through_shell_and_yaml(tmp_path: Path, key: str, value: object):
    spec = tmp_path / "my spec.yaml"
    spec.write_text(spec_file.dump({"version": 1, "model": {"name_or_path": "m"}}))
    draft = read_draft(spec)
    draft.set(key, value)
    words = shlex.split(draft.command())
    assert words[:3] == ["burnish", "train", str(spec)]
    changed = spec_file.apply_changes(spec_file.read(Path(words[2])), words[4::2])
    inner: object = changed
    for name in key.split("."):
        assert isinstance(inner, dict)
        inner = inner[name]
    assert inner == value
    assert type(inner) is type(value)


def test_a_draft_without_a_file_brings_its_spec_along(tmp_path: Path):
    draft = Draft({"name": "it's me", "data": {"train": "/a b/c.csv"}, "training": {"learning_rate": 3e-5}})
    script = draft.command().replace("burnish train ", "echo ")
    printed = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert spec_file.read(tmp_path / printed.stdout.strip()) == draft.values()


def test_the_demo_spec_reads_with_absolute_paths():
    draft = read_draft(resource("demo", "sentiment.yaml"))
    assert Path(draft.get("data.train")).is_file()
    assert Path(draft.get("model.name_or_path")).is_dir()
    assert draft.get("data.test") is None


def test_a_hub_id_stays_a_hub_id(tmp_path: Path):
    spec = tmp_path / "spec.yaml"
    spec.write_text("model: {name_or_path: google/mt5-small}\n")
    assert read_draft(spec).get("model.name_or_path") == "google/mt5-small"
