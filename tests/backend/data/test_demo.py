"""The embedded data."""

from collections import Counter

import pytest

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.sources.demo import Demo, Settings
from backend.data.sources.source import ReadOptions


@pytest.fixture
def reading(tmp_path):
    return ReadOptions(tmp_path / "cache")


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("sentiment", (2400, 600)), ("austen", (65094, 8328)), ("eng-spa", (30213, 871))],
)
def test_training_and_validation_are_there_without_a_name(reading, name, sizes):
    source, data = Demo(Settings(name=name)), DataSection(source="demo")
    train, validation = (source.read(split, data, reading) for split in ("train", "validation"))
    assert (len(train), len(validation)) == sizes
    assert source.read("test", data, reading) is None


def test_the_novels_are_running_text(reading):
    assert Demo(Settings(name="austen")).read("validation", DataSection(), reading).continuous


def test_a_verse_stands_beside_its_translation(reading):
    row = Demo(Settings(name="eng-spa")).read("train", DataSection(), reading).table.slice(0, 1).to_pylist()[0]
    assert (row["source"][:16], row["target"][:14]) == ("In the beginning", "EN el principi")


def test_both_labels_are_nearly_equally_frequent(reading):
    rows = Demo(Settings()).read("train", DataSection(), reading)
    assert Counter(rows.table["label"].to_pylist()) == {"positive": 1198, "negative": 1202}


def test_a_fraction_is_obeyed(reading):
    assert Demo(Settings()).read("validation", DataSection(validation=0.1), reading) is None


def test_an_unknown_name_is_refused_with_those_there_are(reading):
    with pytest.raises(InputError, match="no demo dataset 'weather'; choose one of sentiment, austen, eng-spa"):
        Demo(Settings(name="weather")).read("train", DataSection(), reading)
