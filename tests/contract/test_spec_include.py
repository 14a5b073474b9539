"""A spec that includes others is theirs with its own words on top, and their paths stay where they were meant."""

from pathlib import Path

import pytest

from backend import registry
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.spec_include import NAMES_OF_SPLITS


def written(path: Path, text: str) -> Path:
    """A spec file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_own_words_stand_above_the_included(tmp_path: Path):
    written(tmp_path / "base.yaml", "training: {epochs: 3, batch_size: 8}\nname: base\n")
    own = written(tmp_path / "own.yaml", "include: base.yaml\ntraining: {epochs: 5}\n")
    assert spec_file.read(own) == {"training": {"epochs": 5, "batch_size": 8}, "name": "base"}


def test_the_later_of_several_stands_above_the_earlier(tmp_path: Path):
    written(tmp_path / "one.yaml", "training: {epochs: 1, seed: 1}\n")
    written(tmp_path / "two.yaml", "training: {epochs: 2}\n")
    own = written(tmp_path / "own.yaml", "include: [one.yaml, two.yaml]\n")
    assert spec_file.read(own) == {"training": {"epochs": 2, "seed": 1}}


def test_null_takes_an_included_mapping_away(tmp_path: Path):
    written(tmp_path / "base.yaml", "adapter: {type: lora}\n")
    assert spec_file.read(written(tmp_path / "own.yaml", "include: base.yaml\nadapter: null\n")) == {"adapter": None}


def test_lists_are_replaced_and_not_joined(tmp_path: Path):
    written(tmp_path / "base.yaml", "data: {train: [a.csv, b.csv]}\n")
    own = written(tmp_path / "own.yaml", "include: base.yaml\ndata: {train: [c.csv]}\n")
    assert spec_file.read(own) == {"data": {"train": ["c.csv"]}}


def test_paths_of_another_folder_are_taken_from_there(tmp_path: Path):
    written(tmp_path / "shared" / "base.yaml", "data: {train: '*.csv', validation: 0.1}\nmodel: {name_or_path: tiny}\n")
    (tmp_path / "shared" / "tiny").mkdir()
    assert spec_file.read(written(tmp_path / "own.yaml", "include: shared/base.yaml\n")) == {
        "data": {"train": str(tmp_path / "shared" / "*.csv"), "validation": 0.1},
        "model": {"name_or_path": str(tmp_path / "shared" / "tiny")},
    }


def test_names_of_the_hub_are_no_paths(tmp_path: Path):
    text = "data: {source: hub, name: glue, train: train}\nmodel: {name_or_path: bert-base-cased}\n"
    written(tmp_path / "shared" / "base.yaml", text)
    assert spec_file.read(written(tmp_path / "own.yaml", "include: shared/base.yaml\n")) == spec_file.parse(text)


def test_a_preset_is_included_by_name(tmp_path: Path):
    read = spec_file.read(written(tmp_path / "own.yaml", "include: preset:quick-classifier\ntraining: {epochs: 1}\n"))
    assert (read["task"]["type"], read["training"]["epochs"], read["training"]["batch_size"]) == (
        "text_classification", 1, 16,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("include", "sentence"),
    [
        ("own.yaml", "includes itself"),
        ("gone.yaml", "there is no such spec file"),
        ("preset:gone", "there is no preset 'gone'; choose one of .*quick-classifier"),
        ("[1]", "include is the name of a spec file"),
    ],
)
def test_a_wrong_include_is_one_sentence(tmp_path: Path, include: str, sentence: str):
    own = written(tmp_path / "own.yaml", f"include: {include}\n")
    with pytest.raises(InputError, match=sentence):
        spec_file.read(own)


def test_names_of_splits_in_a_folder_are_no_paths(tmp_path: Path):
    (tmp_path / "shared" / "glue").mkdir(parents=True)
    written(tmp_path / "shared" / "base.yaml", "data: {source: glue, folder: glue, task: rte, validation: dev}\n")
    assert spec_file.read(written(tmp_path / "own.yaml", "include: shared/base.yaml\n"))["data"] == {
        "source": "glue", "folder": str(tmp_path / "shared" / "glue"), "task": "rte", "validation": "dev",
    }  # fmt: skip


def test_sources_whose_splits_are_names_are_known():
    sources = registry.all_of("source")
    assert set(NAMES_OF_SPLITS) == {name for name, kind in sources.items() if "train" not in kind.path_fields}
