"""Owns moving a run to the system's trash."""

from pathlib import Path

from PySide6.QtCore import QFile

from backend.contract.run_folder import RunFolder


def move_to_trash(run: Path) -> str:
    """Why the run could not be moved there, or nothing. A run that a process carries is refused."""
    folder = RunFolder(run)
    if not folder.exists():
        return f"{run} is no run folder, so nothing was deleted."
    if folder.life() == "alive":
        return f"{folder.name} is still running; stop it first, then delete it."
    # An object, as the static form has no way to say why.
    file = QFile(str(folder.path))
    if not file.moveToTrash():
        return f"{folder.name} could not be moved to the trash ({file.errorString()}); delete its folder: {folder.path}"
    return ""
