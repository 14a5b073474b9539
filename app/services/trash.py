"""Moves a run to the system's trash, and restores it."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QFile, QStandardPaths

from app.core.i18n import tr
from backend.contract.run.folder import RunFolder
from backend.contract.run.group import RunGroup


@dataclass(frozen=True)
class TrashResult:
    """The outcome of deleting a run."""

    run: Path
    problem: str = ""
    """Why it could not be moved; empty where it was."""
    place: Path | None = None
    """Where it is now; None if unknown, so that only the system's own trash can restore it."""


def move_to_trash(run: Path) -> TrashResult:
    """Move a run, or the folder of a group, to the trash. An active run is refused."""
    folder = RunFolder(run)
    if not folder.exists() and not RunGroup(run).exists():
        return TrashResult(run, tr("{run} is not a run folder. Nothing was deleted.", run=run))
    if folder.life() == "alive":
        return TrashResult(run, tr("{name} is still running. Stop it before you delete it.", name=folder.name))
    # An object, as the static form has no way to say why. Afterwards its name is that of the file in the trash.
    file = QFile(str(folder.path))
    with suppress(OSError):  # Qt makes the trash, but not the folder that it lies in, and then tells no reason
        Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericDataLocation)).mkdir(
            parents=True, exist_ok=True
        )
    if not file.moveToTrash():
        sentence = tr(
            "Couldn't move {name} to the trash ({errorString}). You can delete its folder: {path}",
            name=folder.name,
            errorString=file.errorString(),
            path=folder.path,
        )
        return TrashResult(run, sentence)
    place = Path(file.fileName()) if file.fileName() else None
    return TrashResult(run, place=place if place != folder.path else None)


def take_back(trashed: TrashResult) -> str:
    """Restore a run from the trash; returns why that failed, or empty."""
    run, place = trashed.run, trashed.place
    if place is None or not place.exists():
        return tr("{name} is no longer in the trash.", name=run.name)
    if run.exists():
        return tr("{run} already exists, so nothing was restored. The deleted run is at {place}", run=run, place=place)
    try:
        place.rename(run)
    except OSError as error:
        return tr(
            "Couldn't restore {name} from the trash ({strerror}). It is at {place}",
            name=run.name,
            strerror=error.strerror,
            place=place,
        )
    # Trashes as freedesktop.org describes them remember beside the files where each came from.
    (place.parent.parent / "info" / f"{place.name}.trashinfo").unlink(missing_ok=True)
    return ""
