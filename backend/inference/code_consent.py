"""Finds the model code that the user must approve: of a run, a checkpoint, a model folder or a Hub ID."""

from pathlib import Path

from backend.contract.places import cache_folder, is_offline, runs_folder
from backend.contract.run.folder import RunFolder, find_run
from backend.contract.safe_files import user_path
from backend.contract.tokens import options
from backend.data.sources.source import Report
from backend.inference.spec import checkpoint_of
from backend.models import location
from backend.models.adapter_files import is_alone, weights_folder
from backend.models.remote_code import RemoteCode, find_remote_code
from backend.preflight.datasets import ignore_progress
from backend.preflight.resolve import read_run


def code_of(target: str, revision: str = "main", report: Report = ignore_progress) -> list[RemoteCode]:
    """All code that must run for that target, empty if none; downloads only small files. Raises InputError."""
    given = options.parse_name(target)  # on the Tokenizer page a name may hold a revision
    target, revision = given.tokenizer, revision if given.revision == options.MAIN else given.revision
    checkpoint = checkpoint_of(target)
    run = checkpoint.run if checkpoint else find_run(target, runs_folder())
    folders = _of_run(run, report) if run else _folders(target, revision, report)
    for folder in list(folders):
        if is_alone(folder):
            folders.append(weights_folder(folder))
    found = (find_remote_code(folder) for folder in folders)
    return [one for one in found if one is not None]


def agree(target: str, revision: str = "main", report: Report = ignore_progress) -> list[RemoteCode]:
    """Record this user's consent to all of it. Raises InputError."""
    found = code_of(target, revision, report)
    for one in found:
        one.agree()
    return found


def _of_run(run: RunFolder, report: Report) -> list[Path]:
    """The run's own model, or the one that it starts from if it has none yet."""
    if (run.model / "config.json").is_file():
        return [run.model]
    model = read_run(run).model
    names = [name for name in (model.name_or_path, model.tokenizer) if name]
    return [folder for name in names for folder in _folders(name, model.revision, report)]


def _folders(name: str, revision: str, report: Report) -> list[Path]:
    """The folder, and the safe copy that would be opened instead."""
    path = user_path(name)
    if path.exists() and not path.is_dir():
        return [path.parent.absolute()]
    without_weights = location.locate_without_weights(name, revision, offline=is_offline(), report=report).folder
    opened = location.locate_small_files(name, revision, cache=cache_folder() / "weights", offline=True).folder
    return list(dict.fromkeys([without_weights, opened]))
