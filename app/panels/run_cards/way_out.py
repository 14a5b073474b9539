"""Owns the way out of a failed run: the button that starts the mended one, and the report to copy."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from app.core import wording
from app.core.draft import read_draft
from app.core.outcome import Outcome
from app.services.context import AppContext
from app.services.job import NO_CONSENT, Consent
from app.widgets.banner import Banner
from app.widgets.icon_label import IconButton
from backend.contract.errors import InputError
from backend.contract.mending import Mend
from backend.contract.run_folder import RunFolder

STARTING = "Starting…"


class WayOut(QObject):
    """Two buttons of a banner, shown where a run failed or was lost."""

    message = Signal(str, str)
    run_started = Signal(str)
    """The folder of the mended run: a new one, or the same."""

    def __init__(self, context: AppContext, banner: Banner, parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self._folder: RunFolder | None = None
        self._mend: Mend | None = None
        self._busy: Path | None = None
        self.mend = IconButton("", "play", "primary")
        self.mend.setAccessibleName("Start again with what helps")
        self.mend.clicked.connect(self._on_mend)
        self.copy = IconButton("Copy report", "copy")
        self.copy.setToolTip("What to send to whoever may help: versions, settings, last events and log, no secrets")
        self.copy.clicked.connect(self._on_copy)
        banner.buttons.addWidget(self.mend)
        banner.buttons.addWidget(self.copy)
        self.hide()

    def hide(self) -> None:
        """There is nothing to mend."""
        self.mend.hide()
        self.copy.hide()

    def show_outcome(self, folder: RunFolder, outcome: Outcome) -> None:
        """Offer what helps the run in `folder`."""
        self._folder, self._mend = folder, outcome.mend
        failed = outcome.state in ("failed", "lost")
        self.copy.setVisible(failed)
        self.mend.setVisible(failed and outcome.mend is not None)
        self._show_mend()

    def _show_mend(self) -> None:
        if self._mend is None or self._folder is None:
            return
        busy = self._busy == self._folder.path
        self.mend.setText(STARTING if busy else self._mend.words())
        self.mend.setAccessibleName(self.mend.text())
        self.mend.setEnabled(not busy)
        self.mend.setToolTip(self._mend.command(self._folder.path))

    def _on_mend(self) -> None:
        assert self._folder is not None
        assert self._mend is not None
        run, self._busy = self._folder.path, self._folder.path
        self._show_mend()
        self._context.jobs.mend(
            run, self._mend, lambda path: self._on_started(run, path), self._on_refused, self._consent()
        )

    def _consent(self) -> Consent:
        """What this user has agreed to for the run's model; the run itself is no consent."""
        assert self._folder is not None
        try:
            draft = read_draft(self._folder.spec)
        except InputError:
            return NO_CONSENT  # the start says what is wrong with the spec
        name, commit = str(draft.get("model.name_or_path")), str(draft.get("model.revision", "main"))
        wanted = bool(draft.get("model.trust_remote_code"))
        return Consent(remote_code=wanted and self._context.preferences.trusts(name, commit))

    def _on_started(self, run: Path, path: str) -> None:
        self._busy = None
        self._show_mend()
        self._context.library_watcher.look_now()
        if self._folder is not None and self._folder.path == run:
            self.run_started.emit(path)

    def _on_refused(self, sentence: str) -> None:
        self._busy = None
        self._show_mend()
        self.message.emit("error", wording.sentence(sentence))

    def _on_copy(self) -> None:
        from backend.contract.run_report import report  # the YAML reader is not wanted before a page is shown

        assert self._folder is not None
        QGuiApplication.clipboard().setText(report(self._folder))
        self.message.emit("success", "The report is copied. It holds paths and settings, but no tokens: read it first.")
