"""A Determined experiment becomes a spec with its numbers, and says what it cannot become."""

from typing import Any

import pytest

from backend.contract.errors import InputError
from backend.importing.determined import import_config, recognises

SQUAD: dict[str, Any] = {
    "description": "bert_squad",
    "hyperparameters": {
        "global_batch_size": 12,
        "model_mode": "question-answering",
        "use_apex_amp": False,
        "use_pretrained_weights": True,
        "pretrained_model_name_or_path": "bert-base-uncased",
        "learning_rate": "3e-5",
        "weight_decay": 0,
        "adam_epsilon": 1e-8,
        "max_grad_norm": 0,
        "lr_scheduler_type": "linear",
        "num_warmup_steps": 0,
    },
    "data": {
        "dataset_name": "squad",
        "max_seq_length": 384,
        "doc_stride": 128,
        "n_best_size": 20,
        "max_answer_length": 30,
    },
    "records_per_epoch": 88524,
    "min_validation_period": {"batches": 3688},
    "searcher": {"name": "single", "metric": "f1", "max_length": {"epochs": 2}, "smaller_is_better": False},
    "environment": {"image": "x"},
    "entrypoint": "qa_trial:QATrial",
}


def changed(**sections: Any) -> dict[str, Any]:
    """The experiment with sections laid over."""
    return {
        **SQUAD,
        **{
            key: {**SQUAD.get(key, {}), **value} if isinstance(value, dict) else value
            for key, value in sections.items()
        },
    }


def test_an_experiment_is_known_by_its_hyperparameters():
    assert recognises(SQUAD)
    assert not recognises({"task": {"type": "causal_lm"}})


def test_the_numbers_are_taken_over():
    spec = import_config(SQUAD).spec
    assert spec["training"] == {
        "batch_size": 12, "learning_rate": 3e-5, "weight_decay": 0.0, "adam_epsilon": 1e-8, "schedule": "linear",
        "drop_last": True, "max_gradient_norm": None, "epochs": 2,
    }  # fmt: skip
    assert spec["task"] == {
        "type": "question_answering", "max_length": 384, "doc_stride": 128, "n_best": 20, "max_answer_length": 30,
    }  # fmt: skip
    assert spec["evaluation"] == {"every": 3688, "best_metric": "f1"}
    assert spec["data"] == {"source": "hub", "name": "squad", "train": "train", "validation": "validation"}


def test_nothing_is_left_unnamed():
    result = import_config(changed(hyperparameters={"my_own": 7}, data={"other": "x"}, future_section={"a": 1}))
    assert result.unmatched == ["hyperparameters.my_own: 7", "data.other: x", "future_section: {'a': 1}"]


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        ({"batches": 300}, {"max_steps": 300}),
        ({"records": 3000}, {"max_records": 3000}),
        ({"epochs": 3}, {"epochs": 3}),
    ],
)
def test_the_length_keeps_its_unit(length: dict[str, int], expected: dict[str, int]):
    training = import_config(changed(searcher={"max_length": length})).spec["training"]
    assert expected.items() <= training.items()


def test_aggregated_batches_make_one_larger_step():
    experiment = changed(
        hyperparameters={"num_warmup_steps": 1620, "global_batch_size": 16},
        optimizations={"aggregation_frequency": 3},
        searcher={"max_length": {"batches": 16500}},
    )
    training = import_config(experiment).spec["training"]
    assert (training["batch_size"], training["max_steps"], training["warmup"]) == (48, 5500, 540)


def test_a_search_is_named():
    experiment = changed(
        hyperparameters={"learning_rate": {"type": "log", "base": 10, "minval": -5, "maxval": -4}},
        searcher={"name": "adaptive_asha"},
    )
    unmatched = import_config(experiment).unmatched
    assert any(line.startswith("searcher.name: adaptive_asha") for line in unmatched)
    assert any(line.startswith("hyperparameters.learning_rate: a range to search") for line in unmatched)


def test_permutation_modelling_is_named():
    experiment = changed(
        hyperparameters={"model_mode": "masked-lm"}, data={"plm_probability": 0.15, "max_span_length": 5}
    )
    assert any("permutation language modeling" in line for line in import_config(experiment).unmatched)


@pytest.mark.parametrize("mode", ["next-sentence", "pretraining", "base"])
def test_a_model_without_counterpart_is_refused(mode: str):
    with pytest.raises(InputError, match=f"model_mode: '{mode}' has no counterpart"):
        import_config(changed(hyperparameters={"model_mode": mode}))


def test_a_missing_batch_size_is_refused():
    with pytest.raises(InputError, match="global_batch_size: it is missing"):
        import_config(changed(hyperparameters={"global_batch_size": None}))


def test_sts_b_is_a_regression():
    experiment = changed(
        hyperparameters={"model_mode": "sequence-classification", "finetuning_task": "stsb"},
        data={"dataset_name": "glue", "dataset_config_name": "stsb"},
    )
    spec = import_config(experiment).spec
    assert spec["task"]["type"] == "text_regression"
    assert spec["data"]["columns"] == {"text": "sentence1", "text_pair": "sentence2", "label": "label"}


def test_weights_from_scratch_are_asked_for():
    experiment = changed(hyperparameters={"use_pretrained_weights": False})
    assert import_config(experiment).spec["model"]["initialise"] == "from_config"


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"hyperparameters": {"learning_rate": "high"}}, "hyperparameters.learning_rate"),
        ({"hyperparameters": {"num_warmup_steps": "few"}}, "hyperparameters.num_warmup_steps"),
        ({"searcher": {"max_length": {"epochs": "three"}}}, "searcher.max_length.epochs"),
        ({"min_validation_period": {"batches": "often"}}, "min_validation_period.batches"),
    ],
)
def test_what_is_no_number_is_named(sections: dict[str, Any], key: str):
    with pytest.raises(InputError, match=f"{key}: .* is not a number"):
        import_config(changed(**sections))
