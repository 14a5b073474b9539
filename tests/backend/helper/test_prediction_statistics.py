"""What is said of all predictions together is what the definitions give, checked by hand and by scikit-learn."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from sklearn.metrics import f1_score, precision_score, recall_score

from backend.contract.errors import InputError
from backend.contract.rpc.predictions import SEPARATOR
from backend.helper.queries import predictions
from backend.helper.queries.derived_columns import apply_threshold
from backend.helper.queries.prediction_statistics import MAX_LABELS, spans
from backend.helper.worker import QUERIES
from backend.inference import predictions_file

LABELS = ["bad", "fine", "good"]
ROWS = 3000


def ask(query: str, **arguments: Any) -> Any:
    return QUERIES[query].answer(arguments, lambda progress: None)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Three labels with probabilities; every tenth row has no actual value."""
    rng = np.random.default_rng(1)
    chances = rng.dirichlet([0.7] * 3, ROWS)
    predicted = chances.argmax(axis=1)
    actual = np.where(rng.random(ROWS) < 0.7, predicted, rng.integers(0, 3, ROWS))
    names = [None if number % 10 == 9 else LABELS[one] for number, one in enumerate(actual)]
    return pa.table(
        {
            "text": [f"Text {number}, naïve café {'SOUP' if number % 7 == 0 else 'soups'}" for number in range(ROWS)],
            "n": pa.array(range(ROWS)),
            "prediction": [LABELS[one] for one in predicted],
            "actual": names,
            **{f"probability_{label}": chances[:, place] for place, label in enumerate(LABELS)},
        }
    )


@pytest.fixture(scope="module")
def file(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("statistics")
    predictions_file.write(table, folder / "predictions.csv", folder / "predictions.parquet")
    return str(folder / "predictions.parquet")


def rows(**arguments: Any) -> list[int]:
    answer = ask("filter_predictions", **arguments)
    with pa.memory_map(answer.arrow) as source:
        found = pa.ipc.open_file(source).read_all().column("row").to_pylist()
    Path(answer.arrow).unlink()
    return found


def test_scores_of_labels_are_those_of_scikit_learn(table: pa.Table, file: str):
    found = ask("prediction_statistics", parquet=file)
    known = table.filter(pa.compute.is_valid(table["actual"]))
    actual, predicted = known["actual"].to_pylist(), known["prediction"].to_pylist()
    own = {one.label: one for one in found.labels}
    for measure, name in ((precision_score, "precision"), (recall_score, "recall"), (f1_score, "f1")):
        for label, value in zip(LABELS, measure(actual, predicted, labels=LABELS, average=None), strict=True):
            assert getattr(own[label], name) == pytest.approx(value)
    assert found.macro_f1 == pytest.approx(f1_score(actual, predicted, average="macro"))
    assert (found.rows, found.right) == (2700, sum(a == b for a, b in zip(actual, predicted, strict=True)))


def test_without_actual_labels_the_predicted_ones_are_counted(tmp_path: Path):
    parquet.write_table(pa.table({"prediction": ["b", "a", None, "b"]}), tmp_path / "p.parquet")
    found = ask("prediction_statistics", parquet=str(tmp_path / "p.parquet"))
    assert [(one.label, one.predicted, one.f1) for one in found.labels] == [("b", 2, 0.0), ("a", 1, 0.0)]
    assert (found.rows, found.bins) == (3, [])


def test_rare_predicted_labels_are_left_out_but_counted(tmp_path: Path):
    labels = [f"label {number}" for number in range(MAX_LABELS + 20)]
    parquet.write_table(pa.table({"prediction": labels}), tmp_path / "p.parquet")
    found = ask("prediction_statistics", parquet=str(tmp_path / "p.parquet"))
    assert (len(found.labels), found.rows) == (MAX_LABELS, MAX_LABELS + 20)


def test_calibration_error_is_that_of_its_definition(tmp_path: Path):
    # Two rows at 0.95 of which one is right, two at 0.65 of which both are: (2·|0.5−0.95| + 2·|1−0.65|) / 4.
    chances = [0.95, 0.95, 0.65, 0.65]
    made = pa.table(
        {"prediction": ["a"] * 4, "actual": ["a", "b", "a", "a"], "probability_a": chances,
         "probability_b": [1 - one for one in chances]}
    )  # fmt: skip
    parquet.write_table(made, tmp_path / "p.parquet")
    found = ask("prediction_statistics", parquet=str(tmp_path / "p.parquet"))
    assert found.calibration_error == pytest.approx((2 * 0.45 + 2 * 0.35) / 4)
    assert [(one.low, one.count) for one in found.bins if one.count] == [(0.6, 2), (0.9, 2)]


def test_threshold_counts_are_what_counting_gives(table: pa.Table, file: str):
    found = ask("threshold_counts", parquet=file, label="good")
    chance, actual = np.array(table["probability_good"]), np.array(table["actual"].to_pylist(), dtype=object)
    known = np.array([one is not None for one in actual])
    for step in (0, 137, 500, 1000):
        chosen = known & (chance >= step / 1000)
        assert found.true_positives[step] == int((chosen & (actual == "good")).sum())
        assert found.false_positives[step] == int((chosen & (actual != "good")).sum())
    assert found.positives + found.negatives == 2700


def test_what_a_prediction_becomes_at_a_threshold_can_be_exported(table: pa.Table, file: str, tmp_path: Path):
    output = tmp_path / "out.parquet"
    ask(
        "export_predictions", parquet=file, output=str(output), format="parquet", columns=["prediction", "n"],
        threshold={"label": "good", "value": 0.2},
    )  # fmt: skip
    written = parquet.read_table(output)
    assert written.column_names == ["prediction", "prediction_at_threshold", "n"]
    chances = np.stack([np.array(table[f"probability_{label}"]) for label in LABELS], axis=1)
    others = np.where(chances[:, 0] >= chances[:, 1], "bad", "fine")
    assert written["prediction_at_threshold"].to_pylist() == np.where(chances[:, 2] >= 0.2, "good", others).tolist()


def test_the_whole_csv_is_the_run_s_own_to_the_byte(file: str, tmp_path: Path):
    ask("export_predictions", parquet=file, output=str(tmp_path / "whole.csv"))
    assert (tmp_path / "whole.csv").read_bytes() == Path(file).with_suffix(".csv").read_bytes()


def test_conditions_of_columns_hold_together(table: pa.Table, file: str):
    conditions = [{"column": "confidence", "is": "above", "value": 0.5}, {"column": "n", "is": "at_most", "value": 99}]
    wanted = [
        n for n in range(100) if max(table[f"probability_{label}"][n].as_py() for label in LABELS) > 0.5
    ]  # fmt: skip
    assert rows(parquet=file, conditions=conditions) == wanted


def test_rows_without_a_value_can_be_found(file: str):
    assert rows(parquet=file, conditions=[{"column": "actual", "is": "is", "value": None}]) == list(range(9, ROWS, 10))


def test_whole_words_case_and_patterns_narrow_a_text(file: str):
    sevenths = list(range(0, ROWS, 7))
    assert rows(parquet=file, text="soup", words=True) == sevenths
    assert rows(parquet=file, text="SOUP", case=True, text_column="text") == sevenths
    assert rows(parquet=file, text="na.ve CAFÉ soups$", regex=True, sort_by="n", descending=True)[:2] == [2999, 2998]
    assert rows(parquet=file, text="fine", text_column="text") == []


def test_what_is_no_pattern_is_said(file: str):
    with pytest.raises(InputError, match=r"\( is not a valid regular expression"):
        rows(parquet=file, text="(", regex=True)


def test_a_large_file_answers_from_its_pages_as_a_small_one(file: str, monkeypatch, tmp_path: Path):
    asked = {"right": False, "text": "soup", "words": True, "sort_by": "confidence", "descending": True}
    plain = rows(parquet=file, **asked)
    monkeypatch.setenv("BURNISH_CACHE", str(tmp_path))
    monkeypatch.setattr(predictions, "SMALL", 10)
    assert ask("open_predictions", parquet=file).rows == ROWS
    assert len(list((tmp_path / "pages").glob("*.arrow"))) == 1
    assert rows(parquet=file, **asked) == plain
    assert len(plain) > 20


def test_numbers_have_their_correlation_and_error(tmp_path: Path):
    made = pa.table({"prediction": [1.0, 2.0, 3.5, 4.0], "actual": [1.0, 2.0, 3.0, None]})
    parquet.write_table(made, tmp_path / "n.parquet")
    found = ask("number_statistics", parquet=str(tmp_path / "n.parquet"))
    assert (found.rows, found.spearman) == (3, pytest.approx(1.0))
    assert found.pearson == pytest.approx(np.corrcoef([1, 2, 3.5], [1, 2, 3])[0, 1])
    assert (found.mean_absolute_error, found.root_mean_squared_error) == (pytest.approx(0.5 / 3), pytest.approx((0.25 / 3) ** 0.5))  # fmt: skip
    assert [(one.row, one.actual, one.predicted) for one in found.points][-1] == (2, 3.0, 3.5)


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("B-PER I-PER O B-LOC B-LOC", {("PER", 0, 2), ("LOC", 3, 4), ("LOC", 4, 5)}),
        ("I-PER I-PER I-LOC O", {("PER", 0, 2), ("LOC", 2, 3)}),
        ("B-ORG I-ORG E-ORG S-PER", {("ORG", 0, 3), ("PER", 3, 4)}),
        ("NOUN NOUN O", {("NOUN", 0, 1), ("NOUN", 1, 2)}),
        ("", set()),
    ],
)
def test_entities_are_cut_as_conlleval_cuts_them(tags: str, found: set[tuple[str, int, int]]):
    assert spans(tags.split()) == found


def test_entities_are_counted_whole(tmp_path: Path):
    made = pa.table({"prediction": ["B-PER I-PER O", "B-LOC O"], "actual": ["B-PER I-PER O", "B-LOC I-LOC"]})
    parquet.write_table(made, tmp_path / "t.parquet")
    found = ask("entity_scores", parquet=str(tmp_path / "t.parquet"))
    assert {one.label: (one.precision, one.recall) for one in found.types} == {"PER": (1.0, 1.0), "LOC": (0.0, 0.0)}
    assert (found.rows, found.right, found.f1) == (2, 1, 0.5)


@pytest.fixture
def several(tmp_path: Path) -> str:
    """Predictions of rows with several labels, as a run writes them."""
    made = pa.table(
        {"prediction": ["a;b", "ab", "", "b"], "actual": ["a", "ab;b", "", None],
         "probability_a": [0.9, 0.2, 0.1, 0.1], "probability_ab": [0.2, 0.8, 0.1, 0.3], "probability_b": [0.7, 0.4, 0.3, 0.6]}
    )  # fmt: skip
    path = tmp_path / "predictions.parquet"
    parquet.write_table(made.replace_schema_metadata({SEPARATOR: ";"}), path)
    return str(path)


def test_each_of_several_labels_of_a_row_is_counted(several: str):
    found = ask("prediction_statistics", parquet=several)
    scores = {one.label: (one.precision, one.recall, one.actual, one.predicted) for one in found.labels}
    assert scores == {"a": (1.0, 1.0, 1, 1), "ab": (1.0, 1.0, 1, 1), "b": (0.0, 0.0, 1, 1)}
    assert (found.separator, found.rows, found.right) == (";", 3, 1)
    assert found.confusion.labels == ["a", "ab", "b"]
    assert found.confusion.counts == [[1, 0, 1], [0, 1, 0], [0, 1, 0]]
    assert sum(one.count for one in found.bins) == 9  # pairs of a known row and a label


def test_rows_are_found_by_one_of_their_labels(several: str):
    assert rows(parquet=several, actual="b") == [1]
    assert rows(parquet=several, prediction="b") == [0, 3]
    assert rows(parquet=several, actual="a") == [0]  # and not "ab"


def test_a_threshold_moves_one_label_of_several(several: str, tmp_path: Path):
    counts = ask("threshold_counts", parquet=several, label="b")
    assert (counts.positives, counts.negatives) == (1, 2)
    assert (counts.true_positives[400], counts.false_positives[400]) == (1, 1)
    moved = apply_threshold(parquet.read_table(several), "b", 0.35)
    assert moved["prediction_at_threshold"].to_pylist() == ["a;b", "ab;b", "", "b"]
