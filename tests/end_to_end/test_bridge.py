"""An architecture that JAX does not know itself in a whole run: trained, measured, asked, and opened by PyTorch."""

import json
import shutil
from pathlib import Path

import pytest
from end_to_end.burnish_process import Burnish, events_of
from transformers import ElectraConfig, ElectraModel

from backend.contract.events import ModelLoaded, RunFinished
from backend.contract.resources import resource


@pytest.fixture
def electra(tmp_path: Path) -> Path:
    """A small ELECTRA with the words of the demo's BERT."""
    folder = tmp_path / "electra"
    ElectraModel(
        ElectraConfig(
            embedding_size=32, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128
        )
    ).save_pretrained(folder)
    for path in resource("demo", "bert-tiny").glob("*token*"):
        shutil.copy(path, folder)
    return folder


@pytest.mark.slow
def test_a_run_trains_is_measured_and_opened_by_torch(burnish: Burnish, electra: Path):
    spec = burnish.spec(
        model={"name_or_path": str(electra)}, task={"max_length": 8}, hardware={"engine": "jax", "bridge": True}
    )
    text = spec.read_text(encoding="utf-8")
    spec.write_text("".join(line for line in text.splitlines(True) if "threads" not in line), encoding="utf-8")
    done = burnish("train", str(spec))
    assert done.returncode == 0, done.stderr
    folder = burnish.run_folder()
    told = events_of(folder)
    assert next(one for one in told if isinstance(one, ModelLoaded)).architecture == "ElectraForSequenceClassification"
    finished = next(one for one in told if isinstance(one, RunFinished))
    for engine in ("jax", "torch"):
        measured = burnish(
            "evaluate", str(folder.path), "--data", "validation.csv", "--json", "--set", f"hardware.engine={engine}"
        )
        assert measured.returncode == 0, measured.stderr
        assert json.loads(measured.stdout)["metrics"]["loss"] == pytest.approx(finished.metrics["loss"], abs=1e-4)


def test_without_the_wish_nothing_is_written(burnish: Burnish, electra: Path):
    spec = burnish.spec(model={"name_or_path": str(electra)})
    spec.write_text(spec.read_text(encoding="utf-8").replace("threads: 1", "engine: jax"), encoding="utf-8")
    refused = burnish("train", str(spec))
    assert refused.returncode == 2
    assert "the JAX engine does not know the architecture 'electra'; switch on hardware.bridge" in refused.stderr
    assert not burnish.runs.exists() or not list(burnish.runs.iterdir())
