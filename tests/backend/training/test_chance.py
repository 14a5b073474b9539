"""A run that has learned nothing says so, and how to try again."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import entropy

from backend.contract import spec_file
from backend.contract.heads import IGNORE
from backend.contract.metrics import beats_rule, is_at_chance
from backend.contract.resources import resource
from backend.contract.run.events import EvaluationFinished, PlanMade, RunFinished
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import RunFolder
from backend.contract.spec import RunSpec
from backend.data.rows import Rows
from backend.metrics.metric import Predictions
from backend.preflight.auto_settings import TrainingSize
from backend.preflight.resolve import resolve
from backend.tasks.causal_lm import CausalLm
from backend.tasks.causal_lm import Settings as CausalSettings
from backend.tasks.multiple_choice import MultipleChoice
from backend.tasks.multiple_choice import Settings as ChoiceSettings
from backend.tasks.seq2seq_lm import Seq2SeqLm
from backend.tasks.seq2seq_lm import Settings as WritingSettings
from backend.tasks.task import learned_scores
from backend.tasks.text_classification import Settings, TextClassification, constant_scores
from backend.tasks.token_classification import Settings as TagSettings
from backend.tasks.token_classification import TokenClassification
from backend.training.chance import other_settings
from backend.training.event_log import read_events
from backend.training.loop import run

SIZE = TrainingSize("model", 4_400_000, 360)


def made(table: dict[str, list[str]]) -> Rows:
    count = len(next(iter(table.values())))
    return Rows(pa.table(table), ("a.csv",), np.zeros(count, np.int32), np.arange(count), fingerprint="f")


def spec(**training: object) -> RunSpec:
    return resolve(
        {
            "task": {"type": "text_classification", "max_length": 8},
            "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
            "data": {"source": "demo", "max_rows": 64},
            "training": {"batch_size": 8, "warmup": 0.0, "checkpoint_every": "never", **training},
            "hardware": {"threads": 1, "device": "cpu"},
        },
        Path(),
    )


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({"accuracy": 0.5, "matthews": 0.0}, True),
        ({"accuracy": 0.4, "matthews": None}, True),
        ({"accuracy": 0.51, "matthews": 0.0}, False),
        ({"accuracy": 0.5, "matthews": 0.1}, False),
        ({"loss": 0.3}, False),
    ],
)
def test_at_chance_is_what_no_metric_raises_above_the_rule(metrics: dict[str, float | None], expected: bool):
    assert is_at_chance(metrics, {"accuracy": 0.5, "matthews": 0.0}) is expected


def test_the_commonest_label_is_the_rule_of_classification():
    rows = made({"text": ["x"] * 4, "label": ["a", "b", "b", ""]})
    task = TextClassification(Settings())
    found = task.trivial_scores(rows, {"text": "text", "label": "label"}, {"labels": ["a", "b"]})
    assert (found["accuracy"], found["matthews"]) == (2 / 3, 0.0)


def test_no_constant_label_is_better_than_the_rule_of_classification():
    for counts in ([3, 7], [7, 3], [5, 2, 1], [4, 0]):
        labels = [str(place) for place in range(len(counts))]
        actual, one = np.repeat(labels, counts).tolist(), np.ones(sum(counts))
        own = [
            TextClassification(Settings()).score(
                Predictions(pa.table({"actual": actual, "prediction": [label] * len(actual)}), {"loss": (one, one)}),
                {"labels": labels},
            )
            for label in labels
        ]
        found = constant_scores(counts)
        for name in found.keys() - {"loss"}:
            assert found[name] == pytest.approx(max(scores[name] for scores in own)), name
        assert found["loss"] == pytest.approx(entropy(counts))
        assert not np.signbit(found["loss"])  # of one label alone it was -0.0


def test_copying_the_source_is_the_rule_of_text_to_text():
    rows = made({"source": ["a b c d", "e f g h"], "target": ["a b c d", "x y z w"]})
    task = Seq2SeqLm(WritingSettings(scores="all"))
    found = task.trivial_scores(rows, {"source": "source", "target": "target"}, {})
    assert found["rouge1"] == pytest.approx(0.5)
    assert {"bleu", "chrf"} <= found.keys()
    assert not {"exact_match", "loss", "perplexity", "accuracy"} & found.keys()


def test_an_interval_beats_a_rule_where_all_of_it_does():
    assert beats_rule((0.6, 0.7), 0.5, greater_is_better=True)
    assert not beats_rule((0.4, 0.7), 0.5, greater_is_better=True)
    assert beats_rule((0.4, 0.6), 0.7, greater_is_better=False)
    assert beats_rule(None, 0.7, greater_is_better=False) is None


def test_the_commonest_place_is_the_rule_of_choices():
    table = {"text": ["x"] * 4, **{f"ending{n}": ["y"] * 4 for n in range(3)}, "label": ["1", "1", "1", "2"]}
    rows = made(table)
    columns = {"text": "text", "label": "label", **{f"choice_{n}": f"ending{n}" for n in range(3)}}
    task = MultipleChoice(ChoiceSettings(first_choice="0"))
    facts = {"labels_are": task.fit(rows, columns)["labels_are"]}
    assert task.trivial_scores(rows, columns, facts) == {"accuracy": 0.75}


def test_the_commonest_tag_is_the_rule_of_tags_without_a_scheme():
    rows = made({"words": ["a b c", "d e"], "tags": ["NOUN NOUN VERB", "DET NOUN"]})
    task, columns = TokenClassification(TagSettings(scheme="none")), {"tokens": "words", "tags": "tags"}
    found = task.trivial_scores(rows, columns, {"scheme": "none"})
    of_one_tag = pa.table({"actual": rows.table["tags"], "prediction": ["NOUN NOUN NOUN", "NOUN NOUN"]})
    own = task.score(Predictions(of_one_tag), {"scheme": "none"})
    assert found == pytest.approx({"accuracy": own["accuracy"], "f1": own["f1"]})
    assert found["accuracy"] == 3 / 5
    assert task.trivial_scores(rows, columns, {"scheme": "BIO"}) == {"f1": 0.0}


def test_how_often_tokens_occur_is_the_rule_of_language_models():
    """After the first token of each, 5 occurs twice, 6 once, and 7 never; one is added to all of the ids up to 7."""
    train = pa.table({"labels": pa.array([[9, 5, 5], [9, 6, IGNORE]], pa.list_(pa.int32()))})
    held_out = pa.table({"labels": pa.array([[9, 5], [], [9, 7]], pa.list_(pa.int32()))})
    found = learned_scores(CausalLm(CausalSettings()), train, held_out)
    counts = np.array([1] * 5 + [3, 2, 1])
    assert found["loss"] == pytest.approx(-np.log(counts / counts.sum())[[5, 7]].mean())
    assert found["perplexity"] == pytest.approx(np.exp(found["loss"]))
    assert learned_scores(CausalLm(CausalSettings()), train, held_out.slice(1, 1)) == {}


def test_a_run_with_other_numbers_is_tried_with_the_usual_ones():
    assert other_settings(spec(learning_rate=2e-5, epochs=3), SIZE) == {
        "training.learning_rate": 4e-4,
        "training.epochs": 12.0,
    }


def test_a_run_with_the_usual_numbers_is_tried_with_more_epochs():
    assert other_settings(spec(learning_rate=4e-4, epochs=12), SIZE) == {"training.epochs": 36.0}


def test_what_would_stop_it_just_as_early_is_taken_back():
    changes = other_settings(spec(learning_rate=4e-4, epochs=12, max_steps=4), SIZE)
    assert changes == {"training.max_steps": None}
    assert RunFix(changes, is_retry=True).describe() == "Try again with no max_steps"


def test_a_run_whose_limit_was_no_shorter_is_tried_with_more_epochs():
    records = int(12 * SIZE.examples)
    changes = other_settings(spec(learning_rate=4e-4, epochs=12, max_records=records), SIZE)
    assert changes == {"training.epochs": 36.0, "training.max_records": None}


def test_a_run_that_learned_nothing_offers_to_try_again_and_its_scores_are_no_success(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.spec.write_text(spec_file.dump(spec(learning_rate=1e-9, epochs=1).model_dump(mode="json")))
    run(folder)
    found = read_events(folder.events)
    trivial = next(event.trivial for event in found if isinstance(event, PlanMade))
    assert trivial["accuracy"] == pytest.approx(0.5, abs=0.1)
    [last] = [event for event in found if isinstance(event, EvaluationFinished)]
    end = found[-1]
    assert isinstance(end, RunFinished)
    assert is_at_chance(last.metrics, trivial)
    assert end.mend is not None
    assert end.mend.describe() == "Try again with learning_rate 0.0004 and epochs 12"
