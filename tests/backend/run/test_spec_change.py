"""Which settings a run may change when it goes on."""

from pathlib import Path

import pytest

from backend.commands.new_run import change_settings
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.run_folder import RunFolder
from backend.run.resolving import read_spec
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


def test_the_spec_of_the_last_attempt_is_kept_where_a_resume_is_changed_twice(run: RunFolder):
    spec = read_spec(resource("demo", "sentiment.yaml"))  # with whole paths
    run.spec.write_text(spec_file.dump(spec.model_dump(mode="json")), encoding="utf-8")
    before = run.spec.read_bytes()
    for rows in (4, 2):
        change_settings(run, [f"hardware.micro_batch_size={rows}"])
    assert (run.path / "spec.before-1.yaml").read_bytes() == before


def test_what_makes_another_run_is_refused_with_the_command_that_starts_it(run: RunFolder):
    with pytest.raises(InputError, match=r"burnish train .*spec\.yaml --set training\.learning_rate=1"):
        with_settings(run, ["training.learning_rate=1"])
