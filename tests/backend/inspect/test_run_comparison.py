"""Runs compared by their predictions, as files: the same rows in any order, other rows, other tasks."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from backend.contract.run.folder import RunFolder
from backend.contract.run.group import RunGroup
from backend.helper.queries.predictions import read
from backend.inspect.run_comparison import compare, find_differing

ROWS = 200


@pytest.fixture
def make_run(tmp_path):
    def make(name, right, *, texts=None, kind="text_classification", actual=None, labels=("a", "b"), **columns):
        folder = RunFolder(tmp_path / name)
        folder.model.mkdir(parents=True)
        facts = {"labels": labels, "max_length": 8} if labels else {}
        note = {"task": {"type": kind}, "facts": facts, "columns": {"text": "text"}, "step": 1}
        (folder.model / "burnish.json").write_text(json.dumps(note))
        actual = np.array(["a", "b"] * (ROWS // 2)) if actual is None else actual
        texts = [f"text {row}" for row in range(ROWS)] if texts is None else texts
        other = {"a": "b", "b": "a"}
        predicted = [one if is_right else other[one] for one, is_right in zip(actual, right, strict=True)]
        table = {"text": texts, **columns, "prediction": predicted, "actual": actual.tolist()}
        parquet.write_table(pa.table(table), folder.predictions("validation", "parquet"))
        return folder

    return make


def compared(*folders):
    return compare(folders, [folder.name for folder in folders], read)


def rights(seed, share):
    return np.random.default_rng(seed).random(ROWS) < share


def test_a_clear_difference_is_said_in_words(make_run):
    found = compared(make_run("old", rights(1, 0.6)), make_run("new", rights(2, 0.9)))
    test = next(one for one in found.tests if one.metric == "accuracy")
    assert (test.a, test.b, test.rows, test.test) == ("old", "new", ROWS, "mcnemar_exact")
    assert test.difference == pytest.approx(test.values[1] - test.values[0])
    assert found.sentences[0].startswith("old and new differ by more than chance: Accuracy")


def test_what_may_be_luck_says_how_many_rows_would_tell(make_run):
    found = compared(make_run("old", rights(1, 0.80)), make_run("new", rights(2, 0.82)))
    test = next(one for one in found.tests if one.metric == "accuracy")
    assert found.sentences[0].startswith(f"these {ROWS} rows do not tell old and new apart")
    assert f"about {test.rows_needed:,} rows" in found.sentences[0]


def test_rows_depend_on_each_other_as_the_settings_say(make_run):
    first, second = (
        make_run("old", rights(1, 0.6), cell=(cells := [row // 5 for row in range(ROWS)])),
        make_run("new", rights(2, 0.9), cell=cells),
    )
    for setting, test in (("auto", "mcnemar_exact"), ("cell", "paired_bootstrap"), ("none", "mcnemar_exact")):
        first.spec.write_text(f"evaluation: {{group_column: {setting}}}")
        found = compared(first, second)
        assert {one.test for one in found.tests if one.metric == "accuracy"} == {test}


def test_rows_in_another_order_are_the_same_rows(make_run):
    right, order = rights(1, 0.7), np.random.default_rng(3).permutation(ROWS)
    texts, actual = np.array([f"text {row}" for row in range(ROWS)]), np.array(["a", "b"] * (ROWS // 2))
    same = make_run("other", right[order], texts=texts[order].tolist(), actual=actual[order])
    found = compared(make_run("one", right), same)
    assert {test.difference for test in found.tests} == {0.0}
    assert found.sentences == [f"one and other have the same result on these {ROWS} rows: Accuracy {right.mean():.4g}"]


def test_other_rows_are_not_tested_but_counted(make_run):
    texts = [f"text {row if row < 150 else row + 1000}" for row in range(ROWS)]
    found = compared(make_run("one", rights(1, 0.7)), make_run("two", rights(2, 0.7), texts=texts))
    assert not found.tests
    assert "(150 are the same, of 200 and 200)" in found.refusal


def test_other_tasks_are_not_tested(make_run):
    found = compared(make_run("one", rights(1, 0.7)), make_run("two", rights(2, 0.7), kind="multiple_choice"))
    assert found.refusal == "one and two have different tasks, so their metrics cannot be compared"


def test_a_run_without_predictions_is_named(make_run):
    without = make_run("two", rights(2, 0.7))
    without.predictions("validation", "parquet").unlink()
    assert compared(make_run("one", rights(1, 0.7)), without).refusal.startswith("two has no predictions")


def test_several_runs_are_corrected_for_their_pairs(make_run):
    found = compared(*(make_run(f"run {seed}", rights(seed, 0.6 + seed / 20)) for seed in range(3)))
    own = sorted((test.p, test.p_holm) for test in found.tests if test.metric == "accuracy")
    assert len(own) == 3
    assert own[0][1] == pytest.approx(min(1, 3 * own[0][0]))


def test_rows_of_one_document_are_drawn_together(make_run):
    documents = [row // 4 for row in range(ROWS)]
    found = compared(*(make_run(f"run {seed}", rights(seed, 0.7), doc_id=documents) for seed in range(2)))
    assert {test.test for test in found.tests} == {"paired_bootstrap"}


def test_few_rows_are_not_tested(make_run):
    actual = np.array(["a"] * 9 + [None] * (ROWS - 9))
    found = compared(*(make_run(f"run {seed}", [True] * ROWS, actual=actual) for seed in range(2)))
    assert found.refusal == "9 rows with known answers are too few for a test; evaluate the runs on 10 or more"


def test_other_labels_are_not_tested(make_run):
    found = compared(make_run("one", rights(1, 0.7)), make_run("two", rights(2, 0.7), labels=("a", "b", "c")))
    assert found.refusal == "one and two have different labels, so their metrics cannot be compared"


def test_labels_in_another_order_are_scored_alike(make_run):
    right = rights(1, 0.7)
    found = compared(make_run("one", right), make_run("two", right, labels=("b", "a")))
    assert {test.difference for test in found.tests} == {0.0}


def test_a_damaged_note_is_a_sentence(make_run):
    found = compared(*(make_run(f"run {seed}", rights(seed, 0.7), labels=()) for seed in range(2)))
    assert "lacks the information that Burnish saves with a model" in found.refusal


def test_a_correction_for_many_runs_does_not_ask_for_fewer_rows(make_run):
    right = np.arange(ROWS) < 140
    other = np.concatenate([~right[:2], right[2:140], ~right[140:154], right[154:]])  # 2 rows lost, 14 won
    runs = [make_run(f"run {place}", right) for place in range(7)]
    found = compared(*runs, make_run("other", other))
    test = next(one for one in found.tests if one.metric == "accuracy" and one.b == "other")
    assert test.p < 0.01 < 0.05 < test.p_holm
    assert test.rows_needed is not None
    assert test.rows_needed < ROWS
    sentence = next(each for each in found.sentences if "tell run 0 and other apart" in each)
    assert "would need" not in sentence


def language_run(make_run, name, tokens, loss):
    folder = make_run(name, rights(1, 0.7), kind="causal_lm", labels=())
    path = folder.predictions("validation", "parquet")
    table = parquet.read_table(path)
    for column, values in (("loss", loss), ("tokens", tokens)):
        table = table.append_column(column, pa.array(values))
    parquet.write_table(table, path)
    return folder


def test_perplexity_is_compared_over_the_same_tokens(make_run):
    rng = np.random.default_rng(1)
    loss, tokens = rng.random(ROWS), rng.integers(1, 9, ROWS)
    one, better = language_run(make_run, "one", tokens, loss), language_run(make_run, "better", tokens, loss - 0.1)
    found = compared(one, better)
    assert found.sentences[0].startswith("one and better differ by more than chance: Perplexity")
    other = compared(one, language_run(make_run, "other", tokens + 1, loss))
    assert other.refusal == "these runs have no metric that can be tested; loss and perplexity need the same tokenizer"


def test_a_loss_that_is_no_number_is_not_zero(make_run):
    rng = np.random.default_rng(1)
    loss, tokens = rng.random(ROWS), rng.integers(1, 9, ROWS)
    found = compared(
        language_run(make_run, "one", tokens, loss),
        language_run(make_run, "two", tokens, [None, *loss[1:].tolist()]),
    )
    assert found.refusal


def test_texts_are_compared_without_bleu(make_run):
    folders = [make_run(f"run {seed}", rights(seed, 0.6 + seed / 5), kind="seq2seq_lm", labels=()) for seed in range(2)]
    for folder in folders:
        note = json.loads((folder.model / "burnish.json").read_text())
        note["task"]["scores"] = "summarisation"
        (folder.model / "burnish.json").write_text(json.dumps(note))
    found = compared(*folders)
    assert "bleu" not in {test.metric for test in found.tests}
    assert "ROUGE-1" in found.sentences[0]


@pytest.fixture
def make_group(tmp_path, make_run):
    """A group whose runs are right in these shares of rows; its seeds count from 1."""

    def make(name, shares, first=1):
        group = RunGroup(tmp_path / name)
        group.path.mkdir()
        seeds = list(range(1, len(shares) + 1))
        group.write({"training": {"seeds": seeds}}, [])
        for seed, share in zip(seeds, shares, strict=True):
            run = make_run(group.run(seed).name, rights(first + seed, share))
            run.spec.write_text("name: run")
        return group

    return make


def test_groups_are_compared_by_seeds_and_rows(make_group):
    found = compared(make_group("old", [0.6, 0.62, 0.61]), make_group("new", [0.9, 0.89], first=10))
    test = next(one for one in found.tests if one.metric == "accuracy")
    assert (test.a, test.b, test.seeds, test.test) == ("old", "new", (3, 2), "bootstrap_seeds_rows")
    assert test.values[0] == pytest.approx(
        np.mean([rights(1 + seed, share).mean() for seed, share in ((1, 0.6), (2, 0.62), (3, 0.61))])
    )
    assert found.sentences[0].startswith("old (3 seeds) and new (2 seeds) differ by more than chance: Accuracy")


def test_a_run_is_compared_with_a_group(make_run, make_group):
    found = compared(make_run("run", rights(1, 0.7)), make_group("group", [0.7, 0.72, 0.68]))
    assert next(test for test in found.tests if test.metric == "accuracy").seeds == (1, 3)
    assert found.sentences[0].startswith(f"these {ROWS} rows do not tell run (1 seed) and group (3 seeds) apart")


def test_seeds_that_differ_more_than_rows_ask_for_more_seeds(make_group):
    found = compared(make_group("old", [0.5, 0.9]), make_group("new", [0.7, 0.95], first=10))
    assert found.sentences[0].endswith("seeds of each")


def test_a_group_with_one_predicted_run_is_not_compared(make_run, make_group):
    group = make_group("group", [0.7, 0.7])
    group.run(1).predictions("validation", "parquet").unlink()
    found = compared(make_run("run", rights(1, 0.7)), group)
    assert (
        found.refusal == "group: 1 of its runs have predictions of validation rows; a group is compared by two or more"
    )


def differing(*folders, most=500):
    return find_differing(folders, [folder.name for folder in folders], read, most)


def test_rows_that_one_run_alone_has_right_come_first(make_run):
    right = np.ones(ROWS, bool)
    first, second = right.copy(), right.copy()
    first[[3, 4]], second[[7]] = False, False
    found = differing(make_run("one", first), make_run("two", second))
    assert (found.only_a, found.only_b, found.count, found.of) == (1, 2, 3, ROWS)
    assert found.columns == ["text", "actual"]
    assert found.rows[0] == ["text 7", "b", "b", "a"]
    assert {row[0] for row in found.rows[1:]} == {"text 3", "text 4"}
    assert len(differing(make_run("a", first), make_run("b", second), most=2).rows) == 2


def test_a_group_answers_by_a_vote(make_run, make_group):
    wrong = make_run("wrong", np.zeros(ROWS, bool))
    found = differing(wrong, make_group("group", [1.0, 1.0, 0.0]))
    assert (found.only_a, found.only_b) == (0, ROWS)
