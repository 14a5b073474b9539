"""The embedded data."""

from collections import Counter

import pytest

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.sources.demo import Demo, Settings
from backend.data.sources.source import Reading


@pytest.fixture
def reading(tmp_path):
    return Reading(tmp_path / "cache")


def test_training_and_validation_are_there_without_a_name(reading):
    source, data = Demo(Settings()), DataSection(source="demo")
    sizes = {split: len(rows) for split in ("train", "validation") if (rows := source.read(split, data, reading))}
    assert sizes == {"train": 2400, "validation": 600}
    assert source.read("test", data, reading) is None


def test_both_labels_are_nearly_equally_frequent(reading):
    rows = Demo(Settings()).read("train", DataSection(), reading)
    assert Counter(rows.table["label"].to_pylist()) == {"positive": 1198, "negative": 1202}


def test_a_fraction_is_obeyed(reading):
    assert Demo(Settings()).read("validation", DataSection(validation=0.1), reading) is None


def test_an_unknown_name_is_refused_with_those_there_are(reading):
    with pytest.raises(InputError, match="no demo data 'weather'; there is sentiment"):
        Demo(Settings(name="weather")).read("train", DataSection(), reading)
