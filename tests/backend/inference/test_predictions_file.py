"""Predictions are written as people and programs read them: columns, names, the GLUE server's file."""

import csv
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from backend.contract.run.folder import RunFolder
from backend.data.rows import Rows
from backend.inference import predictions_file
from backend.inference.predictions_file import GROUP_ROWS, free_name, join_predictions, write
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
    table = join_predictions(rows, predictions(prediction=["yes"], actual=["no"], probability_yes=[0.9]))
    assert table.column_names == [
        "text", "input_prediction", "input_actual", "probability_yes", "prediction", "actual",
        "predicted_probability_yes",
    ]  # fmt: skip


def test_actual_is_left_out_where_no_row_has_one():
    unknown = Predictions(pa.table({"prediction": ["x"], "actual": pa.nulls(1, pa.string())}))
    assert join_predictions(rows_of(text=["a"]), unknown).column_names == ["text", "prediction"]


def test_several_files_are_named_in_the_first_column():
    table = join_predictions(
        rows_of(("a.csv", "b.csv"), text=["x", "y"]), predictions(prediction=["p", "q"], actual=["p", "q"])
    )
    assert table["file"].to_pylist() == ["a.csv", "b.csv"]


def test_awkward_text_survives_the_csv(tmp_path: Path):
    texts = ['say "no", twice', "two\nlines", "=1+1", "ශ්‍රී ලංකාව", "", "None"]
    table = join_predictions(rows_of(text=texts), predictions(prediction=texts, actual=texts))
    write(table, tmp_path / "predictions.csv")
    with (tmp_path / "predictions.csv").open(encoding="utf-8", newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == texts


def test_lists_become_json_in_the_csv(tmp_path: Path):
    write(
        join_predictions(rows_of(tags=[["a", "b"]]), predictions(prediction=["p"], actual=["p"])),
        tmp_path / "predictions.csv",
    )
    assert '"[""a"", ""b""]"' in (tmp_path / "predictions.csv").read_text()


def test_the_parquet_twin_comes_in_small_row_groups(tmp_path: Path):
    many = [str(number) for number in range(GROUP_ROWS + 1)]
    write(
        join_predictions(rows_of(text=many), predictions(prediction=many, actual=many)),
        tmp_path / "p.csv",
        tmp_path / "p.parquet",
    )
    assert parquet.ParquetFile(tmp_path / "p.parquet").num_row_groups == 2


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
    assert folder.prediction_names() == ["validation", "test", "new", "old"]


def glue_rows(files: tuple[str, ...] = ("test.tsv",), **columns: list) -> Rows:
    count = len(next(iter(columns.values())))
    file_index = np.array([number * len(files) // count for number in range(count)], np.int32)
    return Rows(pa.table(columns), files, file_index, np.arange(count) + 2, "fingerprint")


def predictions_of(*answers: object) -> Predictions:
    return Predictions(pa.table({"prediction": pa.array(answers), "actual": pa.nulls(len(answers))}))


def test_labels_stand_under_their_names_beside_the_files_own_index(tmp_path: Path):
    rows, predictions = glue_rows(index=["7", "9"]), predictions_of("entailment", "not_entailment")
    predictions_file.write_glue(rows, predictions, tmp_path / "RTE.tsv")
    assert (tmp_path / "RTE.tsv").read_bytes() == b"index\tprediction\n7\tentailment\n9\tnot_entailment\n"


def test_scores_have_three_decimals(tmp_path: Path):
    scores = Predictions(pa.table({"prediction": pa.array([3.14159, -0.5], pa.float32()), "actual": pa.nulls(2)}))
    predictions_file.write_glue(glue_rows(id=["0", "1"]), scores, tmp_path / "STS-B.tsv")
    assert (tmp_path / "STS-B.tsv").read_text() == "index\tprediction\n0\t3.142\n1\t-0.500\n"


def test_rows_without_an_index_are_numbered_from_zero(tmp_path: Path):
    predictions_file.write_glue(glue_rows(text=["a", "b"]), predictions_of("1", "0"), tmp_path / "CoLA.tsv")
    assert (tmp_path / "CoLA.tsv").read_text() == "index\tprediction\n0\t1\n1\t0\n"


def test_each_of_several_files_gets_its_own(tmp_path: Path):
    rows = glue_rows(("test_matched.tsv", "test_mismatched.tsv"), index=["0", "1", "5", "6"])
    written = predictions_file.write_glue(rows, predictions_of("a", "b", "c", "d"), tmp_path / "MNLI.tsv")
    assert [path.name for path in written] == ["MNLI_test_matched.tsv", "MNLI_test_mismatched.tsv"]
    assert written[1].read_text() == "index\tprediction\n5\tc\n6\td\n"


def test_a_row_that_could_not_be_used_leaves_its_number_out(tmp_path: Path):
    rows = glue_rows(text=["a", "", "c"]).without([(1, "no text")], "usable")
    predictions_file.write_glue(rows, predictions_of("1", "0"), tmp_path / "CoLA.tsv")
    assert (tmp_path / "CoLA.tsv").read_text() == "index\tprediction\n0\t1\n2\t0\n"
