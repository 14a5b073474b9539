"""A model that has only pytorch_model.bin is no dead end, and a malicious one harms nobody."""

import os
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from end_to_end.burnish_process import Burnish, events_of
from safetensors.torch import load_file

from backend.contract.resources import resource
from backend.contract.run.events import RunFinished
from tests.backend.conftest import converter_environments  # noqa: F401 (a fixture)


def pickled_model(folder: Path) -> None:
    shutil.copytree(resource("demo", "bert-tiny"), folder)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")


class Malicious:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.path}",)


def test_pickled_weights_need_consent_and_are_converted_once(burnish: Burnish):
    pickled_model(burnish.home / "old")
    burnish.environment["BURNISH_CACHE"] = str(burnish.home / "cache")
    spec = burnish.spec(
        model={"name_or_path": "old"},
        training={"max_steps": 1, "checkpoint_every": "never"},
        evaluation={"every": "never"},
    )

    refused = burnish("train", str(spec))
    assert refused.returncode == 2
    assert "--convert-weights" in refused.stderr
    assert not burnish.runs.exists()

    agreed = burnish("train", str(spec), "--convert-weights")
    assert agreed.returncode == 0, agreed.stderr
    last = events_of(burnish.run_folder())[-1]
    assert isinstance(last, RunFinished)
    assert last.state == "finished"
    assert sorted(path.suffix for path in (burnish.home / "old").glob("*model*")) == [".bin"]

    again = burnish("train", str(spec), "--run-folder", str(burnish.home / "again"))
    assert again.returncode == 0, again.stderr  # the copy is there: nobody is asked twice


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.usefixtures("converter_environments")  # the other test has a real process
def test_a_malicious_pickle_is_refused_and_never_run(burnish: Burnish):
    pickled_model(burnish.home / "old")
    burnish.environment["BURNISH_CACHE"] = str(burnish.home / "cache")
    sign = burnish.home / "it-ran"
    (burnish.home / "old" / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": Malicious(sign)}))
    done = burnish("train", str(burnish.spec(model={"name_or_path": "old"})), "--convert-weights")
    assert done.returncode == 2
    assert "pytorch_model.bin" in done.stderr
    assert not sign.exists()
    assert not burnish.runs.exists()
    assert list((burnish.home / "cache").rglob("*.safetensors")) == []
