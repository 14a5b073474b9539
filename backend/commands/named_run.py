"""Owns how the command line finds a run: by its name under the runs folder, or by its path."""

from backend.contract.errors import InputError
from backend.contract.places import runs_folder
from backend.contract.run.folder import RunFolder, find_run, run_folders
from backend.contract.safe_text import one_line

SHOWN = 5


def named_run(name_or_path: str) -> RunFolder:
    """The run that is meant. Raises InputError that names the newest runs."""
    found = find_run(name_or_path, runs_folder())
    if found:
        return found.whole()  # one host's folder is no run of its own
    names = [one_line(folder.name) for folder in run_folders(runs_folder())[:SHOWN]]
    there = f"the newest runs are {', '.join(names)}" if names else f"there are no runs in {runs_folder()} yet"
    raise InputError(f"{name_or_path}: there is no such run; {there}")
