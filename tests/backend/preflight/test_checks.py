"""From a spec's text to checked settings and rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from backend import registry
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.data.rows import Rows
from backend.hardware.devices import list_devices
from backend.preflight import checks, cost
from backend.preflight.datasets import choose_columns, load_splits, model_labels
from backend.preflight.resolve import read_spec, resolve

PRESETS = sorted(resource("presets").glob("*.yaml"))


def values(**sections: Any) -> dict[str, Any]:
    return {
        "task": {"type": "text_classification"},
        "model": {"name_or_path": "org/model"},
        "data": {"train": "train.csv"},
    } | sections


def rows_with(*columns: str) -> Rows:
    return Rows(pa.table({name: ["x"] for name in columns}), ("f.csv",), np.zeros(1, np.int32), np.ones(1), "f")


def task():
    kind = registry.find("task", "text_classification", "task.type")
    return kind(kind.Settings())


def test_relative_paths_are_taken_from_the_spec_files_folder(tmp_path: Path):
    (tmp_path / "model").mkdir()
    (tmp_path / "spec.yaml").write_text(
        spec_file.dump(values(model={"name_or_path": "model"}, data={"train": ["a.csv", "b.csv"], "validation": 0.1}))
    )
    spec = read_spec(tmp_path / "spec.yaml")
    assert spec.model.name_or_path == str(tmp_path / "model")
    assert spec.data.train == [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    assert spec.data.validation == 0.1


def test_a_hub_id_stays_an_id(tmp_path: Path):
    assert resolve(values(), tmp_path).model.name_or_path == "org/model"


def test_open_sections_come_back_complete(tmp_path: Path):
    assert resolve(values(), tmp_path).task["labels"] is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"task": {"type": "poetry"}}, "text_classification"),
        ({"task": {"type": "text_classification", "max_lenght": 3}}, "max_length"),
        ({"data": {"source": "cloud"}}, "files"),
        ({"data": {"train": "a.csv", "delimeter": ";"}}, "delimiter"),
        ({"hardware": {"engine": "abacus"}}, "torch"),
        ({"hardware": {"thread": 2}}, "threads"),
        ({"evaluation": {"best_metric": "accuracy"}}, "data.validation"),
        ({"training": {"early_stopping": 2}}, "data.validation"),
        ({"adapter": {"type": "lore"}}, "lora"),
        ({"hardware": {"strategy": "zero"}}, "hardware.strategy: .* input should be 'ddp' or 'fsdp'"),
    ],
)
def test_a_mistake_names_its_key_and_the_choices(tmp_path: Path, change: dict[str, Any], says: str):
    with pytest.raises(InputError, match=says):
        resolve(values(**change), tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hardware": {"processes": 1}}, "hardware.strategy: .* this run has one; raise hardware.processes"),
        ({"hardware": {"engine": "jax"}}, "hardware.strategy: .* hardware.parallelism: fsdp"),
        ({"model": {"name_or_path": "org/model", "weights": "nf4"}}, "model.weights: .* choose bfloat16"),
        ({"training": {"optimizer": "adamw_8bit"}}, "training.optimizer: adamw_8bit needs all of a weight"),
        ({"training": {"optimizer": "adafactor"}}, "training.optimizer: adafactor needs all of a weight"),
        ({"hardware": {"precision": "float16"}}, "hardware.precision: fsdp computes in float32 or bfloat16"),
        ({"hardware": {"strategy": "ddp", "cpu_offload": True}}, "hardware.cpu_offload: this needs hardware.strategy: fsdp"),
    ],
)  # fmt: skip
def test_what_cannot_be_divided_is_refused_with_the_way_out(tmp_path: Path, change: dict[str, Any], says: str):
    hardware = {"strategy": "fsdp", "processes": 2, **change.pop("hardware", {})}
    with pytest.raises(InputError, match=says):
        resolve(values(hardware=hardware, **change), tmp_path)


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_every_preset_is_part_of_a_valid_spec(tmp_path: Path, path: Path):
    fragment = spec_file.read(path)["spec"]
    merged = values(data={"train": "train.csv", "validation": 0.1})
    for section, own in fragment.items():
        merged[section] = {**merged.get(section, {}), **own}
    source = registry.find("source", merged["data"].get("source", "files"), "data.source")
    for name, field in source.Settings.model_fields.items():
        if field.is_required():  # where the data lies is for a person to say
            merged["data"].setdefault(name, str(tmp_path))
    assert resolve(merged, tmp_path).task["type"] == fragment["task"]["type"]


def test_columns_are_guessed_by_their_usual_names():
    assert choose_columns(task(), {}, rows_with("id", "Sentence", "LABEL")) == {"text": "Sentence", "label": "LABEL"}


def test_a_column_set_to_null_is_not_guessed():
    chosen = choose_columns(task(), {"text_pair": None}, rows_with("text", "sentence2", "label"))
    assert "text_pair" not in chosen


def test_a_column_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(InputError, match=r"no column 'body'; the columns are text, label"):
        choose_columns(task(), {"text": "body"}, rows_with("text", "label"))


def test_a_needed_column_that_cannot_be_guessed_is_asked_for():
    with pytest.raises(InputError, match=r"data\.columns\.label: specify which column"):
        choose_columns(task(), {}, rows_with("text", "verdict"))


def test_labels_are_not_needed_to_predict():
    assert choose_columns(task(), {"text": "text", "label": "label"}, rows_with("text"), to_predict=True) == {
        "text": "text"
    }


def test_nameless_labels_of_a_checkpoint_do_not_count(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}')
    assert model_labels(tmp_path) == ()


def test_labels_of_a_checkpoint_come_in_the_order_of_their_ids(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"id2label": {"10": "k", "0": "a", "9": "j"}}')
    assert model_labels(tmp_path) == ("a", "j", "k")


def files(tmp_path: Path, **splits: str) -> dict[str, str]:
    """The splits as CSV files of these lines."""
    for split, lines in splits.items():
        (tmp_path / f"{split}.csv").write_text(lines, encoding="utf-8")
    return {split: str(tmp_path / f"{split}.csv") for split in splits}


LABELLED = "text,label\ngood,a\nbad,b\n"


def test_test_rows_without_labels_are_kept(tmp_path: Path):
    spec = resolve(values(data=files(tmp_path, train=LABELLED, test="text,label\nfair,\nfoul,a\n")), tmp_path)
    material = load_splits(spec, None)
    assert len(material.rows["test"]) == 2
    assert material.rows["test"].skipped == ()


def test_test_rows_need_no_column_of_labels(tmp_path: Path):
    spec = resolve(values(data=files(tmp_path, train=LABELLED, test="text\nfair\n")), tmp_path)
    assert len(load_splits(spec, None).rows["test"]) == 1


@pytest.mark.parametrize(("split", "header"), [("validation", "text"), ("validation", "body,label"), ("test", "body")])
def test_a_split_that_lacks_a_column_of_the_training_data_is_refused(tmp_path: Path, split: str, header: str):
    data = files(tmp_path, train=LABELLED, **{split: f"{header}\n{header}\n"})
    with pytest.raises(InputError, match=rf"data\.{split}: {split}\.csv has no column '(text|label)'"):
        load_splits(resolve(values(data=data), tmp_path), None)


def test_what_the_task_noticed_is_told_and_no_fact(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"id2label": {"0": "sad", "1": "glad"}}')
    material = load_splits(resolve(values(data=files(tmp_path, train=LABELLED)), tmp_path), tmp_path)
    assert "sad, glad" in material.notes[0]
    assert "notes" not in material.facts


def test_a_source_with_splits_of_its_own_needs_no_validation_to_be_named(tmp_path: Path):
    spec = resolve(values(data={"source": "demo"}, evaluation={"best_metric": "accuracy"}), tmp_path)
    assert spec.data.validation is None


def test_a_pair_is_not_predicted_from_its_first_text_alone():
    with pytest.raises(InputError, match=r"data\.columns\.text_pair: there is no column 'sentence2'"):
        choose_columns(task(), {"text": "text", "text_pair": "sentence2"}, rows_with("text"), to_predict=True)


@pytest.mark.parametrize("text", ["a\0b", "a\ud83db"])
@pytest.mark.parametrize(
    ("section", "setting"), [("data", {"train": "{}"}), ("model", {"name_or_path": "{}"}), ("data", {"columns": {"text": "{}"}}),
                             ("model", {"revision": "{}"}), ("data", {"columns": {"{}": "text"}})],
)  # fmt: skip
def test_text_that_no_file_can_hold_is_refused_in_values_too(section: str, setting: dict, text: str, tmp_path: Path):
    def filled(value: Any) -> Any:
        return (
            {filled(k): filled(v) for k, v in value.items()}
            if isinstance(value, dict)
            else value.format(text)
            if "{}" in value
            else value
        )

    given = values()
    given[section] = given[section] | filled(setting)
    with pytest.raises(InputError, match=r"NUL|half a character") as refused:
        resolve(given, tmp_path)
    assert str(refused.value).isascii()


@pytest.mark.parametrize(
    ("model", "words"),
    [({"config": {"hidden_size": 129}}, "attention heads"), ({"tokenizer": "/no/such/folder"}, "no such folder")],
)
def test_train_refuses_before_it_writes_a_run_what_plan_refuses(model: dict, words: str, tmp_path: Path):
    rows = resource("demo", "sentiment", "validation.csv")
    given = values(
        model={"name_or_path": str(resource("demo", "bert-tiny")), **model},
        data={"train": str(rows), "validation": str(rows.with_name("train.csv"))},
    )
    spec = resolve(given, tmp_path)
    with pytest.raises(InputError, match=words) as refused:
        checks.check(spec)
    with pytest.raises(InputError) as planned:
        cost.plan(spec, list_devices("torch"))
    assert str(planned.value) == str(refused.value)


def test_labels_that_are_listed_and_occur_once_cannot_be_set_aside(tmp_path: Path):
    (tmp_path / "train.csv").write_text("text,label\nwarm,good\ncold,bad\n")
    task = {"type": "text_classification", "labels": ["good", "bad"]}
    spec = resolve(values(task=task, data={"train": "train.csv", "validation": 0.2}), tmp_path)
    with pytest.raises(InputError, match=r"has its own label in the column 'label'.*data\.columns\.label"):
        load_splits(spec, None)
