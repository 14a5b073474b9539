"""predictions.csv: the input's columns first, under their own names and in their order."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from backend.data.rows import Rows
from backend.inference.predictions_file import GROUP_ROWS, joined, write
from backend.tasks.task import Predictions


def rows_of(files: tuple[str, ...] = ("in.csv",), **columns: list) -> Rows:
    count = len(next(iter(columns.values())))
    return Rows(
        pa.table(columns), files, np.arange(count, dtype=np.int32) % len(files), np.arange(count) + 2, "fingerprint"
    )


def predictions(**columns: list) -> Predictions:
    return Predictions(pa.table(columns))


def test_clashing_names_are_told_apart():
    rows = rows_of(text=["a"], prediction=["old"], actual=["older"], probability_yes=["0.1"])
    table = joined(rows, predictions(prediction=["yes"], actual=["no"], probability_yes=[0.9]))
    assert table.column_names == [
        "text", "input_prediction", "input_actual", "probability_yes", "prediction", "actual",
        "predicted_probability_yes",
    ]  # fmt: skip


def test_actual_is_left_out_where_no_row_has_one():
    unknown = Predictions(pa.table({"prediction": ["x"], "actual": pa.nulls(1, pa.string())}))
    assert joined(rows_of(text=["a"]), unknown).column_names == ["text", "prediction"]


def test_several_files_are_named_in_the_first_column():
    table = joined(rows_of(("a.csv", "b.csv"), text=["x", "y"]), predictions(prediction=["p", "q"], actual=["p", "q"]))
    assert table["file"].to_pylist() == ["a.csv", "b.csv"]


def test_awkward_text_survives_the_csv(tmp_path: Path):
    texts = ['say "no", twice', "two\nlines", "=1+1", "ශ්‍රී ලංකාව", "", "None"]
    table = joined(rows_of(text=texts), predictions(prediction=texts, actual=texts))
    write(table, tmp_path / "predictions.csv")
    with (tmp_path / "predictions.csv").open(encoding="utf-8", newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == texts


def test_lists_become_json_in_the_csv(tmp_path: Path):
    write(joined(rows_of(tags=[["a", "b"]]), predictions(prediction=["p"], actual=["p"])), tmp_path / "predictions.csv")
    assert '"[""a"", ""b""]"' in (tmp_path / "predictions.csv").read_text()


def test_the_parquet_twin_comes_in_small_row_groups(tmp_path: Path):
    many = [str(number) for number in range(GROUP_ROWS + 1)]
    write(
        joined(rows_of(text=many), predictions(prediction=many, actual=many)),
        tmp_path / "p.csv",
        tmp_path / "p.parquet",
    )
    assert parquet.ParquetFile(tmp_path / "p.parquet").num_row_groups == 2
