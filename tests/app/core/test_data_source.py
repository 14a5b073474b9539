"""What of the data section outlives the choice of another source; the sources are the real ones."""

from pathlib import Path

import pytest

from app.core.draft.data_source import (
    change_source,
    data_name,
    decides_parts,
    forget_unused_columns,
    is_data,
    split_kind,
    used_parts,
)
from app.core.draft.draft import Draft
from app.core.draft.presets import PresetOverlay
from backend import catalog
from backend.contract.catalog import Column, TaskEntry

TASK = TaskEntry(
    name="causal_lm",
    title="Causal language modeling",
    description="",
    head="causal_lm",
    columns=[
        Column("text", "Text", "", when={"rows": ["blocks", "examples"]}),
        Column("prompt", "Prompt", "", when={"rows": ["instructions"]}),
        Column("label", "Label", ""),
    ],
    metrics=[],
    default_metric="loss",
    settings={"properties": {"rows": {"default": "blocks"}}},
)

SOURCES = {source.name: source for source in catalog.catalog().sources}
RTE = {"data": {"source": "glue", "task": "rte", "train": "train", "validation": "dev"}}


@pytest.mark.parametrize(
    ("source", "kind"),
    [("files", "files"), ("squad", "files"), ("conll", "files"), ("parallel", "files"), ("hub", "names"),
     ("glue", "own"), ("xnli", "own"), ("tatoeba", "own"), ("demo", "fixed")],
)  # fmt: skip
def test_each_source_names_its_splits_in_its_own_way(source: str, kind: str):
    assert split_kind(SOURCES[source]) == kind


def changed(data: dict, name: str) -> dict:
    draft = Draft({"data": data})
    change_source(draft, SOURCES[data["source"]], SOURCES[name])
    return draft.values()["data"]


def test_settings_of_the_source_before_are_gone():
    before = {"source": "glue", "folder": "/glue", "task": "rte", "train": "train", "validation": "dev", "max_rows": 9}
    assert changed(before, "demo") == {"source": "demo", "columns": {}, "max_rows": 9}


def test_files_stay_for_a_source_that_reads_files_too():
    before = {"source": "files", "train": "a.txt", "validation": "b.txt", "format": "text"}
    assert changed(before, "conll") == {"source": "conll", "train": "a.txt", "validation": "b.txt", "columns": {}}


def test_a_hub_data_set_begins_with_its_usual_split():
    after = changed({"source": "files", "train": "a.csv", "validation": "b.csv"}, "hub")
    assert (after["train"], after["validation"]) == ("train", 0.1)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"source": "files", "train": "/data/reviews.csv"}, "reviews"),
        ({"source": "hub", "name": "stanfordnlp/imdb", "train": "train"}, "imdb"),
        ({"source": "glue", "folder": "/glue", "task": "rte", "train": "train"}, "rte"),
        ({"source": "tatoeba", "folder": "/data/eng-sin/"}, "eng-sin"),
        ({"source": "files", "train": ["a.csv", "b.csv"]}, "a"),
        ({"source": "files", "train": ["/austen/emma.txt", "/austen/persuasion.txt"]}, "austen"),
        ({"source": "files", "train": ["/austen/emma.txt", "/eliot/romola.txt"]}, "emma"),
        ({"source": "files", "train": ["../emma.txt", "../persuasion.txt"]}, "emma"),
        ({"source": "files", "train": ["/emma.txt", "/persuasion.txt"]}, "emma"),
        ({"source": "squad", "train": "/data/squad/train.json"}, "squad"),
        ({"source": "conll", "train": "/data/tweets/Training.conll.gz"}, "tweets"),
        ({"source": "files", "train": "train.csv"}, "train"),
        ({"source": "files", "train": "/train.csv"}, "train"),
    ],
)
def test_a_run_is_named_for_its_data(data: dict, name: str):
    assert data_name(Draft({"data": data}), SOURCES[data["source"]]) == name


def test_a_preset_brings_its_source_whole():
    draft = Draft(
        {"data": {"source": "files", "train": "a.csv", "validation": 0.1, "format": "csv", "columns": {"text": "t"}}}
    )
    PresetOverlay(draft).lay(RTE, None, SOURCES)
    assert draft.values()["data"] == {**RTE["data"], "columns": {}}


def test_chosen_data_stay_where_a_preset_names_only_the_usual_source():
    data = {"source": "files", "train": "tagged.jsonl", "validation": 0.1}
    draft = Draft({"data": dict(data)})
    PresetOverlay(draft).lay({"data": {"source": "conll"}, "training": {"epochs": 3}}, None, SOURCES)
    assert draft.values()["data"] == data


def test_another_model_forgets_the_commit_of_the_one_before():
    draft = Draft({"model": {"name_or_path": "own/model", "revision": "c0ffee", "trust_remote_code": True}})
    PresetOverlay(draft).lay({"model": {"name_or_path": "gpt2"}})
    assert draft.values()["model"] == {"name_or_path": "gpt2"}


def test_the_data_come_back_when_a_preset_of_another_source_is_taken_off():
    before = {"data": {"source": "files", "train": "a.csv", "validation": 0.1, "columns": {"text": "t"}}}
    draft = Draft(before)
    overlay = PresetOverlay(draft)
    overlay.lay(RTE, None, SOURCES)
    draft.set("data.columns.text", "sentence1")
    overlay.take_off()
    assert draft.values()["data"] == before["data"]


def test_a_folder_that_was_chosen_for_a_preset_is_kept_for_the_next():
    draft = Draft({"data": {"source": "files", "train": "a.csv"}})
    overlay = PresetOverlay(draft)
    overlay.lay(RTE, None, SOURCES)
    draft.set("data.folder", "/glue")
    overlay.lay({"data": {**RTE["data"], "task": "cola"}}, None, SOURCES)
    assert draft.values()["data"] == {**RTE["data"], "task": "cola", "folder": "/glue", "columns": {}}


def test_options_of_another_optimizer_are_forgotten():
    draft = Draft({"training": {"optimizer": "adafactor", "optimizer_options": {"scale_parameter": True}}})
    PresetOverlay(draft).lay({"training": {"optimizer": "sgd", "optimizer_options": {"momentum": 0.0}}})
    assert draft.values()["training"] == {"optimizer": "sgd", "optimizer_options": {"momentum": 0.0}}


def names(draft: Draft) -> list[str]:
    return [part.name for part in used_parts(TASK, draft)]


def test_a_setting_that_was_not_touched_counts_by_its_default():
    assert names(Draft({"task": {"type": "causal_lm"}})) == ["text", "label"]


def test_another_value_asks_for_other_columns():
    assert names(Draft({"task": {"rows": "instructions"}})) == ["prompt", "label"]


def test_columns_that_play_no_more_are_forgotten():
    draft = Draft({"task": {"rows": "instructions"}, "data": {"columns": {"text": "body", "label": "stars"}}})
    forget_unused_columns(TASK, draft)
    assert draft.get("data.columns") == {"label": "stars"}


def test_the_column_of_one_label_becomes_that_of_several():
    [task] = [one for one in backend_tasks() if one.name == "text_classification"]
    draft = Draft(
        {"task": {"type": "text_classification", "labels_per_row": "many"}, "data": {"columns": {"label": "tags"}}}
    )
    forget_unused_columns(task, draft)
    assert draft.get("data.columns") == {"labels": "tags"}


def backend_tasks() -> list[TaskEntry]:
    return catalog.catalog().tasks


def test_only_some_settings_decide():
    assert decides_parts(TASK, "task.rows")
    assert not decides_parts(TASK, "task.max_length")
    assert not decides_parts(None, "task.rows")


def test_a_file_or_folder_without_a_model_is_data(tmp_path: Path):
    texts, model, run = tmp_path / "texts", tmp_path / "model", tmp_path / "run"
    data = (texts / "a.txt", model / "a.csv")
    for file in (*data, model / "config.json", model / "vocab.txt", run / "spec.yaml"):
        file.parent.mkdir(exist_ok=True)
        file.touch()
    assert all(map(is_data, map(str, (texts, *data))))
    assert not any(map(is_data, map(str, (model, model / "vocab.txt", run, "google/mt5-small"))))
