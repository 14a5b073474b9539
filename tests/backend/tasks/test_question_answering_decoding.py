"""N-best lists and null scores of question answering, against the rules told slowly, case by case."""

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from backend.contract.spec import Section
from backend.tasks.question_answering import QuestionAnswering, Settings
from backend.tasks.task import Predictions
from tests.backend.tasks.questions import COLUMNS, answered, bert, features_of, rows_of, xlnet

CONTEXT = "The old bridge crosses the Tamsel near Port Ellory. " * 6 + "It was opened by Ines Varga in 1908."
WINDOWS = {"max_length": 48, "doc_stride": 12}
ROWS = rows_of(
    [
        answered("Who opened it?", CONTEXT, "Ines Varga"),
        answered("Which river?", "It crosses the Tamsel.", "Tamsel"),
        answered("Who paid?", CONTEXT),
    ]
)


@pytest.fixture(scope="module")
def tokenizer():
    return bert()


@pytest.fixture(scope="module")
def features(tokenizer) -> pa.Table:
    return features_of(tokenizer, ROWS, **WINDOWS)


def random_logits(features: pa.Table, seed: int = 0) -> dict[str, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    lengths = [len(ids) for ids in features["input_ids"]]
    return {
        name: [rng.normal(size=length).astype(np.float32) * 4 for length in lengths]
        for name in ("start_logits", "end_logits")
    }


def decoded(outputs: dict[str, list[np.ndarray]], features: pa.Table, **settings: Any) -> Predictions:
    task = QuestionAnswering(Settings(**settings))
    return task.decode(outputs, features, ROWS, COLUMNS, {"version_2_with_negative": False}, None)


def slow_n_best(
    outputs: dict, features: pa.Table, row: int, context: str, n_best: int, longest: int, may_be_none: bool
) -> tuple[list[tuple[str, float]], float]:
    """The rules of the reference, one candidate at a time: (text, score) in order, and the null score."""
    candidates, null = [], math.inf
    for feature in range(features.num_rows):
        if features["row"][feature].as_py() != row:
            continue
        starts, ends = outputs["start_logits"][feature], outputs["end_logits"][feature]
        first, last = features["offset_start"][feature].as_py(), features["offset_end"][feature].as_py()
        place = features["null_index"][feature].as_py()
        null = min(null, starts[place] + ends[place])
        for start in np.argsort(-starts)[:n_best]:
            for end in np.argsort(-ends)[:n_best]:
                if first[start] >= 0 and first[end] >= 0 and 0 <= end - start < longest:
                    candidates.append((context[first[start] : last[end]], starts[start] + ends[end]))
    if may_be_none:
        candidates.append(("", null))
    found = sorted(candidates, key=lambda one: one[1], reverse=True)[:n_best]
    if may_be_none and ("", null) not in found:
        found.append(("", null))
    if not any(text for text, _ in found):
        found.insert(0, ("empty", 0.0))
    return found, null


@pytest.mark.parametrize("may_be_none", [False, True])
@pytest.mark.parametrize(("n_best", "longest"), [(20, 30), (3, 5), (60, 4)])
def test_n_best_follows_the_reference_to_the_letter(features, may_be_none, n_best, longest):
    outputs = random_logits(features)
    settings = {"n_best": n_best, "max_answer_length": longest, "version_2_with_negative": may_be_none}
    predictions = decoded(outputs, features, **settings)
    for row, own in enumerate(predictions.table["n_best"].to_pylist()):
        context = ROWS.table["context"][row].as_py()
        expected, _ = slow_n_best(outputs, features, row, context, n_best, longest, may_be_none)
        found = [(one["text"], one["start_logit"] + one["end_logit"]) for one in json.loads(own)]
        assert [text for text, _ in found] == [text for text, _ in expected]
        assert [score for _, score in found] == pytest.approx([score for _, score in expected], rel=1e-6)


def test_probabilities_are_the_softmax_over_the_list(features):
    own = json.loads(decoded(random_logits(features), features).table["n_best"][0].as_py())
    weights = [math.exp(one["start_logit"] + one["end_logit"]) for one in own]
    assert [one["probability"] for one in own] == pytest.approx([one / sum(weights) for one in weights])


def test_null_score_is_the_least_of_a_rows_windows_less_the_best_answer(features):
    outputs = random_logits(features)
    predictions = decoded(outputs, features, version_2_with_negative=True)
    expected, null = slow_n_best(outputs, features, 0, CONTEXT, 20, 30, True)
    best = max(score for text, score in expected if text)
    assert predictions.table["null_score"][0].as_py() == pytest.approx(float(null - best), rel=1e-5)


def test_no_answer_is_given_only_above_the_threshold(features):
    outputs = random_logits(features)
    score = decoded(outputs, features, version_2_with_negative=True).table["null_score"][0].as_py()
    below, at = (
        decoded(outputs, features, version_2_with_negative=True, null_threshold=threshold).table
        for threshold in (score - 0.01, score)
    )
    assert below["prediction"][0].as_py() == ""
    assert below["start"][0].as_py() is None
    assert at["prediction"][0].as_py() != ""


def test_start_and_end_cut_the_prediction_out_of_the_context(features):
    table = decoded(random_logits(features), features).table.to_pylist()
    for row, one in enumerate(table):
        context = ROWS.table["context"][row].as_py()
        assert context[one["start"] : one["end"]] == one["prediction"]


def test_row_without_any_possible_answer_says_empty_and_does_not_run_off_the_list(features):
    outputs = random_logits(features)
    for name, ends in outputs.items():
        for one in ends:  # the best start stands behind the best end, so that a list of one holds no pair
            one[:] = -100
            one[10 if name == "start_logits" else 8] = 0
    plain, none = (decoded(outputs, features, n_best=1, version_2_with_negative=flag).table for flag in (False, True))
    assert plain["prediction"].to_pylist() == ["empty"] * 3
    assert [one["text"] for one in json.loads(none["n_best"][0].as_py())] == ["empty", ""]
    assert none["prediction"].to_pylist() == ["empty"] * 3  # the null score is far below that of "empty", 0


def test_documents_are_those_of_the_reference(features):
    documents = decoded(random_logits(features), features, version_2_with_negative=True).documents
    table = decoded(random_logits(features), features, version_2_with_negative=True).table
    assert documents["predictions.json"] == dict(zip(["q0", "q1", "q2"], table["prediction"].to_pylist(), strict=True))
    assert documents["null_odds.json"] == dict(zip(["q0", "q1", "q2"], table["null_score"].to_pylist(), strict=True))
    lists = json.loads(documents["nbest_predictions.json"])
    assert lists["q1"] == json.loads(table["n_best"][1].as_py())
    assert lists["q1"][0].keys() == {"text", "probability", "start_logit", "end_logit"}


def test_null_odds_are_written_only_where_there_may_be_no_answer(features):
    assert decoded(random_logits(features), features).documents.keys() == {"predictions.json", "nbest_predictions.json"}


def test_questions_of_the_same_name_lose_none(features):
    twice = rows_of([{**one, "id": "same"} for one in ROWS.table.drop_columns(["id"]).to_pylist()])
    task = QuestionAnswering(Settings())
    found = task.decode(random_logits(features), features, twice, COLUMNS, {"version_2_with_negative": False}, None)
    assert list(found.documents["predictions.json"]) == ["same", "same-2", "same-3"]


def test_loss_is_the_mean_of_both_cross_entropies_over_the_known_windows(features):
    outputs = random_logits(features)
    predictions = decoded(outputs, features)
    expected = []
    for feature in range(features.num_rows):
        for name, target in (("start_logits", "start_positions"), ("end_logits", "end_positions")):
            logits = outputs[name][feature].astype(np.float64)
            expected.append(np.log(np.exp(logits).sum()) - logits[features[target][feature].as_py()])
    total, count = predictions.total("loss")
    assert count == features.num_rows
    assert total / count == pytest.approx(np.mean(expected))


# Beams


def random_beams(features: pa.Table, starts: int, ends: int, seed: int = 0) -> dict[str, list[np.ndarray]]:
    """What a beam head gives: probabilities, and the ends of all starts flattened as (ends, starts)."""
    rng = np.random.default_rng(seed)
    outputs: dict[str, list[np.ndarray]] = {}
    for ids in features["input_ids"]:
        width = len(ids) + 4  # a beam may end in the padding
        one = {
            "start_top_log_probs": np.sort(rng.random(starts).astype(np.float32))[::-1],
            "start_top_index": rng.permutation(width)[:starts],
            "end_top_log_probs": np.sort(rng.random((ends, starts)).astype(np.float32), axis=0)[::-1].ravel(),
            "end_top_index": np.stack([rng.permutation(width)[:ends] for _ in range(starts)], axis=1).ravel(),
            "cls_logits": rng.normal(),
        }
        for name, value in one.items():
            outputs.setdefault(name, []).append(np.asarray(value))
    return outputs


@pytest.fixture(scope="module")
def beams() -> pa.Table:
    return features_of(xlnet([CONTEXT, "Who opened it? Which river? Who paid?"] * 20), ROWS, head="beam", **WINDOWS)


@pytest.mark.parametrize(("starts", "ends"), [(5, 5), (3, 7)])
def test_beams_pair_every_start_with_its_own_ends(beams, starts, ends):
    outputs = random_beams(beams, starts, ends)
    predictions = decoded(outputs, beams, head="beam", n_best=1000 // 2, max_answer_length=40)
    expected: dict[int, list[tuple[str, float]]] = {0: [], 1: [], 2: []}
    for feature in range(beams.num_rows):
        row, (first, last) = (
            beams["row"][feature].as_py(),
            (beams[f"offset_{end}"][feature].as_py() for end in ("start", "end")),
        )
        context = ROWS.table["context"][row].as_py()
        for start in range(starts):
            for end in range(ends):
                begin, finish = (
                    outputs["start_top_index"][feature][start],
                    outputs["end_top_index"][feature][end * starts + start],
                )
                inside = max(begin, finish) < len(first) and first[begin] >= 0 and first[finish] >= 0
                if inside and 0 <= finish - begin < 40:
                    score = (
                        outputs["start_top_log_probs"][feature][start]
                        + outputs["end_top_log_probs"][feature][end * starts + start]
                    )
                    expected[row].append((context[first[begin] : last[finish]], float(score)))
    assert expected[0]
    for row, own in enumerate(predictions.table["n_best"].to_pylist()):
        found = [(one["text"], one["start_log_prob"] + one["end_log_prob"]) for one in json.loads(own)]
        wanted = sorted(expected[row], key=lambda one: one[1], reverse=True)
        assert [text for text, _ in found] == [text for text, _ in wanted]
        assert [score for _, score in found] == pytest.approx([score for _, score in wanted])


def test_beams_give_no_answer_by_the_least_logit_of_a_rows_windows(beams):
    outputs = random_beams(beams, 5, 5)
    owners = np.array(beams["row"].to_pylist())
    least = [min(float(one) for one in np.array(outputs["cls_logits"])[owners == row]) for row in range(3)]
    predictions = decoded(outputs, beams, head="beam", version_2_with_negative=True, null_threshold=sum(least) / 3)
    assert predictions.table["null_score"].to_pylist() == pytest.approx(least)
    said = [text == "" for text in predictions.table["prediction"].to_pylist()]
    assert said == [one > sum(least) / 3 for one in least]
    assert predictions.documents["null_odds.json"]["q2"] == pytest.approx(least[2])


def test_decoding_settings_are_sections_of_the_spec():
    assert issubclass(Settings, Section)
    assert Settings().model_dump() == {
        "type": "question_answering", "head": "plain", "max_length": 384, "doc_stride": 128,
        "version_2_with_negative": None, "null_threshold": 0.0, "n_best": 20, "max_answer_length": 30,
        "misplaced_answers": "nearest",
    }  # fmt: skip
