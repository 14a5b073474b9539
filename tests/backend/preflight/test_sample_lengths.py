"""What was tokenised for one plan is not tokenised again for the next, unless something that decides it has changed."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from transformers import AutoTokenizer

from backend.contract.resources import resource
from backend.contract.spec import RunSpec
from backend.data.rows import Rows
from backend.models.location import ModelLocation
from backend.preflight.datasets import ignore_progress, load_splits
from backend.preflight.resolve import resolve
from backend.preflight.sample_lengths import SAMPLE_ROWS, SampleLengths, measure, sample_rows


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model's folder whose files a test may change."""
    return shutil.copytree(resource("demo", "bert-tiny"), tmp_path / "model")


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders of which a tokenizer was opened, in an empty cache."""
    found: list[str] = []
    open_with_library = AutoTokenizer.from_pretrained

    def count(folder: str, **options: Any) -> Any:
        found.append(folder)
        return open_with_library(folder, **options)

    monkeypatch.setenv("BURNISH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", count)
    return found


def spec_of(model: Path, **task: Any) -> RunSpec:
    values = {
        "task": {"type": "text_classification", **task},
        "model": {"name_or_path": str(model)},
        "data": {"source": "demo", "name": "sentiment", "max_rows": 50},
    }
    return resolve(values, Path("/"))


def measured(spec: RunSpec) -> SampleLengths:
    folder = Path(spec.model.name_or_path)
    return measure(spec, load_splits(spec, folder), ModelLocation(folder, "folder", "", folder.name), ignore_progress)


def test_the_same_rows_are_tokenised_once(model: Path, opened: list[str]) -> None:
    first, second = measured(spec_of(model, max_length=8)), measured(spec_of(model, max_length=8))
    assert opened == [str(model)]
    assert np.array_equal(first.lengths, second.lengths)
    assert int(second.lengths.max()) == 8
    assert (second.per_row, second.cut, second.features) == (first.per_row, first.cut, first.features)
    assert second.made() == frozenset()


def test_another_limit_or_another_file_of_the_tokenizer_is_seen(model: Path, opened: list[str]) -> None:
    measured(spec_of(model, max_length=8))
    assert int(measured(spec_of(model, max_length=9)).lengths.max()) == 9
    words = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps({**words, "do_lower_case": False}))
    measured(spec_of(model, max_length=9))
    assert len(opened) == 3


def test_a_larger_sample_has_the_rows_of_the_usual_one_between_others():
    numbers = np.arange(30_000)
    rows = Rows(pa.table({"number": numbers}), ("",), np.zeros(30_000, np.int32), numbers, "")
    usual, larger = (sample_rows(rows, count).table["number"].to_numpy() for count in (64, 8_000))
    assert (len(usual), len(larger)) == (SAMPLE_ROWS, 5 * (SAMPLE_ROWS - 1) + 1)
    assert np.abs(larger[:: len(larger) // (SAMPLE_ROWS - 1)] - usual).max() <= 1  # rounded
    assert len(sample_rows(rows, 40_000)) == 30_000
