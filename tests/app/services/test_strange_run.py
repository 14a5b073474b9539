"""A run folder from a stranger shows the window nothing of the user's other files."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.core.draft import run_copies
from app.core.runs import run_spec
from app.core.runs.run_library import RunSummary
from app.core.runs.run_spec import RunTask, read_run_task
from app.services.run_watcher import ComparedStates
from backend.catalog import catalog
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.run.folder import RunFolder

OUTSIDE = {
    "name": "stolen", "task": {"type": "text_classification", "max_length": 7}, "model": {"name_or_path": "stolen"},
    "data": {"train": "stolen.csv"}, "hardware": {"engine": "jax"},
}  # fmt: skip
SPECS: dict[str, Callable[[Path], object]] = {
    "include": lambda path: path.write_text("include: ../outside.yaml\n"),
    "link": lambda path: path.symlink_to("../outside.yaml"),
}


@pytest.fixture(params=SPECS)
def run(tmp_path: Path, request: pytest.FixtureRequest) -> RunFolder:
    """Its spec leads to a file of the user's."""
    (tmp_path / "outside.yaml").write_text(spec_file.dump(OUTSIDE), encoding="utf-8")
    (tmp_path / "run").mkdir()
    SPECS[request.param](tmp_path / "run" / "spec.yaml")
    return RunFolder(tmp_path / "run")


def test_list_of_runs_shows_its_own_name_alone(run: RunFolder):
    assert run_spec.read_subject(run) == run_spec.RunSubject("run")


def test_predictions_page_knows_no_task(run: RunFolder):
    assert read_run_task(run.path) == RunTask()


def test_its_settings_are_not_compared(run: RunFolder, tmp_path: Path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "spec.yaml").write_text("name: run\ntraining: {epochs: 9}\n")
    before, after = (RunSummary(path.name, path, "finished") for path in (tmp_path / "own", run.path))
    assert run_copies.list_differences(after, before) == []


def test_it_is_neither_copied_nor_offered_another_engine(run: RunFolder):
    found = catalog()
    assert run_copies.offer_engine(found, run) is None
    with pytest.raises(InputError):
        run_copies.duplicate_for_engine(found, run, "torch")
    with pytest.raises(InputError):
        run_copies.copy_of(run.path, [])


def test_comparison_says_what_cannot_be_read(run: RunFolder, qtbot, qapp):
    states = ComparedStates(qapp)
    with qtbot.waitSignal(states.specs_read):
        states.read([run.path])
    states.stop()
    states.deleteLater()
    assert states.specs == {run.path: {}}
    assert str(run.spec) in states.problems[0]


@pytest.fixture
def sound(tmp_path: Path) -> RunFolder:
    """A run without a model, and beside it a folder with a configuration of an architecture that JAX does not know."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "config.json").write_text('{"model_type": "deberta-v2"}')
    (tmp_path / "run").mkdir()
    values = {"task": {"type": "text_classification"}, "model": {"name_or_path": str(tmp_path / "outside")}}
    (tmp_path / "run" / "spec.yaml").write_text(spec_file.dump(values), encoding="utf-8")
    return RunFolder(tmp_path / "run")


def reason(run: RunFolder) -> str:
    """Why the window says that the other engine cannot train it."""
    offer = run_copies.offer_engine(catalog(), run)
    assert offer is not None
    return offer.reason


def test_architecture_is_that_of_the_folder_that_the_spec_names(sound: RunFolder):
    assert "deberta-v2" in reason(sound)


@pytest.mark.parametrize("of_run", [True, False])
@pytest.mark.parametrize(
    "make",
    [os.mkfifo, lambda path: path.symlink_to(path.parents[1].with_name("outside") / "config.json")],
    ids=["pipe", "link"],
)
def test_configuration_that_lies_elsewhere_is_not_read(sound: RunFolder, make: Callable, of_run: bool):
    """Waiting for a pipe would freeze the window."""
    folder = sound.model if of_run else sound.path.with_name("model")
    folder.mkdir()
    make(folder / "config.json")
    values = spec_file.apply_changes(spec_file.read(sound.spec), [f"model.name_or_path={folder}"])
    sound.spec.write_text(spec_file.dump(values), encoding="utf-8")
    assert reason(sound) == ""


def test_model_that_is_a_link_is_not_followed(sound: RunFolder):
    sound.model.symlink_to("../outside")
    values = spec_file.apply_changes(spec_file.read(sound.spec), ["model.name_or_path=x"])
    sound.spec.write_text(spec_file.dump(values), encoding="utf-8")
    assert reason(sound) == ""
