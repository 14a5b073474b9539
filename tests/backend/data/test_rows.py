"""Rows: picking some, leaving some out, and where each stands."""

import numpy as np
import pyarrow as pa
import pytest

from backend.contract.places import cache_folder
from backend.data import rows as picking


@pytest.fixture
def rows(desk):
    return desk.read(desk.write("a.csv", "n,text\n" + "".join(f"{n},text of {n}\n" for n in range(30_000))))


@pytest.mark.parametrize(
    "indices",
    [[0], [], list(range(5000, 25_000)), list(range(0, 30_000, 7)), [29_999, 3, 8192, 3], [8191, 8192, 16_384]],
)
def test_picked_rows_are_those_rows_in_that_order(rows, indices):
    taken = rows.take(np.array(indices, dtype=np.int64), "new")
    assert taken.table["text"].to_pylist() == [f"text of {n}" for n in indices]
    assert [taken.place(row) for row in range(len(taken))] == [f"a.csv:{n + 2}" for n in indices]
    assert taken.fingerprint == "new"


def test_many_picked_rows_lie_on_disk_and_leave_no_file(rows, monkeypatch):
    monkeypatch.setattr(picking, "IN_MEMORY_BYTES", 1000)
    cache_folder().mkdir(parents=True, exist_ok=True)
    before = pa.total_allocated_bytes(), sorted(cache_folder().iterdir())
    taken = picking.pick(rows.table, np.arange(0, 30_000, 2))
    assert taken["n"].to_pylist() == [str(n) for n in range(0, 30_000, 2)]
    assert pa.total_allocated_bytes() - before[0] < 100_000
    assert sorted(cache_folder().iterdir()) == before[1]


def test_rows_left_out_are_told_after_those_skipped_in_reading(desk):
    rows = desk.read(desk.write("a.csv", "text,label\nx,1\nalone\n,2\ny,3\n"))
    left = rows.without([(1, "an empty text")], "left")
    assert left.table["text"].to_pylist() == ["x", "y"]
    assert [(one.place, one.reason) for one in left.skipped] == [
        ("a.csv:3", "1 cell, but the header has 2"),
        ("a.csv:4", "an empty text"),
    ]


def test_nothing_left_out_is_the_same_rows(rows):
    assert rows.without([], "other") is rows
