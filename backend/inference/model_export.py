"""Writes a trained model to a new folder: as it was saved, in another number format, or merged with its adapter."""

from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.output_file import check_output_folder, output_errors
from backend.contract.run.folder import RunFolder
from backend.models.saved_model import Numbers


def export_saved(run: RunFolder, target: Path, numbers: Numbers) -> None:
    """Copy the run's `model/` to the new folder `target`. Raises InputError."""
    if not (run.model / "config.json").is_file():
        raise InputError("{run}: this run has no model yet; let it finish, or stop it, first", run=run.path)
    from backend.models.remote_code import agree_to_copy
    from backend.models.saved_model import copy_model  # loads numpy

    copy_model(run.model, target, numbers)
    agree_to_copy(run.model, target)


def export_merged(run: str, target: Path) -> None:
    """Write the base model of a run or checkpoint with its adapter merged into the weights, in float32. Raises InputError.

    A calibration becomes part of the weights, if their last layer is known; else its file is written too.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError("--model {target} already exists; name a new folder", target=target)
    check_output_folder(target, "--model")
    from backend.inference.model import open_model  # loads the framework
    from backend.inference.spec import spec_of
    from backend.models import calibration, saved_model
    from backend.models.remote_code import agree_to_copy, copy_code

    opened = open_model(spec_of(run, None, ["hardware.device=cpu"]))
    session = opened.session

    def fill(folder: Path) -> None:
        session.engine.export(folder)
        session.tokenizer.save_pretrained(folder)
        copy_code(opened.folder, folder)
        if session.calibration is not None and not calibration.fold_into_weights(folder, session.calibration):
            calibration.write(folder, session.calibration)

    note = {"task": session.spec.task, "facts": session.facts, "columns": dict(session.columns)}
    with output_errors(target, "--model", target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        saved_model.write(target, fill, note)
        agree_to_copy(opened.folder, target)
