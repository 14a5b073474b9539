"""The progress line of long work, and the buttons to approve a tokenizer's own code."""

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from app.core import formatting
from app.core.draft.model_consent import CODE_FIELD, TRUST
from app.core.i18n import tr
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.icon_label import IconButton
from app.widgets.progress import WorkRow
from backend.contract.rpc.models import ModelCode
from backend.contract.rpc.protocol import ErrorReply, Progress

SLOW_MS = 400
"""After this the line appears."""


class WorkingRow(WorkRow):
    """Hidden until work reported by `is_working` takes long."""

    def __init__(self, is_working: Callable[[], bool], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_working, self._words = is_working, ""
        self.slow = QTimer(self, interval=SLOW_MS, singleShot=True)
        self.slow.timeout.connect(self._appear)
        self.hide()

    def begin(self, words: str = tr("Working")) -> None:
        """A query was sent; most are answered before the row is needed."""
        self._words = words
        self.slow.start()

    def show_progress(self, progress: Progress) -> None:
        """Show the progress."""
        if progress.total:
            self._appear()
            super().show_progress(progress)

    def end(self) -> None:
        """The query is done or cancelled."""
        super().end()
        self.slow.stop()
        self.hide()

    def _appear(self) -> None:
        if self._is_working() and self.isHidden() and not self.slow.isActive():
            super().begin(self._words)
            self.show()


class CodeQuestion(QObject):
    """Two buttons on a banner: read the code, and approve it as shown."""

    agreed = Signal()

    def __init__(self, context: AppContext, banner: Banner, parent: QObject) -> None:
        super().__init__(parent)
        self._context, self._banner = context, banner
        self._tokenizer, self._folder = "", ""
        self._code: Mapping[str, str] = {}
        self.read = IconButton(tr("Open folder"), "folder", "quiet", clicked=self._open_folder)
        self.trust = IconButton(TRUST, "warning", "danger", clicked=self._on_trust)
        for button in (self.read, self.trust):
            button.hide()
            banner.buttons.addWidget(button)

    def show_consent(self, tokenizer: str, mistake: ErrorReply) -> None:
        """Offer to approve if the error is about that; else hide the buttons."""
        self.hide()
        if mistake.field != CODE_FIELD:
            return
        self._tokenizer = tokenizer

        def on_found(code: ModelCode) -> None:
            if self._tokenizer == tokenizer and code.code and not code.agreed:
                self._code, self._folder = code.code, code.folders[0]
                self.read.show()
                self.trust.show()

        self._context.client.ask("model_code", {"target": tokenizer}, on_found, lambda mistake: None)

    def hide(self) -> None:
        """Hide the buttons: there is nothing to approve."""
        self._tokenizer = ""
        self.read.hide()
        self.trust.hide()

    def _open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(self._folder))

    def _on_trust(self) -> None:
        question = {"target": self._tokenizer, "code": dict(self._code)}
        self._context.client.ask("agree_to_code", question, self._on_agreed, self._on_refused)

    def _on_agreed(self, code: ModelCode) -> None:
        self.hide()
        self.agreed.emit()

    def _on_refused(self, mistake: ErrorReply) -> None:
        self._banner.show_message("error", formatting.sentence(mistake.message, mistake.field))
