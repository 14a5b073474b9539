"""Looking at data takes the configuration and the tokenizer of a hub's model, and never its weights."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.contract.resources import resource
from tests.backend.models.fake_hub import FakeHub

LOOK = """
import json, sys
from pathlib import Path
from backend.contract.errors import InputError
from backend.inspect.batch_preview import preview
from backend.preflight.datasets import ignore_progress
from backend.preflight.resolve import resolve
from backend.inspect.length_report import training_lengths

try:
    shown = preview(resolve(json.loads(sys.argv[1]), Path.cwd()), lambda name: ignore_progress)
    print(json.dumps({"rows": training_lengths(shown, lambda name: ignore_progress).rows, "found": shown.model.found}))
except InputError as error:
    print(json.dumps({"error": str(error)}))
"""
Look = Callable[..., dict]


@pytest.fixture
def hub(tmp_path: Path):
    """A repository whose weights nobody could read."""
    folder = tmp_path / "model"
    shutil.copytree(resource("demo", "bert-tiny"), folder, ignore=shutil.ignore_patterns("*.safetensors"))
    (folder / "model.safetensors").write_bytes(b"not to be fetched")
    with FakeHub() as running:
        running.repositories["team/model"] = {"main": ("a" * 40, folder)}
        yield running


@pytest.fixture
def look(hub: FakeHub, tmp_path: Path) -> Look:
    """Looks at a draft in a process of its own, whose hub library knows the hub on localhost and an empty cache."""
    data = tmp_path / "train.csv"
    data.write_text("text,label\na good film,good\na bad film,bad\nso so,bad\n")

    def look_there(offline: bool = False) -> dict:
        values = {
            "task": {"type": "text_classification"},
            "model": {"name_or_path": "team/model"},
            "data": {"source": "files", "train": str(data)},
        }
        environment = {**os.environ, "HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": hub.address}
        environment |= {"HF_HUB_OFFLINE": "1" if offline else "0", "BURNISH_CACHE": str(tmp_path / "cache")}
        ended = subprocess.run(
            [sys.executable, "-c", LOOK, json.dumps(values)],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return look_there


@pytest.mark.slow
def test_lengths_of_a_hub_model_are_measured_without_its_weights_and_then_without_the_hub(hub: FakeHub, look: Look):
    assert "network access is not allowed" in look(offline=True)["error"]
    assert look() == {"rows": 3, "found": "hub"}
    asked = [path for path in hub.requests if "/resolve/" in path]
    assert any(path.endswith("/tokenizer.json") for path in asked)
    assert not any("safetensors" in path for path in asked)
    hub.requests.clear()
    assert look() == look(offline=True) == {"rows": 3, "found": "cache"}
    assert hub.requests == []
