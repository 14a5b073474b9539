"""Which settings a run may change when it goes on."""

from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.run_folder import RunFolder
from backend.run.spec_change import with_settings


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.spec.write_text((resource("demo", "sentiment.yaml")).read_text(encoding="utf-8"), encoding="utf-8")
    return folder


def test_what_changes_nothing_of_what_is_learnt_may_change(run: RunFolder):
    change = with_settings(run, ["hardware.micro_batch_size=4", "training.gradient_checkpointing=true"])
    assert (change.spec.hardware.micro_batch_size, change.spec.training.gradient_checkpointing) == (4, True)
    assert change.kept.name == "spec.before-1.yaml"


def test_what_makes_another_run_is_refused_with_the_command_that_starts_it(run: RunFolder):
    with pytest.raises(InputError, match=r"burnish train .*spec\.yaml --set training\.learning_rate=1"):
        with_settings(run, ["training.learning_rate=1"])
