"""Owns what the Run page says and does while its run waits in the queue."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.core.i18n import tr
from app.core.runs.run_library import waiting_words
from app.core.runs.run_subject import promised
from app.pages.run.progress import Progress
from app.pages.run.run_buttons import RunButtons
from app.services.context import AppContext
from app.services.run_watcher import RunWatcher


class Queue(QObject):
    """What the run waits for changes with other runs, which the list of runs knows."""

    message = Signal(str, str)

    def __init__(self, context: AppContext, controls: RunButtons, progress: Progress, parent: QObject) -> None:
        super().__init__(parent)
        self._context, self._progress = context, progress
        self._watcher: RunWatcher | None = None
        controls.start_asked.connect(self._on_start_asked)
        context.library_watcher.changed.connect(self._on_runs_changed)

    def show_place(self, watcher: RunWatcher) -> None:
        """Say what the run that is watched waits for, if it does."""
        self._watcher = watcher
        if watcher.outcome.waits:
            self._progress.show_waiting(self._place(watcher.folder.path))

    def _place(self, run: Path) -> str:
        """The list may know a moment sooner than the page that the run has begun, or later that it is there."""
        listed = self._context.library.find(run)
        if listed is None:
            return waiting_words([promised(other).title for other in self._context.jobs.ahead(run)])
        return listed.message if listed.waits else tr("Begins in a moment")

    def _on_runs_changed(self) -> None:
        if self._watcher is not None:
            self.show_place(self._watcher)

    def _on_start_asked(self) -> None:
        assert self._watcher is not None
        if problem := self._context.jobs.start_now(self._watcher.folder.path):
            self.message.emit("error", problem)
        self._watcher.look_now()
        self._context.library_watcher.look_now()
