"""A PyMarlin config becomes a spec, the old layout and the plugin's."""

from typing import Any

import pytest

from backend.contract.errors import InputError
from backend.importing.pymarlin import import_config, recognises

FIRST: dict[str, Any] = {
    "dmod": {"input_dir": "RTE", "output_dir": "processed"},
    "dproc": {"task": "RTE", "max_seq_len": 128, "tokenizer": "bert-base-uncased"},
    "tmod": {"task": "RTE", "max_lr": 2e-5, "warmup_prop": 0.06},
    "model": {"hf_model": "roberta-base"},
    "trainer": {
        "train_batch_size": 32,
        "val_batch_size": 64,
        "epochs": 10,
        "backend": "sp",
        "max_train_steps_per_epoch": 5,
    },
}
PLUGIN: dict[str, Any] = {
    "data": {"train_filepath": "train.csv", "val_filepath": "dev.csv", "file_format": "csv", "header": 0, "text_a_col": "tweet",
             "label_col": "mood", "labels_list": ["bad", "good"]},
    "module": {"metric": "acc_and_f1", "max_lr": 4e-5, "warmup_prop": 0.1, "max_seq_len": 64, "model_name_or_path": "roberta-base"},
    "trainer": {"train_batch_size": 16, "epochs": 3, "clip_grads": False},
    "distill": {"enable": True, "student_layers": [1]},
}  # fmt: skip


def test_both_layouts_are_known():
    assert recognises(FIRST)
    assert recognises(PLUGIN)
    assert not recognises({"trainer": {}})


def test_the_first_example_reads_a_glue_folder():
    spec = import_config(FIRST).spec
    assert spec["data"] == {"source": "glue", "folder": "RTE", "task": "rte"}
    assert spec["model"] == {"name_or_path": "roberta-base"}
    assert (spec["training"]["batch_size"], spec["training"]["epochs"], spec["training"]["learning_rate"]) == (
        32,
        10,
        2e-5,
    )


def test_what_nobody_knows_is_named():
    assert import_config(FIRST).unmatched == ["trainer.max_train_steps_per_epoch: 5"]


def test_the_plugin_names_columns_labels_and_metric():
    spec = import_config(PLUGIN).spec
    assert spec["data"] == {
        "train": "train.csv",
        "validation": "dev.csv",
        "columns": {"text": "tweet", "label": "mood"},
    }
    assert spec["task"] == {"type": "text_classification", "max_length": 64, "labels": ["bad", "good"]}
    assert spec["evaluation"]["best_metric"] == "f1_weighted"


def test_clipping_that_was_off_stays_off():
    assert import_config(PLUGIN).spec["training"]["max_gradient_norm"] is None


def test_distillation_is_named():
    assert "distill: distillation has no counterpart" in import_config(PLUGIN).unmatched


def test_a_single_label_is_a_score():
    config = {**PLUGIN, "data": {**PLUGIN["data"], "labels_list": [None]}}
    spec = import_config(config).spec
    assert spec["task"]["type"] == "text_regression"
    assert spec["data"]["columns"] == {"text": "tweet", "label": "mood"}


def test_a_config_without_data_is_refused():
    with pytest.raises(InputError, match=r"dmod\.input_dir"):
        import_config({**FIRST, "dmod": {}})
