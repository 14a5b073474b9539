"""Labels, weights and scores of text classification."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError
from transformers import AutoTokenizer

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.data.formats.class_labels import named_field
from backend.data.rows import Rows
from backend.preflight.datasets import choose_columns
from backend.tasks.text_classification import Settings, TextClassification, label_words

NUMBERS = pa.chunked_array([pa.array([0.0, float("nan")], from_pandas=False), pa.array([None, 1.0])])

COLUMNS = {"text": "text", "label": "label"}


def rows_of(**columns: list) -> Rows:
    count = len(next(iter(columns.values())))
    return Rows(pa.table(columns), ("reviews.csv",), np.zeros(count, np.int32), np.arange(count) + 2, "fingerprint")


def task(**settings: object) -> TextClassification:
    return TextClassification(Settings.model_validate(settings))


def test_labels_are_sorted_words():
    assert task().fit(rows_of(text=["x"] * 3, label=["pos", "neg", "pos"]), COLUMNS)["labels"] == ["neg", "pos"]


def test_numbers_are_sorted_by_value():
    facts = task().fit(rows_of(text=["x"] * 3, label=["10", "9", "1"]), COLUMNS)
    assert facts["labels"] == ["1", "9", "10"]


def test_whole_floats_and_integers_are_the_same_label():
    assert task().fit(rows_of(text=["x"] * 2, label=[0.0, 1.0]), COLUMNS)["labels"] == ["0", "1"]


def test_the_checkpoints_order_is_kept_where_it_names_the_same_labels():
    rows = rows_of(text=["x"] * 2, label=["negative", "positive"])
    assert task().fit(rows, COLUMNS, ("POSITIVE", "NEGATIVE"))["labels"] == ["positive", "negative"]


def test_label_order_of_a_folder_of_mnli_is_that_of_the_words():
    rows = rows_of(text=["x"] * 3, label=["neutral", "entailment", "contradiction"])
    assert task().fit(rows, COLUMNS)["labels"] == ["contradiction", "entailment", "neutral"]


def numbered(labels: list[str], names: list[str]) -> Rows:
    """Rows of a data set that numbers its labels."""
    rows = rows_of(text=["x"] * len(labels), label=labels)
    field = named_field(pa.field("label", pa.int64()), names)
    return replace(rows, table=rows.table.cast(pa.schema([rows.table.schema.field("text"), field])))


def test_labels_that_the_data_set_numbers_keep_its_order():
    rows = numbered(["neutral", "entailment"], ["entailment", "neutral", "contradiction"])
    assert task().fit(rows, COLUMNS)["labels"] == ["entailment", "neutral", "contradiction"]


def test_the_checkpoints_order_comes_before_the_data_sets():
    rows = numbered(["entailment", "neutral"], ["entailment", "neutral", "contradiction"])
    facts = task().fit(rows, COLUMNS, ("CONTRADICTION", "NEUTRAL", "ENTAILMENT"))
    assert facts["labels"] == ["contradiction", "neutral", "entailment"]


def test_labels_of_a_checkpoint_that_are_not_the_datas_are_ignored_with_a_note():
    facts = task().fit(rows_of(text=["x"] * 2, label=["0", "1"]), COLUMNS, ("NEGATIVE", "POSITIVE"))
    assert facts["labels"] == ["0", "1"]
    assert facts["notes"] == [
        "the model was trained for other labels (NEGATIVE, POSITIVE); they are ignored, and a new head is added for 0, 1"
    ]


def test_labels_of_a_checkpoint_in_another_case_need_no_note():
    facts = task().fit(rows_of(text=["x"] * 2, label=["no", "yes"]), COLUMNS, ("YES", "NO"))
    assert facts["notes"] == []


def test_hidden_labels_are_neither_mapped_nor_measured():
    rows, facts = rows_of(text=["x"] * 2, label=[-1, -1]), {"labels": ["0", "1"], "class_weights": None}
    task().check(rows, COLUMNS, facts, "test")
    outputs = {"logits": [np.array([0, 1], np.float32)] * 2}
    predictions = task().decode(outputs, pa.table({}), rows, COLUMNS, facts, None)
    assert predictions.table["actual"].to_pylist() == [None, None]
    assert task().score(predictions, facts) == {}


def test_minus_one_can_be_a_label():
    facts = task().fit(rows_of(text=["x"] * 3, label=[-1, 0, 1]), COLUMNS)
    assert facts["labels"] == ["-1", "0", "1"]


def test_scores_with_fractions_point_to_regression():
    with pytest.raises(InputError, match="text_regression"):
        task().fit(rows_of(text=["x"] * 300, label=[number % 30 / 4 for number in range(300)]), COLUMNS)


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        (["index", "sentence1", "sentence2", "label"], ("sentence1", "sentence2", "label")),
        (["index", "question", "sentence", "label"], ("question", "sentence", "label")),
        (["id", "qid1", "qid2", "question1", "question2", "is_duplicate"], ("question1", "question2", "is_duplicate")),
        (["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"], ("#1 String", "#2 String", "Quality")),
        (["premise", "hypo", "label"], ("premise", "hypo", "label")),
        (["sentence", "label"], ("sentence", None, "label")),
    ],
)
def test_columns_of_known_data_sets_are_guessed(names: list[str], pair: tuple[str | None, ...]):
    chosen = choose_columns(task(), {}, rows_of(**{name: ["x"] for name in names}))
    assert (chosen["text"], chosen.get("text_pair"), chosen["label"]) == pair


def test_balanced_weights_are_rows_over_classes_times_count():
    facts = task(class_weights="balanced").fit(rows_of(text=["x"] * 4, label=["a", "a", "a", "b"]), COLUMNS)
    assert facts["class_weights"] == pytest.approx([4 / 6, 4 / 2])


def test_a_single_class_is_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"single label .* choose another column"):
        task().fit(rows_of(text=["x"] * 2, label=["a", "a"]), COLUMNS)


def test_an_unknown_label_is_named_with_its_line():
    facts = {"labels": ["a", "b"]}
    with pytest.raises(InputError, match=r"reviews.csv:3 has the label 'c'"):
        task().check(rows_of(text=["x"] * 2, label=["a", "c"]), COLUMNS, facts, "validation")


def test_rows_without_text_or_label_are_unusable_but_none_and_na_are_text():
    rows = rows_of(text=["None", " ", "NA", "null"], label=["a", "b", "", "a"])
    assert task().unusable(rows, COLUMNS, "training") == [(1, "no text"), (2, "no label")]


def test_pairs_are_cut_to_the_limit_and_carry_token_types():
    tokenizer = AutoTokenizer.from_pretrained(resource("demo", "bert-tiny"))
    rows = rows_of(text=["long " * 50], text_pair=["short"], label=["a"])
    columns = COLUMNS | {"text_pair": "text_pair"}
    [batch] = task().encode(rows, columns, tokenizer, {"labels": ["a", "b"], "max_length": 16})
    assert len(batch["input_ids"][0]) == 16
    assert sum(batch["token_type_ids"][0].as_py()) == 2  # the pair and its separator


def decoded(logits: list[list[float]], labels: list[str], **settings: object):
    rows = rows_of(text=["x"] * len(labels), label=labels)
    facts = {"labels": ["no", "yes"], "class_weights": settings.pop("class_weights", None)}
    one = task()
    outputs = {"logits": [np.array(row, np.float32) for row in logits]}
    predictions = one.decode(outputs, pa.table({}), rows, COLUMNS, facts, None)
    return predictions, one.score(predictions, facts)


def test_scores_of_a_known_case():
    _, scores = decoded([[2, 0], [0, 2], [0, 2], [2, 0]], ["no", "no", "yes", "yes"])
    assert scores["accuracy"] == 0.5
    assert scores["matthews"] == 0.0
    assert scores["f1"] == scores["f1_macro"] == 0.5


def test_f1_and_combined_are_those_of_class_1():
    # One class for every row, as an untrained head answers: F1 is 2 · 0.75 / 1.75.
    _, scores = decoded([[0, 1]] * 4, ["yes", "yes", "yes", "no"])
    assert scores["f1"] == pytest.approx(6 / 7)
    assert scores["combined"] == pytest.approx((0.75 + 6 / 7) / 2)


def test_an_untrained_head_on_rte_scores_as_pymarlin_published_it():
    # 131 of the 277 rows are not_entailment, which the untrained head answered for all of them.
    actual = ["entailment"] * 146 + ["not_entailment"] * 131
    outputs = {"logits": [np.array([0, 1], np.float32)] * 277}
    facts = {"labels": ["entailment", "not_entailment"], "class_weights": None}
    predictions = task().decode(outputs, pa.table({}), rows_of(text=["x"] * 277, label=actual), COLUMNS, facts, None)
    scores = task().score(predictions, facts)
    assert [round(scores[name], 4) for name in ("accuracy", "matthews", "f1")] == [0.4729, 0.0, 0.6422]


def test_probabilities_sum_to_one_and_the_loss_is_their_logarithm():
    predictions, scores = decoded([[1, 2]], ["yes"])
    no, yes = (predictions.table[f"probability_{label}"][0].as_py() for label in ("no", "yes"))
    assert no + yes == pytest.approx(1)
    assert scores["loss"] == pytest.approx(-np.log(yes))


def test_the_loss_is_weighted_as_in_training():
    _, scores = decoded([[0, 0], [0, 5]], ["no", "yes"], class_weights=[3.0, 1.0])
    assert scores["loss"] == pytest.approx((3 * np.log(2) + np.log1p(np.exp(-5))) / 4)


def test_without_labels_there_are_predictions_and_no_scores():
    predictions, scores = decoded([[0, 1], [1, 0]], ["", ""])
    assert predictions.table["prediction"].to_pylist() == ["yes", "no"]
    assert scores == {}


@pytest.mark.parametrize("labels", [["maybe", "maybe"], ["yes", "maybe"]])
def test_labels_that_training_did_not_know_are_left_out_of_the_scores(labels: list[str]):
    _, scores = decoded([[0, 1], [0, 1]], labels)
    assert scores.get("accuracy") == (1.0 if "yes" in labels else None)


def test_whole_numbers_lose_their_point_and_nan_is_no_label() -> None:
    assert label_words(NUMBERS).to_pylist() == ["0", "", "", "1"]


def test_fractions_stay() -> None:
    assert label_words(pa.chunked_array([pa.array([0.5, 1.0])])).to_pylist() == ["0.5", "1"]


def test_rows_whose_label_is_nan_are_left_out() -> None:
    table = pa.table({"text": ["a", "b", "c", "d"], "label": NUMBERS})
    rows = Rows(table, ("a.parquet",), np.zeros(4, np.int32), np.arange(4), "f")
    found = TextClassification(Settings()).unusable(rows, {"text": "text", "label": "label"}, "training")
    assert found == [(1, "no label"), (2, "no label")]


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf")])
def test_a_weight_that_divides_nothing_is_refused(weight: float) -> None:
    with pytest.raises(ValidationError, match="class_weights"):
        Settings.model_validate({"class_weights": {"yes": weight}})


def test_weights_per_label_and_balanced_ones_are_taken() -> None:
    assert Settings(class_weights="balanced").class_weights == "balanced"
    assert Settings(class_weights={"yes": 0.5}).class_weights == {"yes": 0.5}
