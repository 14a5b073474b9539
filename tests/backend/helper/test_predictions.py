"""Tests that predictions are filtered, sorted and exported as people asked, and safely for spreadsheets."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from backend.contract.errors import InputError
from backend.helper.worker import QUERIES

FILTER, EXPORT, CONFUSION = (QUERIES[name].answer for name in ("filter_predictions", "export_predictions", "confusion"))


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Four predictions, one of them wrong, one without an actual value."""
    table = pa.table(
        {
            "text": ["=SUM(A1)", "Good, really", "bad", '"quoted"\nline'],
            "stars": [3, 5, 1, 4],
            "prediction": ["pos", "pos", "neg", "pos"],
            "actual": ["neg", "pos", "neg", None],
            "margin": [-0.5, 0.25, 1.0, 0.0],
            "n_best": [[1, 2], [3], [], None],
        }
    )
    path = tmp_path / "predictions.parquet"
    parquet.write_table(table, path)
    return str(path)


def rows(**arguments: object) -> list[int]:
    """The row numbers that `filter_predictions` finds."""
    answer = FILTER(arguments, lambda progress: None)
    with pa.memory_map(answer.arrow) as source:
        found = pa.ipc.open_file(source).read_all().column("row").to_pylist()
    Path(answer.arrow).unlink()
    assert answer.count == len(found)
    return found


def test_wrong_predictions_are_found(file: str) -> None:
    assert rows(parquet=file, right=False) == [0]


def test_right_predictions_are_found(file: str) -> None:
    assert rows(parquet=file, right=True) == [1, 2]


def test_text_is_looked_for_in_every_column_whatever_its_case(file: str) -> None:
    assert rows(parquet=file, text="GOOD") == [1]


def test_rows_are_sorted_and_filtered_together(file: str) -> None:
    assert rows(parquet=file, right=True, sort_by="stars") == [2, 1]
    assert rows(parquet=file, sort_by="stars", descending=True) == [1, 3, 0, 2]


def test_confidence_is_the_largest_probability(tmp_path: Path) -> None:
    path = tmp_path / "sure.parquet"
    parquet.write_table(pa.table({"probability_a": [0.4, 0.9, 0.2], "probability_b": [0.6, 0.1, 0.8]}), path)
    assert rows(parquet=str(path), sort_by="confidence") == [0, 2, 1]
    assert rows(parquet=str(path), sort_by="confidence", descending=True) == [1, 2, 0]


def test_unknown_column_is_named(file: str) -> None:
    with pytest.raises(InputError, match=r"'beauty' is not a column.*stars"):
        rows(parquet=file, sort_by="beauty")


def exported(file: str, tmp_path: Path, **arguments: object) -> bytes:
    """What `export_predictions` writes."""
    output = tmp_path / "out.csv"
    EXPORT({"parquet": file, "output": str(output), **arguments}, lambda progress: None)
    return output.read_bytes()


def test_export_reads_back_equal(file: str, tmp_path: Path) -> None:
    import csv
    import io

    found = list(csv.DictReader(io.StringIO(exported(file, tmp_path).decode(), newline="")))

    assert [row["text"] for row in found] == ["=SUM(A1)", "Good, really", "bad", '"quoted"\nline']
    assert [row["n_best"] for row in found] == ["[1, 2]", "[3]", "[]", ""]


def test_formulas_are_defused_and_numbers_are_not(file: str, tmp_path: Path) -> None:
    first = exported(file, tmp_path, defuse=True).decode().splitlines()[1]

    assert first.startswith('"\'=SUM(A1)",')
    assert ",-0.5," in first


def test_bom_is_written_when_asked(file: str, tmp_path: Path) -> None:
    assert exported(file, tmp_path, bom=True).startswith(b'\xef\xbb\xbf"text",')


def test_chosen_rows_are_exported_in_their_order(file: str, tmp_path: Path) -> None:
    content = exported(file, tmp_path, indices=[2, 1]).decode()

    assert [line.split(",")[0] for line in content.splitlines()[1:]] == ['"bad"', '"Good']


def test_rows_of_a_filter_are_exported(file: str, tmp_path: Path) -> None:
    found = FILTER({"parquet": file, "right": False}, lambda progress: None)

    assert len(exported(file, tmp_path, indices=found.arrow).splitlines()) == 2
    Path(found.arrow).unlink()


def test_missing_folder_leaves_nothing(file: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        EXPORT({"parquet": file, "output": str(tmp_path / "no" / "out.csv")}, lambda progress: None)


def test_rows_of_a_label_pair_are_found(file: str) -> None:
    assert rows(parquet=file, actual="neg", prediction="pos") == [0]
    assert rows(parquet=file, prediction="pos") == [0, 1, 3]


def test_numbers_are_sorted_by_their_error(tmp_path: Path) -> None:
    path = tmp_path / "numbers.parquet"
    parquet.write_table(pa.table({"prediction": [1.0, 5.0, 2.0], "actual": [1.5, 1.0, None]}), path)

    assert rows(parquet=str(path), sort_by="error", descending=True) == [1, 0, 2]


@pytest.mark.parametrize("tags", [["O B-PER", "O O", None], ["O B-PER", "B-PER O O", None]])
def test_sentences_are_sorted_by_their_wrong_tags(tmp_path: Path, tags: list[str]) -> None:
    path = tmp_path / "tags.parquet"
    predicted = ["O B-PER", *(["B-PER B-PER"] if len(tags[1]) == 3 else ["O O B-LOC"]), "O"]
    parquet.write_table(pa.table({"prediction": predicted, "actual": tags}), path)

    assert rows(parquet=str(path), sort_by="wrong_tags", descending=True) == [1, 0, 2]


def test_confusion_counts_rows_with_an_actual_value(file: str) -> None:
    found = CONFUSION({"parquet": file}, lambda progress: None)

    assert (found.labels, found.counts, found.left_out) == (["neg", "pos"], [[1, 1], [0, 1]], 0)


def test_confusion_leaves_rare_labels_out_and_says_how_many_rows(tmp_path: Path) -> None:
    path = tmp_path / "many.parquet"
    labels = [f"{number:03}" for number in range(120)]
    parquet.write_table(pa.table({"prediction": labels, "actual": labels}), path)

    found = CONFUSION({"parquet": str(path)}, lambda progress: None)

    assert (len(found.labels), found.left_out) == (100, 20)


def test_confusion_without_actual_values_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "unlabelled.parquet"
    parquet.write_table(pa.table({"prediction": ["a"]}), path)

    with pytest.raises(InputError, match="no 'actual' to compare with"):
        CONFUSION({"parquet": str(path)}, lambda progress: None)


@pytest.mark.parametrize(
    "name",
    [
        "filter_predictions", "export_predictions", "confusion", "prediction_statistics", "threshold_counts",
        "number_statistics", "entity_scores", "open_predictions",
    ],
)  # fmt: skip
@pytest.mark.parametrize("to", ["file", "/dev/zero", "pipe", "folder"])
def test_predictions_of_a_stranger_are_a_regular_file(tmp_path: Path, file: str, name: str, to: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    path = run / "predictions.parquet"
    if to == "pipe":
        os.mkfifo(path)
    elif to == "folder":
        path.mkdir()
    else:
        path.symlink_to(file if to == "file" else to)
    arguments = {"parquet": str(path), "output": str(tmp_path / "out.csv"), "label": "pos"}
    with pytest.raises(InputError, match=r"cannot be read: (it is a link|it is not a regular file|is a directory)"):
        QUERIES[name].answer(arguments, lambda progress: None)
