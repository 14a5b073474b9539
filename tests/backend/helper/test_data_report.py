"""Tests that the window's question about data is answered as the command line answers it, with progress."""

import time
from pathlib import Path

from backend.contract.rpc.queries import Progress
from backend.helper.queries.data import QUERIES

REPORT = next(query.answer for query in QUERIES if query.name == "data_report")


def test_section_of_data_is_enough(tmp_path: Path):
    path = tmp_path / "dev.csv"
    for one in (tmp_path / "reviews.csv", path):
        one.write_text("text,label\ngood,yes\nbad,no\ngood,yes\n", encoding="utf-8")
    told: list[Progress] = []

    section = {"source": "files", "train": "reviews.csv", "validation": str(path)}
    found = REPORT({"data": section, "task": "text_classification", "folder": str(tmp_path)}, told.append)

    assert found.splits["train"].duplicates == 1
    assert found.splits["validation"].in_train == 3
    assert told[-1].total == 3


def test_time_grows_with_the_columns_and_no_faster(tmp_path: Path):
    def seconds(count: int) -> float:
        path = tmp_path / f"{count}.csv"
        path.write_text("".join(f"{','.join(f'{row}{one}' for one in range(count))}\n" for row in "cxy"))
        begin = time.process_time()
        REPORT({"data": {"source": "files", "train": str(path)}}, lambda progress: None)
        return time.process_time() - begin

    few = min(seconds(500) for _ in range(3))
    assert seconds(4000) < 20 * few, "8 times as many columns"
