"""The file that GLUE's server takes."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from backend.data.rows import Rows
from backend.inference import glue_file
from backend.tasks.task import Predictions


def rows_of(files: tuple[str, ...] = ("test.tsv",), **columns: list) -> Rows:
    count = len(next(iter(columns.values())))
    file_index = np.array([number * len(files) // count for number in range(count)], np.int32)
    return Rows(pa.table(columns), files, file_index, np.arange(count) + 2, "fingerprint")


def predictions_of(*answers: object) -> Predictions:
    return Predictions(pa.table({"prediction": pa.array(answers), "actual": pa.nulls(len(answers))}))


def test_labels_stand_under_their_names_beside_the_files_own_index(tmp_path: Path):
    rows, predictions = rows_of(index=["7", "9"]), predictions_of("entailment", "not_entailment")
    glue_file.write(rows, predictions, tmp_path / "RTE.tsv")
    assert (tmp_path / "RTE.tsv").read_bytes() == b"index\tprediction\n7\tentailment\n9\tnot_entailment\n"


def test_scores_have_three_decimals(tmp_path: Path):
    scores = Predictions(pa.table({"prediction": pa.array([3.14159, -0.5], pa.float32()), "actual": pa.nulls(2)}))
    glue_file.write(rows_of(id=["0", "1"]), scores, tmp_path / "STS-B.tsv")
    assert (tmp_path / "STS-B.tsv").read_text() == "index\tprediction\n0\t3.142\n1\t-0.500\n"


def test_rows_without_an_index_are_numbered_from_zero(tmp_path: Path):
    glue_file.write(rows_of(text=["a", "b"]), predictions_of("1", "0"), tmp_path / "CoLA.tsv")
    assert (tmp_path / "CoLA.tsv").read_text() == "index\tprediction\n0\t1\n1\t0\n"


def test_each_of_several_files_gets_its_own(tmp_path: Path):
    rows = rows_of(("test_matched.tsv", "test_mismatched.tsv"), index=["0", "1", "5", "6"])
    written = glue_file.write(rows, predictions_of("a", "b", "c", "d"), tmp_path / "MNLI.tsv")
    assert [path.name for path in written] == ["MNLI_test_matched.tsv", "MNLI_test_mismatched.tsv"]
    assert written[1].read_text() == "index\tprediction\n5\tc\n6\td\n"


def test_a_row_that_could_not_be_used_leaves_its_number_out(tmp_path: Path):
    rows = rows_of(text=["a", "", "c"]).without([(1, "no text")], "usable")
    glue_file.write(rows, predictions_of("1", "0"), tmp_path / "CoLA.tsv")
    assert (tmp_path / "CoLA.tsv").read_text() == "index\tprediction\n0\t1\n2\t0\n"
