"""Every experiment of the systems that Burnish follows is there as a preset that loads, plans and trains."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from backend.contract import spec_file
from backend.contract.resources import resource
from backend.contract.run.events import EvaluationFinished, RunFinished, StepFinished
from backend.contract.run.folder import RunFolder
from backend.contract.spec import RunSpec
from backend.engines.cpu_device import cpu_device
from backend.preflight import cost
from backend.preflight.resolve import read_spec
from backend.training.event_log import read_events
from backend.training.loop import run
from tests.backend.presets.small_models import small_model

DATA = Path(__file__).parents[2] / "data"
EXPERIMENTS = (
    "squad-v1", "squad-v2", "squad-v1-beam", "squad-v2-beam", "ner-conll", "swag", "wikitext-clm", "wikitext-mlm", "wikitext-opt",
    "mt5-translation",
)  # fmt: skip
"""Beside those of GLUE and XNLI, which `test_glue.py` trains."""
QUICK = {"squad-v2-beam", "ner-conll", "swag", "wikitext-mlm"}
"""Every kind of task once; other tests train for SQuAD with a plain head, train a small mT5, and ask language models."""
NUMBERS = {
    "glue-cola": {"batch_size": 32, "learning_rate": 2e-5, "epochs": 3},
    "glue-mrpc": {"batch_size": 32, "learning_rate": 2e-5, "epochs": 5},
    "glue-wnli": {"batch_size": 32, "learning_rate": 2e-5, "epochs": 5},
    "xnli": {"batch_size": 32, "learning_rate": 5e-5, "epochs": 2},
    "pymarlin-rte": {"batch_size": 32, "learning_rate": 2e-5, "epochs": 10, "warmup": 0.06, "schedule": "one_cycle", "optimizer": "adam"},
    "squad-v1": {"batch_size": 12, "learning_rate": 3e-5, "epochs": 2},
    "squad-v2": {"batch_size": 12, "learning_rate": 3e-5, "epochs": 4},
    "ner-conll": {"batch_size": 8, "learning_rate": 5e-5, "epochs": 3},
    "swag": {"batch_size": 64, "learning_rate": 5e-5, "epochs": 3},
    "wikitext-clm": {"batch_size": 8, "learning_rate": 5e-5, "epochs": 3},
    "wikitext-mlm": {"learning_rate": 5e-5, "epochs": 3},
    "wikitext-opt": {"epochs": 1, "batch_size": 1, "learning_rate": 1e-3, "optimizer": "sgd", "optimizer_options": {"momentum": 0.9}, "schedule": "constant", "max_gradient_norm": None, "seed": 0},
    "mt5-translation": {"batch_size": 32, "learning_rate": 1e-4, "epochs": 2, "optimizer": "sgd", "seed": 42},
}  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory):
    """The folder of a small model for a hub name, made once."""
    made: dict[str, Path] = {}

    def find(name: str) -> Path:
        if name not in made:
            made[name] = small_model(name, tmp_path_factory.mktemp("model"))
        return made[name]

    return find


def on_small_material(preset: str, models, folder: Path) -> RunSpec:
    """The preset with a small model and rows of the experiment's own shape, three steps long."""
    fragment = spec_file.read(resource("presets", f"{preset}.yaml"))["spec"]
    data = _data(preset, fragment["data"], folder)
    own: dict[str, Any] = {
        **fragment,
        "model": {**fragment["model"], "name_or_path": str(models(fragment["model"]["name_or_path"]))},
        "data": data if data.get("source") else {**fragment["data"], **data},
        "training": {**fragment["training"], "max_steps": 3},
        "evaluation": {**fragment["evaluation"], "every": 3, "max_rows": 8},
        "hardware": {**fragment.get("hardware", {"threads": 1}), "device": "cpu"},
    }
    (folder / "spec.yaml").write_text(spec_file.dump(own), encoding="utf-8")
    return read_spec(folder / "spec.yaml")


def _data(preset: str, given: dict[str, Any], folder: Path) -> dict[str, Any]:
    if given["source"] == "conll":
        return {split: str(DATA / "ner" / f"{split}.conll") for split in ("train", "validation")}
    if preset.startswith("squad"):
        train, validation = (DATA / "squad" / f"{split}.json" for split in ("train", "validation"))
        if "v2" in preset:  # the same questions in two files, because two splits may not share one
            train = DATA / "squad" / "impossible.json"
            validation = Path(shutil.copy(train, folder / "dev.json"))
        return {"source": "squad", "train": str(train), "validation": str(validation)}
    if preset == "mt5-translation":
        return {"folder": str(DATA / "parallel"), "pair": None}
    if preset.startswith("wikitext"):
        return {"source": "files", "train": str(DATA / "austen" / "persuasion-beginning.txt"), "validation": 0.2}
    paths = {split: folder / f"{split}.jsonl" for split in ("train", "validation")}
    for path in paths.values():
        path.write_text("".join(f"{json.dumps(row)}\n" for row in _ROWS[preset]), encoding="utf-8")
    return {"source": "files", **{split: str(path) for split, path in paths.items()}}


_ROWS = {
    "swag": [
        {"sent1": "She opens the door.", "sent2": "She", **{f"ending{k}": f"walks {k} steps." for k in range(4)}, "label": number % 4}
        for number in range(12)
    ],
}  # fmt: skip


def test_no_experiment_is_forgotten():
    assert set(EXPERIMENTS) | set(NUMBERS) <= {path.stem for path in resource("presets").glob("*.yaml")}


@pytest.mark.parametrize("preset", NUMBERS)
def test_the_published_numbers_stand_in_the_preset(preset: str):
    training = spec_file.read(resource("presets", f"{preset}.yaml"))["spec"]["training"]
    assert {name: training.get(name) for name in NUMBERS[preset]} == NUMBERS[preset]


@pytest.mark.parametrize("preset", sorted(set(EXPERIMENTS) - QUICK))
def test_an_experiment_is_planned(preset: str, models, tmp_path: Path):
    spec = on_small_material(preset, models, tmp_path)
    assert cost.plan(spec, [cpu_device()]).total_steps == 3


@pytest.mark.parametrize(
    "preset", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in EXPERIMENTS]
)
def test_an_experiment_plans_trains_and_is_measured(preset: str, models, tmp_path: Path):
    spec = on_small_material(preset, models, tmp_path)
    assert cost.plan(spec, [cpu_device()]).total_steps == 3
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.spec.write_text(spec_file.dump(spec.model_dump(mode="json")), encoding="utf-8")
    assert run(folder) == 0, folder.events.read_text(encoding="utf-8")[-2000:]
    events = read_events(folder.events)
    assert [event.step for event in events if isinstance(event, StepFinished)] == [1, 2, 3]
    measured = next(event.metrics for event in events if isinstance(event, EvaluationFinished) and event.step == 3)
    assert (spec.evaluation.best_metric or "perplexity") in measured
    assert isinstance(events[-1], RunFinished)
