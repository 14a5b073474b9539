"""Cells of a vocabulary are read from Arrow files that are mapped."""

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from app.services.vocabulary_rows import VocabularyFolder, VocabularyRows, read_numbers, write_numbers

COLUMNS = {
    "id": pa.array([0, 3, 9], pa.int32()),
    "piece": pa.array(["12,5", "東", None]),
    "text": pa.array([" a", "東", None]),
    "rank": pa.array([12345, None, 1], pa.int32()),
}


@pytest.fixture
def folder() -> VocabularyFolder:
    made = VocabularyFolder()
    table = pa.table(COLUMNS)
    with pa.OSFile(str(made.path / "pieces.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return made


@pytest.fixture
def rows(folder: VocabularyFolder) -> VocabularyRows:
    return VocabularyRows(folder, "pieces")


def test_cells_are_those_that_were_written(rows: VocabularyRows):
    assert (rows.row_count, rows.columns) == (3, list(COLUMNS))
    assert [rows.cell(row, 1) for row in range(3)] == ["12,5", "東", None]


def test_a_german_window_copies_numbers_with_a_point_and_pieces_as_they_are(german, rows: VocabularyRows):
    assert [rows.copy_value(0, column) for column in range(4)] == ["0", "12,5", "·a", "12345"]


def test_spaces_are_visible_and_large_numbers_grouped(rows: VocabularyRows):
    assert [rows.cell(row, 2) for row in range(3)] == ["·a", "東", ""]
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
