"""Owns a run's checkpoint as something to ask: its folder may stand wherever a run or a model is named."""

from dataclasses import dataclass
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.places import runs_folder
from backend.contract.run_folder import RunFolder
from backend.contract.spec import RunSpec

_STEP = "step-"


@dataclass(frozen=True)
class AskedCheckpoint:
    """The weights after one step of a run; what else a model folder holds is the run's."""

    run: RunFolder
    folder: Path


def checkpoint_of(target: str) -> AskedCheckpoint | None:
    """The checkpoint in that folder, `RUN/checkpoints/step-000500`; None where the target is something else."""
    for path in (runs_folder() / target, Path(target).expanduser()):
        run = RunFolder(path.absolute().parent.parent)
        is_one = path.parent.name == run.checkpoints.name and path.name.startswith(_STEP)
        if is_one and path.is_dir() and run.exists():
            return AskedCheckpoint(run, path.absolute())
    return None


def check_askable(spec: RunSpec, checkpoint: AskedCheckpoint) -> None:
    """Raises InputError for a checkpoint that does not hold a whole model."""
    if spec.adapter is not None:
        raise InputError(
            f"{checkpoint.folder}: this checkpoint holds an adapter alone, which is asked with its run; name the run, "
            f"{checkpoint.run.name}"
        )
