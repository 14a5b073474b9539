"""A run goes on with another engine where that can read its checkpoint, and comes back as it was."""

from pathlib import Path
from typing import Any

import pytest

from backend.commands.new_run import change_engine
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.run.folder import RunFolder
from backend.contract.run.lock import locked
from backend.preflight.resolve import resolve
from backend.training.checkpoints import Checkpoints


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run of PyTorch on one thread, without a checkpoint."""
    spec = {
        "version": 1,
        "name": "small",
        "task": {"type": "text_classification", "max_length": 16},
        "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
        "data": {"source": "demo", "name": "sentiment"},
        "hardware": {"device": "cpu", "precision": "float32", "threads": 1},
    }
    found = RunFolder(tmp_path)
    found.spec.write_text(spec_file.dump(resolve(spec, tmp_path).model_dump(mode="json")), encoding="utf-8")
    return found


def saved(folder: RunFolder, engine: str, step: int = 4) -> None:
    Checkpoints(folder, engine=engine).save(step, lambda beside: (beside / "weights").touch())


def hardware(folder: RunFolder) -> dict[str, Any]:
    return spec_file.read(folder.spec)["hardware"]


def test_there_and_back_the_spec_is_what_it_was(folder: RunFolder):
    saved(folder, "torch")
    before = hardware(folder)
    change_engine(folder, "jax", new_optimizer=True)
    assert hardware(folder)["engine"] == "jax"
    assert "threads" not in hardware(folder)
    change_engine(folder, "torch", new_optimizer=False)  # whose own checkpoint is still the last
    assert hardware(folder) == before


def test_without_a_checkpoint_there_is_nothing_to_agree_to(folder: RunFolder):
    change_engine(folder, "jax", new_optimizer=False)
    assert hardware(folder)["engine"] == "jax"


@pytest.mark.parametrize(
    ("own", "writer", "engine", "agreed", "words"),
    [
        ("torch", "torch", "jax", False, r"goes on from step 4.*--new-optimizer"),
        ("jax", "jax", "torch", True, r"cannot read the checkpoint of step 4"),
        ("torch", "torch", "torch", True, r"trains with PyTorch already"),
        ("torch", "torch", "abacus", True, r"'abacus' is no engine"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_and_changes_nothing(
    folder: RunFolder, own: str, writer: str, engine: str, agreed: bool, words: str
):
    if own == "jax":
        change_engine(folder, "jax", new_optimizer=False)
    saved(folder, writer)
    before = folder.spec.read_bytes()
    with pytest.raises(InputError, match=words):
        change_engine(folder, engine, new_optimizer=agreed)
    assert folder.spec.read_bytes() == before


def test_a_run_that_is_running_keeps_its_engine(folder: RunFolder):
    with locked(folder.lock), pytest.raises(InputError, match="is running; pause it"):
        change_engine(folder, "jax", new_optimizer=True)
    assert hardware(folder)["engine"] == "torch"
