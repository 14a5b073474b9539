"""The JAX engine in whole runs, where no torch can be imported: a machine with TPUs needs none."""

import csv
import json
from pathlib import Path

import pytest
from end_to_end.burnish_process import ROOT, Burnish, events_of

from backend.contract.run.events import ModelLoaded, ProgramCompiled, RunFinished, StepFinished

NO_TORCH = """
import importlib.machinery

found = importlib.machinery.PathFinder.find_spec


def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in ("torch", "accelerate", "peft") else found(name, path, target)


importlib.machinery.PathFinder.find_spec = find_spec
"""


@pytest.fixture
def torchless(burnish: Burnish) -> Burnish:
    """A home on a machine without torch."""
    (burnish.home / "sitecustomize.py").write_text(NO_TORCH, encoding="utf-8")
    burnish.environment["PYTHONPATH"] = f"{burnish.home}:{ROOT}"
    burnish.in_process = False
    return burnish


def with_jax(burnish: Burnish, **sections: object) -> Path:
    path = burnish.spec(**sections)
    path.write_text(path.read_text(encoding="utf-8").replace("threads: 1", "engine: jax"), encoding="utf-8")
    return path


def test_a_run_trains_is_measured_and_predicts(torchless: Burnish):
    # A run that may wait has a supervisor and an engine of their own; the command that follows it is in this process, for
    # the refusal below is that of a command without torch.
    command = Burnish(torchless.home, torchless.environment)
    done = command("train", str(with_jax(torchless, task={"max_length": 8})), "--queue")  # one length: each is compiled
    assert done.returncode == 0, done.stderr
    folder = torchless.run_folder()
    loaded = next(event for event in events_of(folder) if isinstance(event, ModelLoaded))
    assert (loaded.architecture, loaded.parameters) == ("BertForSequenceClassification", 4_386_178)
    steps = [event for event in events_of(folder) if isinstance(event, StepFinished)]
    assert [event.step for event in steps] == [1, 2, 3, 4, 5, 6]
    compiled = [event for event in events_of(folder) if isinstance(event, ProgramCompiled)]
    assert [event.count for event in compiled] == list(range(1, len(compiled) + 1))
    assert max(event.seconds for event in compiled) > 3 * steps[0].seconds  # which is warm: compiling is told apart
    validation = str(torchless.home / "validation.csv")
    # In this process, for the run's own predictions were made without torch too.
    predicted = Burnish(torchless.home)("predict", str(folder.path), "--data", validation, "--output", "out.csv")
    assert predicted.returncode == 0, predicted.stderr
    with (torchless.home / "out.csv").open(encoding="utf-8", newline="") as file:
        again = [row["prediction"] for row in csv.DictReader(file)]
    with (folder.path / "predictions.csv").open(encoding="utf-8", newline="") as file:
        assert again == [row["prediction"] for row in csv.DictReader(file)]
    assert len(again) == 24


@pytest.mark.slow
def test_a_language_model_is_asked(torchless: Burnish):
    model = str(ROOT / "resources" / "demo" / "austen-gpt2")
    done = torchless("generate", model, "--prompt", "She had", "--max-new-tokens", "8", "--set", "hardware.engine=jax")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) >= 4


@pytest.mark.slow
def test_an_adapter_trains_is_measured_and_predicts(torchless: Burnish):
    adapter = {"type": "lora", "rank": 4, "saved": "adapter", "dora": True}
    done = torchless("train", str(with_jax(torchless, adapter=adapter)))
    assert done.returncode == 0, done.stderr
    folder = torchless.run_folder()
    told = events_of(folder)
    loaded = next(event for event in told if isinstance(event, ModelLoaded))
    assert loaded.trainable == 2 * 2 * (2 * 4 * 128 + 128) + 2 * 128 + 2
    assert sorted(path.name for path in folder.model.glob("*.safetensors")) == ["adapter_model.safetensors"]
    finished = next(event for event in told if isinstance(event, RunFinished))
    validation = str(torchless.home / "validation.csv")
    measured = torchless("evaluate", str(folder.path), "--data", validation, "--json")
    assert json.loads(measured.stdout)["metrics"]["loss"] == pytest.approx(finished.metrics["loss"], abs=1e-5)
    predicted = torchless("predict", str(folder.path), "--data", validation, "--output", "out.csv")
    assert predicted.returncode == 0, predicted.stderr
    with (torchless.home / "out.csv").open(encoding="utf-8", newline="") as file:
        again = [row["prediction"] for row in csv.DictReader(file)]
    with (folder.path / "predictions.csv").open(encoding="utf-8", newline="") as file:
        assert again == [row["prediction"] for row in csv.DictReader(file)]


def test_what_the_engine_cannot_do_is_said_in_a_sentence(torchless: Burnish):
    unknown = {"name_or_path": str(torchless.home / "bloom")}
    Path(unknown["name_or_path"]).mkdir()
    (torchless.home / "bloom" / "config.json").write_text('{"model_type": "bloom"}', encoding="utf-8")
    refused = torchless("train", str(with_jax(torchless, model=unknown)))
    assert refused.returncode == 2
    assert "hardware.engine: the JAX engine does not support the architecture 'bloom'; choose PyTorch" in refused.stderr
    assert not torchless.runs.exists() or not list(torchless.runs.iterdir())
