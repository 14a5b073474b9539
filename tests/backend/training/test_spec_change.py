"""Which settings a run may change when it goes on, and with which other engine."""

from pathlib import Path
from typing import Any

import pytest

from backend.commands.new_run import change_engine, change_settings
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.run.folder import RunFolder
from backend.contract.run.lock import hold_lock
from backend.preflight.datasets import make_task
from backend.preflight.resolve import read_spec, resolve
from backend.training.checkpoints import Checkpoints
from backend.training.spec_change import compare_started, keep_started, with_settings


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.spec.write_text((resource("demo", "sentiment.yaml")).read_text(encoding="utf-8"), encoding="utf-8")
    return folder


def test_what_changes_nothing_of_what_is_learnt_may_change(run: RunFolder):
    change = with_settings(
        run, read_spec(run.spec), ["hardware.micro_batch_size=4", "training.gradient_checkpointing=true"]
    )
    assert (change.spec.hardware.micro_batch_size, change.spec.training.gradient_checkpointing) == (4, True)
    assert change.kept.name == "spec.before-1.yaml"


def test_a_variable_of_the_environment_may_change(run: RunFolder):
    change = with_settings(run, read_spec(run.spec), ["hardware.environment.NCCL_P2P_DISABLE='1'"])
    assert change.spec.hardware.environment == {"NCCL_P2P_DISABLE": "1"}


def test_the_spec_of_the_last_attempt_is_kept_where_a_resume_is_changed_twice(run: RunFolder):
    spec = read_spec(resource("demo", "sentiment.yaml"))  # with whole paths
    run.spec.write_text(spec_file.dump(spec.model_dump(mode="json")), encoding="utf-8")
    before = run.spec.read_bytes()
    for rows in (4, 2):
        change_settings(run, read_spec(run.spec), [f"hardware.micro_batch_size={rows}"])
    assert (run.path / "spec.before-1.yaml").read_bytes() == before


def test_settings_of_a_run_that_cannot_be_written_are_changed_in_a_run_of_ones_own(begun: RunFolder):
    (begun.path / "spec.started.yaml").unlink()
    (begun.path / "spec.started.yaml").mkdir()
    with pytest.raises(InputError, match="start your own from"):
        change_settings(begun, read_spec(begun.spec), ["hardware.micro_batch_size=4"])


def test_keeping_fewer_checkpoints_deletes_the_others_before_a_file_is_written(run: RunFolder):
    checkpoints = Checkpoints(run)
    for step in (1, 2, 3):
        checkpoints.save(step, lambda folder: (folder / "weights").write_bytes(b"1") and None)
    run.spec.unlink()
    run.spec.symlink_to("elsewhere.yaml")  # is not read, so that nothing is written
    with pytest.raises(InputError, match="cannot be changed"):
        change_settings(run, read_spec(resource("demo", "sentiment.yaml")), ["training.keep_checkpoints=1"])
    assert checkpoints.steps() == [3]


def test_what_makes_another_run_is_refused_with_the_command_that_starts_it(run: RunFolder):
    with pytest.raises(InputError, match=r"burnish train .*spec\.yaml --set training\.learning_rate=1"):
        with_settings(run, read_spec(run.spec), ["training.learning_rate=1"])


@pytest.fixture
def begun(run: RunFolder) -> RunFolder:
    """A run of which an attempt was started."""
    spec = read_spec(resource("demo", "sentiment.yaml"))  # with whole paths
    run.spec.write_text(spec_file.dump(spec.model_dump(mode="json")), encoding="utf-8")
    keep_started(run, spec)
    return run


def edited(run: RunFolder, *changes: str) -> bool:
    text = spec_file.dump(spec_file.apply_changes(spec_file.read(run.spec), list(changes)))
    run.spec.write_text(f"# edited by hand\n{text}", encoding="utf-8")
    return compare_started(run, read_spec(run.spec))


@pytest.mark.parametrize(
    "change",
    [
        "training.learning_rate=0.5", "training.seed=7", "training.epochs=9", "training.batch_size=3", "model.dropout=0.3",
        "task.max_length=16", "data.validation=0.5", "data.columns={text: other, label: label}", "evaluation.every=3",
        "hardware.precision=bfloat16", "adapter={type: lora}", "model.name_or_path=elsewhere",
    ],
)  # fmt: skip
def test_edit_by_hand_that_changes_the_result_is_refused(begun: RunFolder, change: str):
    with pytest.raises(
        InputError, match=r"changed since the run started.*restore.*start a new run: burnish train"
    ) as refusal:
        edited(begun, change)
    assert refusal.value.field is not None
    assert change.startswith(refusal.value.field.rpartition(".")[0])


@pytest.mark.parametrize(
    "change",
    [
        "name=another", "hardware.devices=[1]", "hardware.device=cpu", "hardware.threads=2", "hardware.micro_batch_size=2",
        "hardware.environment={OMP_NUM_THREADS: '2'}", "training.keep_checkpoints=9", "data.train=/moved/train.csv",
    ],
)  # fmt: skip
def test_edit_by_hand_that_changes_nothing_of_the_result_passes(begun: RunFolder, change: str):
    assert edited(begun, change)


def test_a_length_that_is_the_default_may_be_taken_out_of_a_spec(run: RunFolder):
    spec = read_spec(resource("demo", "sentiment.yaml"))
    default = type(make_task(spec).settings)(type=spec.task["type"]).max_length
    values = spec.model_dump(mode="json")
    run.spec.write_text(spec_file.dump(values), encoding="utf-8")
    keep_started(run, spec.model_copy(update={"task": {**spec.task, "max_length": default}}))
    del values["task"]["max_length"]
    run.spec.write_text(spec_file.dump(values), encoding="utf-8")
    assert compare_started(run, read_spec(run.spec))


def test_layout_and_comments_of_a_spec_may_change(begun: RunFolder):
    assert edited(begun)


def test_engine_edited_by_hand_is_refused_with_the_option_for_it(begun: RunFolder):
    with pytest.raises(InputError, match="resume it with --engine"):
        edited(begun, "hardware={engine: jax}")
    assert compare_started(begun, read_spec(begun.spec), other_engine=True)


def test_run_of_an_older_version_takes_its_spec_as_it_is(run: RunFolder):
    assert not compare_started(run, read_spec(run.spec))


@pytest.mark.parametrize("damage", ["", "\0", "training: {learning_rate: [", "tra1ning: {}"])
def test_a_damaged_record_of_the_started_spec_is_no_leave_to_change_it(begun: RunFolder, damage: str):
    (begun.path / "spec.started.yaml").write_text(damage)
    with pytest.raises(InputError, match=r"spec\.started\.yaml cannot be read.*delete it") as refusal:
        edited(begun, "training.seed=7")
    assert "\n" not in str(refusal.value)
    assert (begun.path / "spec.started.yaml").read_text() == damage


def test_changed_settings_are_those_that_the_next_resume_expects(begun: RunFolder):
    change_settings(begun, read_spec(begun.spec), ["hardware.micro_batch_size=4"])
    spec = read_spec(begun.spec)
    assert spec.hardware.micro_batch_size == 4
    assert compare_started(begun, spec)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run of PyTorch on one thread, without a checkpoint."""
    spec = {
        "version": 1,
        "name": "small",
        "task": {"type": "text_classification", "max_length": 16},
        "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
        "data": {"source": "demo", "name": "sentiment"},
        "hardware": {"device": "cpu", "precision": "float32", "threads": 1, "compile": "never"},
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
    change_engine(folder, read_spec(folder.spec), Checkpoints(folder), "jax", new_optimizer=True)
    assert hardware(folder)["engine"] == "jax"
    assert "threads" not in hardware(folder)
    change_engine(
        folder, read_spec(folder.spec), Checkpoints(folder), "torch", new_optimizer=False
    )  # whose own checkpoint is still the last
    assert hardware(folder) == before


def test_without_a_checkpoint_there_is_nothing_to_agree_to(folder: RunFolder):
    change_engine(folder, read_spec(folder.spec), Checkpoints(folder), "jax", new_optimizer=False)
    assert hardware(folder)["engine"] == "jax"


@pytest.mark.parametrize(
    ("own", "writer", "engine", "agreed", "words"),
    [
        ("torch", "torch", "jax", False, r"can continue the model from step 4.*--new-optimizer"),
        ("jax", "jax", "torch", True, r"cannot read the checkpoint of step 4"),
        ("torch", "torch", "torch", True, r"already trains with PyTorch"),
        ("torch", "torch", "abacus", True, r"there is no engine 'abacus'"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_and_changes_nothing(
    folder: RunFolder, own: str, writer: str, engine: str, agreed: bool, words: str
):
    if own == "jax":
        change_engine(folder, read_spec(folder.spec), Checkpoints(folder), "jax", new_optimizer=False)
    saved(folder, writer)
    before = folder.spec.read_bytes()
    with pytest.raises(InputError, match=words):
        change_engine(folder, read_spec(folder.spec), Checkpoints(folder), engine, new_optimizer=agreed)
    assert folder.spec.read_bytes() == before


def test_a_run_that_is_running_keeps_its_engine(folder: RunFolder):
    with hold_lock(folder.lock), pytest.raises(InputError, match="is in progress; pause it"):
        change_engine(folder, read_spec(folder.spec), Checkpoints(folder), "jax", new_optimizer=True)
    assert hardware(folder)["engine"] == "torch"
