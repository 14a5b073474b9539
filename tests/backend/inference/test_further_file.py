"""Predictions of one more file never take the place of others."""

import os
from pathlib import Path

from backend.contract.run.folder import RunFolder
from backend.inference.further_file import free_name


def test_names_are_plain_and_never_taken_twice(tmp_path: Path):
    folder = RunFolder(tmp_path)
    assert free_name(folder, Path("/data/My reviews (new).csv.gz")) == "My-reviews-new"
    folder.predictions("reviews").touch()
    folder.predictions("reviews-2", "parquet").touch()
    assert free_name(folder, Path("reviews.csv")) == "reviews-3"
    assert free_name(folder, Path("test.csv")) == "test-2"
    assert free_name(folder, Path("???.csv")) == "file"


def test_what_was_predicted_is_listed_validation_first_then_the_newest(tmp_path: Path):
    folder = RunFolder(tmp_path)
    for number, name in enumerate(("old", "validation", "new", "test")):
        path = folder.predictions(name, "parquet")
        path.touch()
        os.utime(path, (number, number))
    (tmp_path / "predictions_only-csv.csv").touch()
    assert folder.predicted() == ["validation", "test", "new", "old"]
