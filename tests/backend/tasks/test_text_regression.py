"""Scores of texts: numbers in, numbers out, and what is said of a score that is no number."""

import numpy as np
import pyarrow as pa
import pytest
from transformers import AutoTokenizer

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.data.rows import Rows
from backend.tasks.task import Predictions
from backend.tasks.text_regression import Settings, TextRegression

COLUMNS = {"text": "sentence1", "text_pair": "sentence2", "label": "score"}


def rows_of(*scores: object, **columns: list) -> Rows:
    texts = {name: [f"{name} {number}" for number in range(len(scores))] for name in ("sentence1", "sentence2")}
    table = pa.table(texts | columns | {"score": list(scores)})
    count = table.num_rows
    return Rows(table, ("stsb.tsv",), np.zeros(count, np.int32), np.arange(count) + 2, "fingerprint")


def task() -> TextRegression:
    return TextRegression(Settings())


def encoded(rows: Rows) -> pa.RecordBatch:
    tokenizer = AutoTokenizer.from_pretrained(resource("demo", "bert-tiny"))
    [batch] = task().encode(rows, COLUMNS, tokenizer, {"max_length": 16})
    return batch


def decoded(rows: Rows, *numbers: float) -> Predictions:
    outputs = {"logits": [np.array(number, np.float32) for number in numbers]}
    return task().decode(outputs, pa.table({}), rows, COLUMNS, {}, None)


def test_scores_become_float32_labels():
    labels = encoded(rows_of("5.000", "0.25"))["labels"]
    assert (labels.type, labels.to_pylist()) == (pa.float32(), [5.0, 0.25])


def test_an_unknown_score_is_nan_for_the_engine():
    assert np.isnan(encoded(rows_of("", "1"))["labels"].to_numpy()).tolist() == [True, False]


def test_rows_without_a_column_of_scores_are_encoded_as_unknown():
    rows = rows_of("1", "2")
    bare = Rows(rows.table.drop_columns(["score"]), rows.files, rows.file_index, rows.lines, "bare")
    assert np.isnan(encoded(bare)["labels"].to_numpy()).all()


def test_both_texts_of_a_pair_reach_the_model():
    batch = encoded(rows_of("1"))
    assert sum(batch["token_type_ids"][0].as_py()) == 4  # sentence, ##2, 0, [SEP]


def test_predictions_are_the_numbers_and_never_a_class():
    predictions = decoded(rows_of("5", "0", "2.5"), 3.25, -0.5, 0.125)
    assert predictions.table["prediction"].to_pylist() == [3.25, -0.5, 0.125]


def test_one_row_alone_keeps_its_number():
    assert decoded(rows_of("5"), 3.25).table["prediction"].to_pylist() == [3.25]


def test_outputs_of_one_column_are_not_spread_over_all_rows():
    outputs = {"logits": [np.array([1.0], np.float32), np.array([3.0], np.float32)]}
    predictions = task().decode(outputs, pa.table({}), rows_of("1", "2"), COLUMNS, {}, None)
    assert task().score(predictions, {})["loss"] == pytest.approx(0.5)


def test_scores_are_the_mean_squared_error_and_both_correlations():
    actual, predicted = np.array([5, 3.8, 2.6, 0.5, 3.6]), np.array([4.0, 4.5, 2.0, 1.0, 2.5])
    scores = task().score(decoded(rows_of(*actual), *predicted), {})
    ranks = [values.argsort().argsort() for values in (actual, predicted)]
    pearson, spearman = np.corrcoef(actual, predicted)[0, 1], np.corrcoef(ranks[0], ranks[1])[0, 1]
    assert scores == pytest.approx(
        {
            "loss": ((actual - predicted) ** 2).mean(),
            "pearson": pearson,
            "spearman": spearman,
            "combined": (pearson + spearman) / 2,
        }
    )


@pytest.mark.parametrize("predicted", [(2.0, 2.0, 2.0), (0.1, 0.1, 0.1)])
def test_a_constant_prediction_correlates_with_nothing(predicted: tuple[float, ...]):
    scores = task().score(decoded(rows_of(1.0, 2.0, 3.0), *predicted), {})
    assert (scores["pearson"], scores["spearman"], scores["combined"]) == (0.0, 0.0, 0.0)


def test_a_single_row_correlates_with_nothing():
    assert task().score(decoded(rows_of(1.0), 2.0), {})["combined"] == 0.0


def test_only_rows_with_a_score_are_measured():
    scores = task().score(decoded(rows_of("1", "", "3"), 2.0, 100.0, 3.0), {})
    assert scores["loss"] == pytest.approx(0.5)


def test_without_scores_there_are_predictions_and_no_metrics():
    assert task().score(decoded(rows_of("", ""), 1.0, 2.0), {}) == {}


def test_a_split_whose_scores_are_all_hidden_is_not_measured():
    assert task().score(decoded(rows_of(-1.0, -1.0), 1.0, 2.0), {}) == {}


def test_minus_one_among_other_scores_is_a_score():
    assert decoded(rows_of(-1.0, 2.0), 0.0, 0.0).table["actual"].to_pylist() == [-1.0, 2.0]


@pytest.mark.parametrize("value", ["high", "3,5", "nan", "inf"])
def test_a_score_that_is_no_number_is_named_with_its_row(value: str):
    with pytest.raises(InputError, match=rf"data\.train: stsb\.tsv:3 has the score '{value}', which is not a number"):
        task().fit(rows_of("1", value), COLUMNS)


def test_words_in_the_column_point_to_classification():
    with pytest.raises(InputError, match="text_classification"):
        task().check(rows_of("entailment"), COLUMNS, {}, "validation")


def test_one_score_for_all_rows_is_refused():
    with pytest.raises(InputError, match="nothing to learn"):
        task().fit(rows_of("2", "2.0"), COLUMNS)


def test_rows_without_text_or_score_are_unusable_but_none_and_na_are_text():
    rows = rows_of("1", "2", "", "4", sentence1=["None", " ", "NA", "null"], sentence2=["a"] * 4)
    assert task().unusable(rows, COLUMNS, "training") == [(1, "no text"), (2, "no score")]


def test_a_missing_number_of_a_table_is_no_score():
    rows = rows_of(1.0, None, float("nan"))
    assert task().unusable(rows, COLUMNS, "training") == [(1, "no score"), (2, "no score")]


def test_rows_to_predict_need_no_score():
    assert task().unusable(rows_of("", "x"), COLUMNS, "predicting") == []
