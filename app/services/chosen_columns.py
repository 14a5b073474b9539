"""Owns which columns of a table a person has hidden and how wide the others were made, kept between starts."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QSettings

from backend.contract.places import config_folder


@dataclass(frozen=True)
class Columns:
    """What was chosen for one kind of table; None shows what is shown by itself."""

    shown: Collection[str] | None = None
    widths: Mapping[str, int] = field(default_factory=dict)


class ChosenColumns:
    """One file for all tables; `kind` is for example a task, whose files have the same columns."""

    def __init__(self, path: Path | None = None) -> None:
        self._settings = QSettings(str(path or config_folder() / "columns.ini"), QSettings.Format.IniFormat)

    def read(self, kind: str) -> Columns:
        """What was kept; nothing where that cannot be read."""
        try:
            kept = json.loads(str(self._settings.value(_key(kind), "{}")))
            widths = {str(name): int(width) for name, width in kept.get("widths", {}).items()}
            shown = kept.get("shown")
            return Columns(None if shown is None else [str(name) for name in shown], widths)
        except (ValueError, AttributeError, TypeError):
            return Columns()

    def keep(self, kind: str, columns: Columns) -> None:
        """Remember this."""
        shown = None if columns.shown is None else list(columns.shown)
        self._settings.setValue(_key(kind), json.dumps({"shown": shown, "widths": dict(columns.widths)}))


def _key(kind: str) -> str:
    return f"columns/{kind or 'any'}".replace(":", "-")
