"""Owns handing the options of a text to the run that is being set up, and saying which of them it has."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.i18n import tr
from app.core.text import run_handover
from app.core.text.run_handover import ChosenTask
from app.core.text.text_options import TextOptions
from app.services.backend_client import BackendClient
from backend.contract.catalog import Catalog, TaskEntry


class RunUse(QObject):
    """What a run takes over depends on its task, which the draft names and the catalog describes."""

    message = Signal(str, str)
    settings_chosen = Signal(dict)
    draft_wanted = Signal()
    """Whoever knows the run that is being set up should call `show_draft`."""

    def __init__(self, client: BackendClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._tasks: list[TaskEntry] = []
        self._task = ChosenTask()

    def learn_tasks(self) -> None:
        """Ask for the catalog, once."""
        if not self._tasks:
            self._client.ask("catalog", {}, self._on_catalog, lambda mistake: None)

    def _on_catalog(self, catalog: Catalog) -> None:
        self._tasks = catalog.tasks

    def show_draft(self, spec: Mapping[str, Any]) -> None:
        """The run that is being set up."""
        self._task = run_handover.chosen_task(self._tasks, spec)

    def hand_over(self, options: TextOptions) -> None:
        """Make these the run's as far as it has them, and say what it decides by itself."""
        self.draft_wanted.emit()
        found = run_handover.handover(options, self._task)
        rest = " ".join(found.left)
        if not found.settings:
            self.message.emit("info", tr("Nothing of this is a setting of your run. {rest}", rest=rest))
            return
        self.settings_chosen.emit(found.settings)
        taken_over = run_handover.taken_over(found.settings)
        said = tr("Your run has now {taken_over}. {rest}", taken_over=taken_over, rest=rest)
        self.message.emit("success", said.rstrip())
