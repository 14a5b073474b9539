"""Bad input gets one clear sentence with the way out and exit code 2; no run is written."""

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from end_to_end.burnish_process import Burnish

from backend.contract.resources import resource

DEMO_MODEL = resource("demo", "bert-tiny")


def refused(burnish: Burnish, spec: Path, *says: str) -> None:
    before = sorted(path for path in burnish.home.rglob("*") if "cache" not in path.parts)
    done = burnish("train", str(spec))
    assert done.returncode == 2, done.stderr
    sentence = done.stderr.strip().splitlines()[-1]
    for words in says:
        assert words in sentence
    assert "Traceback" not in done.stderr
    after = sorted(path for path in burnish.home.rglob("*") if "cache" not in path.parts)
    assert [path for path in after if path not in before and path != burnish.runs] == []
    assert not burnish.runs.exists() or list(burnish.runs.iterdir()) == []


LATIN_1 = "text,label\ncafé,yes\nthé,no\n".encode("latin-1")
DATA = {
    "missing file": (None, ["data.train", "train.csv"]),
    "empty file": (b"", ["train.csv", "empty"]),
    "header only": (b"text,label\n", ["train.csv", "no row"]),
    "duplicate columns": (b"text,label,text\na,b,c\n", ["train.csv", "two columns", "rename"]),
    "nul bytes": (b"text,label\na\x00b,yes\nc,no\n", ["train.csv", "NUL"]),
    "latin-1 beside utf-8": (LATIN_1, ["train.csv", "different encodings", "UTF-8: validation.csv", "again as UTF-8"]),
    "unbalanced quotes": (b'text,label\n"open,yes\nother,no\n', ["train.csv", "quot", "line 2"]),
    "single class": (b"text,label\na,yes\nb,yes\n", ["label", "single label"]),
}


@pytest.mark.parametrize("case", DATA)
def test_unusable_training_data_is_named(burnish: Burnish, case: str):
    content, says = DATA[case]
    (burnish.home / "train.csv").unlink()
    if content is not None:
        (burnish.home / "train.csv").write_bytes(content)
    refused(burnish, burnish.spec(), *says)


def test_latin_1_is_shown_as_windows_1252_would_read_it(burnish: Burnish):
    for name in ("train.csv", "validation.csv"):
        (burnish.home / name).write_bytes(LATIN_1)
    refused(burnish, burnish.spec(), "train.csv", "line 2", "“café,yes”", "data.encoding=windows-1252")


def test_a_wrong_column_is_answered_with_those_there_are(burnish: Burnish):
    spec = burnish.spec(data={"columns": {"text": "sentence", "label": "label"}})
    refused(burnish, spec, "data.columns.text", "'sentence'", "text, label, source")


def test_a_label_that_training_does_not_know_is_named_with_its_line(burnish: Burnish):
    (burnish.home / "validation.csv").write_text("text,label\nfine,positive\nwell,mixed\n")
    refused(burnish, burnish.spec(), "validation.csv:3", "'mixed'", "task.labels")


def test_a_metric_that_does_not_exist_is_answered_with_those_that_do(burnish: Burnish):
    refused(burnish, burnish.spec(evaluation={"best_metric": "bleu"}), "'bleu'", "accuracy")


def test_a_device_that_is_not_here_is_refused_before_anything_is_written(burnish: Burnish):
    refused(burnish, burnish.spec(hardware={"device": "tpu"}), "hardware.device", "cpu")


def test_predictions_never_overwrite_the_file_that_is_read(burnish: Burnish):
    before = (burnish.home / "train.csv").read_bytes()
    done = burnish("predict", str(DEMO_MODEL), "--data", "train.csv", "--output", "train.csv")
    assert done.returncode == 2
    assert "--output" in done.stderr
    assert (burnish.home / "train.csv").read_bytes() == before


@pytest.mark.parametrize("name", ["LD_LIBRARY_PATH", "HF_ENDPOINT", "HF_TOKEN"])
def test_a_spec_loads_no_code_and_keeps_no_secret(burnish: Burnish, name: str):
    refused(burnish, burnish.spec(hardware={"environment": {name: "x"}}), "hardware.environment", name)


def test_an_unknown_setting_names_the_valid_ones(burnish: Burnish):
    refused(burnish, burnish.spec(training={"lr": 1}), "training.lr", "learning_rate")


def test_a_spec_from_the_future_is_refused(burnish: Burnish):
    refused(burnish, burnish.spec(version=2), "version", "update Burnish")


def model_copy(burnish: Burnish, **config: Any) -> Path:
    folder = burnish.home / "model"
    shutil.copytree(DEMO_MODEL, folder)
    if config:
        values = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(values | config))
    return folder


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def lfs_pointer(folder: Path) -> None:
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 8776200\n"
    (folder / "model.safetensors").write_text(text)


def broken_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 50) + b'{"weight": nonsense' + b" " * 31)


def cut_short(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100_000])


def without_tokenizer(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        (folder / name).unlink()


def without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


MODELS = {
    without_weights: ["weights"],
    lfs_pointer: ["git lfs pull"],
    broken_header: ["model.safetensors"],
    cut_short: ["model.safetensors"],
    without_tokenizer: ["tokenizer", "model.tokenizer"],
    without_config: ["config.json"],
}


@pytest.mark.parametrize("damage", MODELS, ids=lambda damage: damage.__name__)
def test_an_unusable_model_folder_is_named_with_the_way_out(burnish: Burnish, damage: Any):
    folder = model_copy(burnish)
    damage(folder)
    refused(burnish, burnish.spec(model={"name_or_path": "model"}), *MODELS[damage])


def test_a_model_for_images_is_refused_by_name(burnish: Burnish):
    model_copy(burnish, model_type="vit", architectures=["ViTForImageClassification"])
    refused(burnish, burnish.spec(model={"name_or_path": "model"}), "vit", "images")


def test_a_model_for_another_task_is_refused(burnish: Burnish):
    spec = burnish.spec(task={"type": "causal_lm"}, data={"columns": {"text": "text"}})
    refused(burnish, spec, "bert", "decoder")


def test_a_length_over_the_models_limit_is_refused(burnish: Burnish):
    refused(burnish, burnish.spec(task={"max_length": 1000}), "max_length", "512")


def test_a_set_with_a_bad_value_names_key_value_and_reason(burnish: Burnish):
    spec = burnish.spec()
    done = burnish("train", str(spec), "--set", "training.schedule=stairs")
    assert done.returncode == 2
    assert "training.schedule" in done.stderr
    assert "'stairs'" in done.stderr
    assert "cosine" in done.stderr
    assert not burnish.runs.exists() or list(burnish.runs.iterdir()) == []
