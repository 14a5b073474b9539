"""Tests that a run which left an adapter alone is asked like any other, its checkpoints too, and misses its model clearly."""

import json
import shutil
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from backend.commands import export
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.run.folder import RunFolder
from backend.engines.engine import LoadRequest
from backend.engines.torch.engine import TorchEngine
from backend.inference import interactive
from backend.models import saved_model
from backend.models.saved_model import BASE, base_fact
from backend.preflight import model_options
from backend.preflight.datasets import make_task, with_max_length
from backend.preflight.resolve import resolve
from backend.tokenizers.loading import open_tokenizer


@dataclass(frozen=True)
class Adapted:
    """A run whose model says no and whose checkpoint says yes, and the model that both need."""

    run: RunFolder
    base: Path


@pytest.fixture(scope="module")
def adapted(tmp_path_factory: pytest.TempPathFactory) -> Adapted:
    home = tmp_path_factory.mktemp("runs")
    run, base = RunFolder(home / "2026-11-21-1530-adapted"), home / "base"
    shutil.copytree(resource("demo", "bert-tiny"), base)
    run.checkpoint(4).mkdir(parents=True)
    values = {"version": 1, "name": "adapted", "task": {"type": "text_classification"}, "data": {"train": "x.csv"}}
    values |= {"model": {"name_or_path": str(base)}, "hardware": {"device": "cpu"}}
    values |= {"training": {"learning_rate": 2e-5}, "adapter": {"type": "lora", "rank": 2, "saved": "adapter"}}
    run.spec.write_text(spec_file.dump(values), encoding="utf-8")
    spec = resolve(values, run.path)
    task, tokenizer = make_task(spec), open_tokenizer(str(base))
    facts, engine = with_max_length(task, task.facts_of_model(("no", "yes")), base), TorchEngine()
    engine.load(
        LoadRequest(
            folder=base,
            head=task.head_facts(facts),
            model=spec.model,
            training=spec.training,
            devices=("cpu",),
            precision="float32",
            vocabulary=len(tokenizer),
            adapter=model_options.adapter_settings(spec),
        )
    )
    note = {"task": spec.task, "facts": facts, "columns": {"text": "text"}, BASE: base_fact(base, str(base))}
    parameters = dict(engine._model.named_parameters())
    with torch.no_grad():
        for name, parameter in parameters.items():
            if ".lora_B." in name:
                parameter.normal_(generator=torch.Generator().manual_seed(1))
        parameters["classifier.bias"].copy_(torch.tensor([-50.0, 50.0]))
        engine.save(run.checkpoint(4))()
        (run.checkpoint(4) / saved_model.NOTE).write_text(json.dumps(note), encoding="utf-8")
        parameters["classifier.bias"].copy_(torch.tensor([50.0, -50.0]))

    def fill(folder: Path) -> None:
        engine.export(folder)
        tokenizer.save_pretrained(folder)

    saved_model.write(run.model, fill, note)
    return Adapted(run, base)


def said(target: Path) -> str:
    return interactive.InteractivePredictor(str(target)).answer([{"text": "Is it?"}]).rows[0]["prediction"]


def test_run_and_its_checkpoint_answer_with_their_own_weights(adapted: Adapted) -> None:
    assert not (adapted.run.model / "model.safetensors").exists()
    assert [said(adapted.run.path), said(adapted.run.model), said(adapted.run.checkpoint(4))] == ["no", "no", "yes"]


def test_checkpoint_of_a_run_that_goes_on_answers_without_its_model(adapted: Adapted) -> None:
    adapted.run.model.rename(adapted.run.path / "later")
    try:
        assert said(adapted.run.checkpoint(4)) == "yes"
        with pytest.raises(InputError, match="choose one of its checkpoints, or let it finish"):
            said(adapted.run.path)
    finally:
        (adapted.run.path / "later").rename(adapted.run.model)


def test_adapter_leaves_merged_as_a_whole_model(adapted: Adapted, tmp_path: Path) -> None:
    for name, run, right in (("model", adapted.run.path, "no"), ("step", adapted.run.checkpoint(4), "yes")):
        folder = tmp_path / name
        export.export_model(Namespace(run=str(run), model=folder, merged=True, dtype="float32"))
        assert (folder / "model.safetensors").is_file()
        assert not (folder / "adapter_config.json").exists()
        assert said(folder) == right


def test_model_that_is_gone_is_said(adapted: Adapted) -> None:
    adapted.base.rename(adapted.base.with_name("moved"))
    try:
        with pytest.raises(
            InputError, match=r"contains only an adapter, and its model .*base is not on this computer; restore it"
        ):
            said(adapted.run.path)
    finally:
        adapted.base.with_name("moved").rename(adapted.base)


def test_model_that_has_changed_is_said(adapted: Adapted) -> None:
    file = adapted.base / "model.safetensors"
    before = file.read_bytes()
    save_file({name: value + 1 for name, value in load_file(file).items()}, file, {"format": "pt"})
    try:
        for target in (adapted.run.path, adapted.run.checkpoint(4)):
            with pytest.raises(InputError, match="have changed since it was trained; restore the original model"):
                said(target)
    finally:
        file.write_bytes(before)
