"""Cells of a vocabulary are read from numpy files that are mapped."""

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app.services.vocabulary_rows import VocabularyFolder, VocabularyRows, read_numbers, write_numbers

COLUMNS = {"id": ["0", "3", "9"], "piece": ["Ġa", "東", "b"], "text": [" a", "東", ""], "rank": ["12345", "", "1"]}


@pytest.fixture
def folder() -> VocabularyFolder:
    made = VocabularyFolder()
    encoded = [cell.encode() for cells in COLUMNS.values() for cell in cells]
    ends = np.cumsum([0, *map(len, encoded)])
    np.save(made.path / "pieces.cells.npy", np.frombuffer(b"".join(encoded), np.uint8))
    np.save(made.path / "pieces.offsets.npy", np.stack([ends[start : start + 4] for start in range(0, 12, 3)]))
    return made


@pytest.fixture
def rows(folder: VocabularyFolder) -> VocabularyRows:
    return VocabularyRows(folder, "pieces", list(COLUMNS))


def test_cells_are_those_that_were_written(rows: VocabularyRows):
    assert rows.row_count == 3
    assert [[rows.raw(row, name) for row in range(3)] for name in COLUMNS] == list(COLUMNS.values())


def test_a_german_window_copies_numbers_with_a_point_and_pieces_as_they_are(german, rows: VocabularyRows, monkeypatch):
    monkeypatch.setattr(rows, "raw", lambda row, column: "12345" if column == "rank" else "3,5")
    assert [rows.copy_value(0, column) for column in range(4)] == ["3,5", "3,5", "3,5", "12345"]


def test_spaces_are_visible_and_large_numbers_grouped(rows: VocabularyRows):
    assert rows.cell(0, 2) == "·a"
    assert [rows.cell(row, 3) for row in range(3)] == ["12\u202f345", None, "1"]


def test_counts_are_one_more_column(rows: VocabularyRows, tmp_path: Path):
    np.save(tmp_path / "counts.npy", np.array([7, 0, 1234]))
    rows.set_counts(str(tmp_path / "counts.npy"))
    assert rows.columns[-1] == "frequency"
    assert [rows.cell(row, 4) for row in range(3)] == ["7", "0", "1\u202f234"]


def test_a_row_is_found_by_its_id(rows: VocabularyRows):
    assert [rows.row_of_id(number) for number in (0, 3, 9, 4, 10)] == [0, 1, 2, -1, -1]


def test_numbers_are_read_once(folder: VocabularyFolder):
    path = write_numbers(folder, np.array([2, 0]))
    assert read_numbers(path).tolist() == [2, 0]
    assert not Path(path).exists()


def test_the_folder_goes_when_nobody_holds_it():
    folder = VocabularyFolder()
    path = folder.path
    assert path.is_dir()
    del folder
    gc.collect()
    assert not path.exists()


def test_the_folder_goes_with_the_process():
    code = "from app.services.vocabulary_rows import VocabularyFolder; kept = VocabularyFolder(); print(kept.path)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not Path(done.stdout.strip()).exists()
