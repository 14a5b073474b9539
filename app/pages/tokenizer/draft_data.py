"""Asks for the data of the run that is being set up, which another page knows."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.i18n import tr

NONE_YET = tr("The new run has no data yet; choose it there, or here.")


class DraftData(QObject):
    """`ask`, and then `taken` or `message` as soon as somebody calls `show_draft`."""

    wanted = Signal()
    """Whoever knows the run that is being set up should call `show_draft`."""
    taken = Signal(dict)
    """The run's `data` section."""
    message = Signal(str, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._is_wanted = False

    def ask(self) -> None:
        """Take the data; where nobody has set up a run yet, say so."""
        self._is_wanted = True
        self.wanted.emit()
        self.show_draft({})

    def show_draft(self, spec: Mapping[str, Any]) -> None:
        """The run that is being set up; ignored unless it was asked for."""
        if not self._is_wanted:
            return
        self._is_wanted = False
        data = spec.get("data") or {}
        if data.get("source", "files") == "files" and not data.get("train"):
            self.message.emit("info", NONE_YET)
        else:
            self.taken.emit(dict(data))
