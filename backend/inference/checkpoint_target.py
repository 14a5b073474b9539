"""Owns a run's checkpoint as something to ask: its folder may stand wherever a run or a model is named."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.places import runs_folder
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import user_path
from backend.contract.spec import RunSpec
from backend.models.saved_model import read_note
from backend.preflight.resolve import read_run

_STEP = "step-"


@dataclass(frozen=True)
class AskedCheckpoint:
    """The weights after one step of a run; what else a model folder holds is the run's."""

    run: RunFolder
    folder: Path


def checkpoint_of(target: str) -> AskedCheckpoint | None:
    """The checkpoint in that folder, `RUN/checkpoints/step-000500`; None if the target is something else. Raises InputError."""
    for path in (runs_folder() / target, user_path(target)):
        run = RunFolder(path.absolute().parent.parent)
        is_one = path.parent.name == run.checkpoints.name and path.name.startswith(_STEP)
        if not is_one or not path.is_dir():
            continue
        if fault := run.fault():
            raise InputError(fault)
        if run.exists():
            run.check()
            return AskedCheckpoint(run, path.absolute())
    return None


def has_model(run: RunFolder) -> bool:
    """Whether the run has left its `model/`."""
    return (run.model / "config.json").is_file()


def note_of(checkpoint: AskedCheckpoint) -> dict[str, Any]:
    """What its task must know. Raises InputError for a checkpoint that does not say it, in a run without a model."""
    note = read_note(checkpoint.folder) or read_note(checkpoint.run.model)
    if note is None:
        raise InputError(
            f"{checkpoint.folder}: an older release wrote this checkpoint, which cannot be asked alone; let the run finish, "
            "or stop it, first"
        )
    return note


def begun_from(checkpoint: AskedCheckpoint) -> RunSpec | None:
    """The spec by which its weights are put in place as in training: onto the model that the run began from.

    None where the run's `model/` is a whole one of the same shape, which needs nothing else.
    """
    spec = read_run(checkpoint.run)
    return spec if spec.adapter is not None or not has_model(checkpoint.run) else None
