"""Tests that a run's checkpoint is asked like a model: its weights, the run's tokenizer and labels."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from backend.contract import spec_file
from backend.contract.errors import InputError, RunFailed
from backend.contract.resources import resource
from backend.contract.run.folder import RunFolder
from backend.engines.torch.frozen_weights import is_float32
from backend.inference import interactive

MODEL = resource("demo", "bert-tiny")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run whose last model says no, and whose checkpoint, without the encoder that was frozen, says yes."""
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "2026-11-21-1530-answers")
    folder.checkpoint(4).mkdir(parents=True)
    model = AutoModelForSequenceClassification.from_pretrained(MODEL, id2label={0: "no", 1: "yes"})
    AutoTokenizer.from_pretrained(MODEL).save_pretrained(folder.model)
    for place, bias in ((folder.model, [5.0, -5.0]), (folder.checkpoint(4), [-5.0, 5.0])):
        with torch.no_grad():
            model.classifier.bias.copy_(torch.tensor(bias))
        model.save_pretrained(place)
    weights = load_file(folder.checkpoint(4) / "model.safetensors")
    head = {name: value for name, value in weights.items() if name.startswith("classifier")}
    save_file(head, folder.checkpoint(4) / "model.safetensors", {"format": "pt"})
    spec = {"version": 1, "name": "answers", "task": {"type": "text_classification"}, "data": {"train": "x.csv"}}
    spec |= {"model": {"name_or_path": str(MODEL)}, "hardware": {"device": "cpu"}}
    folder.spec.write_text(spec_file.dump(spec), encoding="utf-8")
    return folder


def said(target: Path) -> str:
    return interactive.InteractivePredictor(str(target)).answer([{"text": "Is it?"}]).rows[0]["prediction"]


def test_checkpoint_answers_with_its_own_weights(run: RunFolder) -> None:
    assert [said(run.path), said(run.checkpoint(4))] == ["no", "yes"]


def test_a_merged_model_is_not_quantized_again(run: RunFolder, tmp_path: Path) -> None:
    copied = RunFolder(tmp_path / run.path.name)
    shutil.copytree(run.path, copied.path)
    values = spec_file.read_run(copied.spec)
    values |= {"adapter": {"type": "lora"}, "model": {**values["model"], "weights": "nf4"}}
    copied.spec.write_text(spec_file.dump(values), encoding="utf-8")
    predictor = interactive.InteractivePredictor(str(copied.path))
    assert is_float32(predictor._session.engine._model)


def test_damaged_checkpoint_is_said(run: RunFolder) -> None:
    folder = run.checkpoint(5)
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"nothing")

    with pytest.raises(RunFailed, match="this checkpoint cannot be read"):
        interactive.InteractivePredictor(str(folder))


def test_checkpoint_that_does_not_say_its_labels_waits_for_the_model(run: RunFolder) -> None:
    (run.model / "config.json").rename(run.model / "gone.json")

    with pytest.raises(InputError, match="cannot be used on its own; let the run finish"):
        interactive.InteractivePredictor(str(run.checkpoint(4)))
    (run.model / "gone.json").rename(run.model / "config.json")
