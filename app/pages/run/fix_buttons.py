"""The buttons that help with a failed run: start the fixed run, and copy a report."""

from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from app.core import formatting
from app.core.draft.draft_settings import fix_words
from app.core.draft.run_copies import next_name
from app.core.i18n import tr
from app.core.runs.run_status import RunStatus
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.icon_label import IconButton
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import RunFolder

STARTING = tr("Starting…")


class FixButtons(QObject):
    """Two buttons on a banner, shown if a run failed or was lost."""

    message = Signal(str, str)
    run_started = Signal(str)
    """The folder of the restarted run: a new one, or the same."""

    def __init__(self, context: AppContext, banner: Banner, parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self._folder: RunFolder | None = None
        self._fix: RunFix | None = None
        self._busy: Path | None = None
        self.fix = IconButton("", "play", "primary")
        self.fix.setAccessibleName(tr("Restart with the fix"))
        self.fix.clicked.connect(self._on_fix)
        self.copy = IconButton(tr("Copy report"), "copy")
        self.copy.setToolTip(
            tr(
                "Copy a report for a bug report or a question: versions, settings and tracebacks, "
                "without names or paths"
            )
        )
        self.copy.clicked.connect(self._on_copy)
        banner.buttons.addWidget(self.fix)
        banner.buttons.addWidget(self.copy)
        self.hide()

    def hide(self) -> None:
        """Hide the buttons: there is nothing to fix."""
        self.fix.hide()
        self.copy.hide()

    def show_outcome(self, folder: RunFolder, outcome: RunStatus) -> None:
        """Offer fixes for the run in `folder`."""
        self._folder, self._fix = folder, outcome.fix
        failed = outcome.state in ("failed", "lost")
        self.copy.setVisible(failed)
        self.fix.setVisible((failed or outcome.state == "finished") and outcome.fix is not None)
        self._show_fix()

    def _show_fix(self) -> None:
        if self._fix is None or self._folder is None:
            return
        busy = self._busy == self._folder.path
        self.fix.setText(STARTING if busy else fix_words(self._fix))
        self.fix.setAccessibleName(self.fix.text())
        self.fix.setEnabled(not busy)
        self.fix.setToolTip(self._fix.command(self._folder.path))

    def _on_fix(self) -> None:
        assert self._folder is not None
        assert self._fix is not None
        run, self._busy = self._folder.path, self._folder.path
        self._show_fix()
        self._context.jobs.fix(run, self._rename(self._fix), lambda path: self._on_started(run, path), self._on_refused)

    def _rename(self, fix: RunFix) -> RunFix:
        """Give a new run its own name; a resumed one keeps its name."""
        runs = self._context.library.runs
        own = next((run.title for run in runs if self._folder and run.path == self._folder.path), "")
        if fix.resume or not own:
            return fix
        return msgspec.structs.replace(
            fix, changes={**fix.changes, "name": next_name(own, (run.title for run in runs))}
        )

    def _on_started(self, run: Path, path: str) -> None:
        self._busy = None
        self._show_fix()
        self._context.library_watcher.refresh_now()
        if self._folder is not None and self._folder.path == run:
            self.run_started.emit(path)

    def _on_refused(self, sentence: str) -> None:
        self._busy = None
        self._show_fix()
        self.message.emit("error", formatting.sentence(sentence))

    def _on_copy(self) -> None:
        from backend.contract.run.report import report  # the YAML reader is not wanted before a page is shown

        assert self._folder is not None
        QGuiApplication.clipboard().setText(report(self._folder))
        self.message.emit(
            "success",
            tr("Copied the report. It contains versions, settings and numbers, but no names, paths or texts."),
        )
