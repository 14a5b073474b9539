"""Tokenizing without training: a second time costs nothing, and an end in the middle leaves nothing."""

import json
from pathlib import Path

import numpy as np
import pytest

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.spec import RunSpec
from backend.inspect.pretokenize import prepare
from backend.preflight.datasets import ignore_progress
from backend.preflight.resolve import resolve

NER = Path(__file__).parents[2] / "data" / "ner"


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunSpec:
    monkeypatch.setenv("BURNISH_CACHE", str(tmp_path / "cache"))
    values = {
        "task": {"type": "token_classification"},
        "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
        "data": {"source": "conll", "train": "train.conll", "validation": "validation.conll"},
    }
    return resolve(values, NER)


def test_second_time_is_cached_and_another_length_is_not(spec: RunSpec):
    first, again = (prepare(spec, lambda name: ignore_progress) for _ in range(2))
    other = prepare(spec.model_copy(update={"task": {**spec.task, "max_length": 16}}), lambda name: ignore_progress)
    assert [one.splits["train"].cached for one in (first, again, other)] == [False, True, False]
    assert other.splits["train"].features > first.splits["train"].features == 60


def test_another_way_to_decode_needs_no_new_features(spec: RunSpec):
    prepare(spec, lambda name: ignore_progress)
    changed = spec.model_copy(update={"task": {**spec.task, "written_scheme": "IOBES"}})
    assert prepare(changed, lambda name: ignore_progress).splits["train"].cached


def test_arrays_and_what_they_mean_are_written(spec: RunSpec, tmp_path: Path):
    found = prepare(spec, lambda name: ignore_progress, tmp_path / "arrays")
    note = json.loads((tmp_path / "arrays" / "features.json").read_text(encoding="utf-8"))
    labels = np.load(tmp_path / "arrays" / "train_labels.npy")
    assert len(labels) == found.splits["train"].features
    assert note["facts"]["labels"][labels[labels >= 0].min()].startswith("B-")
    assert tmp_path / "arrays" / "validation_input_ids.npy" in found.files


@pytest.mark.parametrize("stage", ["tokenizing train", "writing validation"])
def test_interruption_leaves_nothing_half_written(spec: RunSpec, tmp_path: Path, stage: str):
    def interrupted(done: int, total: int, unit: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(spec, lambda name: interrupted if name == stage else ignore_progress, tmp_path / "arrays")
    left = [path.name for path in tmp_path.iterdir() if path.name != "cache"]
    assert left == []
    assert list(tmp_path.glob("cache/features/*.part")) == []


def test_arrays_that_lie_there_are_not_overwritten(spec: RunSpec, tmp_path: Path):
    kept = tmp_path / "arrays" / "train_labels.npy"
    kept.parent.mkdir()
    kept.write_bytes(b"of another day")
    with pytest.raises(InputError, match=r"--export: .*arrays already contains \.npy files; choose another folder"):
        prepare(spec, lambda name: ignore_progress, kept.parent)
    assert kept.read_bytes() == b"of another day"


def test_export_into_a_file_is_refused(spec: RunSpec, tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--export: .* must be a folder"):
        prepare(spec, lambda name: ignore_progress, tmp_path / "file")
