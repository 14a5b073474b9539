"""XNLI: rows of one language out of files of many, under one set of names."""

import shutil
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.rows import Rows
from backend.data.sources.source import ReadOptions
from backend.data.sources.xnli import Settings, Source
from backend.preflight.datasets import choose_columns
from backend.tasks.text_classification import Settings as ClassificationSettings
from backend.tasks.text_classification import TextClassification

FOLDER = Path(__file__).parents[2] / "data" / "xnli"


def source(folder: Path = FOLDER, **settings: str) -> Source:
    return Source(Settings.model_validate({"folder": str(folder), "language": "de"} | settings))


def read(one: Source, split: str, cache: Path, **data: object) -> Rows:
    rows = one.read(split, DataSection.model_validate({"source": "xnli", **data}), ReadOptions(cache))
    assert rows is not None
    return rows


def test_only_rows_of_the_language_are_measured(tmp_path: Path):
    premises = read(source(), "validation", tmp_path).table["premise"].to_pylist()
    assert premises == ["Die Mühle steht still.", 'Alle "Gäste gingen.', "null"]


def test_rows_keep_their_lines_in_the_file_of_all_languages(tmp_path: Path):
    assert read(source(), "validation", tmp_path).lines.tolist() == [5, 6, 7]


def test_training_rows_can_be_of_another_language(tmp_path: Path):
    rows = read(source(train_language="en"), "train", tmp_path)
    assert rows.files == ("multinli.train.en.tsv",)
    assert len(rows) == 6


def test_training_rows_are_of_the_same_language_unless_said(tmp_path: Path):
    assert read(source(), "train", tmp_path).files == ("multinli.train.de.tsv",)


def test_training_and_evaluation_files_spell_labels_alike(tmp_path: Path):
    labels = [set(read(source(), split, tmp_path).table["label"].to_pylist()) for split in ("train", "validation")]
    assert labels == [{"contradiction", "entailment", "neutral"}] * 2


def test_columns_have_one_set_of_names_that_is_guessed(tmp_path: Path):
    task = TextClassification(ClassificationSettings())
    chosen = [choose_columns(task, {}, read(source(), split, tmp_path)) for split in ("train", "validation")]
    assert chosen == [{"text": "premise", "text_pair": "hypothesis", "label": "label"}] * 2


def test_test_rows_are_read_if_they_are_asked_for(tmp_path: Path):
    assert source().read("test", DataSection(source="xnli"), ReadOptions(tmp_path)) is None
    assert len(read(source(), "test", tmp_path, test="test")) == 3


def test_two_languages_are_not_taken_for_each_other_from_the_cache(tmp_path: Path):
    german, english = (read(source(language=code), "validation", tmp_path) for code in ("de", "en"))
    assert german.fingerprint != english.fingerprint
    assert german.table["premise"][0] != english.table["premise"][0]


def test_a_file_without_labels_is_read_to_predict(tmp_path: Path):
    (tmp_path / "own.tsv").write_text("premise\thypothesis\nEs ist spät.\tEs ist früh.\n", encoding="utf-8")
    rows = source().read_file(tmp_path / "own.tsv", DataSection(source="xnli"), ReadOptions(tmp_path / "cache"))
    assert rows.table.column_names == ["premise", "hypothesis"]


def test_a_language_that_the_file_lacks_is_answered_with_those_it_has(tmp_path: Path):
    with pytest.raises(
        InputError, match=r"xnli\.dev\.tsv has no rows in the language 'fr'; its languages are de, en, sw"
    ):
        read(source(language="fr"), "validation", tmp_path)


def test_a_missing_archive_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"data\.train: there is no multinli\.train\.sw\.tsv in .*XNLI-MT-1\.0\.zip"):
        read(source(language="sw"), "train", tmp_path)


def test_a_file_of_other_columns_is_refused(tmp_path: Path):
    folder = tmp_path / "xnli"
    shutil.copytree(FOLDER, folder)
    (folder / "XNLI-1.0" / "xnli.dev.tsv").write_text("a\tb\n1\t2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"data\.validation: xnli\.dev\.tsv is not an XNLI file"):
        read(source(folder), "validation", tmp_path / "cache")
