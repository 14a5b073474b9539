"""Paging through a predictions file."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from app.services import table_pages
from app.services.table_pages import TablePages
from backend.contract.arrow_numbers import numbers

ROWS = 1000


@pytest.fixture
def pages(tmp_path: Path) -> TablePages:
    table = pa.table(
        {
            "text": [f"Sentence {number}" for number in range(ROWS)],
            "prediction": ["good" if number % 2 else "bad" for number in range(ROWS)],
            "actual": ["good" if number % 4 else None for number in range(ROWS)],
            "probability_good": [number / ROWS for number in range(ROWS)],
        }
    )
    parquet.write_table(table, tmp_path / "predictions.parquet", row_group_size=100)
    return TablePages(tmp_path / "predictions.parquet")


def test_cells_of_every_row_group(pages):
    assert (pages.row_count, pages.columns[0]) == (ROWS, "text")
    assert [pages.cell(row, 0) for row in (0, 99, 100, 999)] == [
        "Sentence 0",
        "Sentence 99",
        "Sentence 100",
        "Sentence 999",
    ]


def test_a_row_by_name(pages):
    assert pages.row(4) == {"text": "Sentence 4", "prediction": "bad", "actual": None, "probability_good": 0.004}


def test_only_some_row_groups_stay_in_memory(pages):
    for row in range(0, ROWS, 50):
        pages.cell(row, 0)
    assert len(pages._pages) == table_pages.PAGES_KEPT


def test_a_row_beyond_the_end_is_refused(pages):
    with pytest.raises(IndexError):
        pages.cell(ROWS, 0)


def test_wrong_rows_leave_out_those_without_an_actual_value(pages):
    wrong = pages.filter(right=False)
    assert wrong[:3].tolist() == [2, 6, 10]


def test_right_rows(pages):
    assert pages.filter(right=True)[:3].tolist() == [1, 3, 5]


def test_text_is_searched_in_any_case(pages):
    assert pages.filter(text="sentence 99").tolist() == [99, *range(990, 1000)]


def test_filter_and_sort_together(pages):
    rows = pages.filter(right=True, sort_by="probability_good", descending=True)
    assert rows[:2].tolist() == [999, 997]


def test_an_unknown_column_is_named(pages):
    with pytest.raises(ValueError, match="no_such"):
        pages.filter(sort_by="no_such")


@pytest.mark.parametrize("kind", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_index_file_is_read_and_deleted(pages, tmp_path: Path, kind):
    table = pa.table({"row": np.array([5, 3, 9], dtype=np.int64)})
    with kind(str(tmp_path / "rows.arrow"), table.schema) as writer:
        writer.write_table(table)
    assert pages.read_indices(tmp_path / "rows.arrow").tolist() == [5, 3, 9]
    assert not (tmp_path / "rows.arrow").exists()


def test_mapped_pages_have_the_same_cells_and_what_is_derived(pages, tmp_path: Path):
    arrow = tmp_path / "pages.arrow"
    whole = parquet.read_table(pages.path).append_column("confidence", pages.read(["probability_good"]).column(0))
    with pa.ipc.new_file(str(arrow), whole.schema) as writer:
        writer.write_table(whole.combine_chunks(), max_chunksize=100)
    rows = [0, 99, 100, 101, 999, 5]
    plain = pages.cells(rows, "text")
    pages.map(arrow)
    assert pages.is_mapped
    assert pages.cells(rows, "text") == plain == [f"Sentence {row}" for row in rows]
    assert pages.cells(list(range(95, 305)), "confidence") == [row / ROWS for row in range(95, 305)]


def test_pages_of_another_file_are_refused(pages, tmp_path: Path):
    arrow = tmp_path / "pages.arrow"
    table = pa.table({"text": ["a"]})
    with pa.ipc.new_file(str(arrow), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(ValueError, match="has changed"):
        pages.map(arrow)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, 3], pa.int64()),
        pa.array([1, 2, 3], pa.uint64())[1:],
        pa.array([True, None, True, False] * 5)[3:],
        pa.chunked_array([[1.5, None], [2.5]]),
    ],
)
def test_plain_numbers_are_those_of_pyarrow(column):
    wanted = [False if value is None and column.type == pa.bool_() else value for value in column.to_pylist()]
    found = [None if value != value else value for value in numbers(column).tolist()]
    assert found == wanted
