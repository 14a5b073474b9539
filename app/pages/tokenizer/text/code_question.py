"""Owns the question whether a tokenizer's own Python code may run, beside the sentence that it may not yet."""

from collections.abc import Mapping

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices

from app.core import formatting
from app.core.draft.model_consent import CODE_FIELD, TRUST
from app.core.i18n import tr
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.icon_label import IconButton
from backend.contract.rpc.queries import Mistake, ModelCode


class CodeQuestion(QObject):
    """Two buttons of a banner: to read the code, and to agree to it as it was shown."""

    agreed = Signal()

    def __init__(self, context: AppContext, banner: Banner, parent: QObject) -> None:
        super().__init__(parent)
        self._context, self._banner = context, banner
        self._tokenizer, self._folder = "", ""
        self._code: Mapping[str, str] = {}
        self.read = IconButton(tr("Open folder"), "folder", "quiet")
        self.trust = IconButton(TRUST, "warning", "danger")
        self.read.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(self._folder)))
        self.trust.clicked.connect(self._on_trust)
        for button in (self.read, self.trust):
            button.hide()
            banner.buttons.addWidget(button)

    def look(self, tokenizer: str, mistake: Mistake) -> None:
        """Offer to agree where that is what the mistake is about; else take the buttons away."""
        self.hide()
        if mistake.field != CODE_FIELD:
            return
        self._tokenizer = tokenizer

        def found(code: ModelCode) -> None:
            if self._tokenizer == tokenizer and code.code and not code.agreed:
                self._code, self._folder = code.code, code.folders[0]
                self.read.show()
                self.trust.show()

        self._context.client.ask("model_code", {"target": tokenizer}, found, lambda mistake: None)

    def hide(self) -> None:
        """There is nothing to agree to."""
        self._tokenizer = ""
        self.read.hide()
        self.trust.hide()

    def _on_trust(self) -> None:
        question = {"target": self._tokenizer, "code": dict(self._code)}
        self._context.client.ask("agree_to_code", question, self._on_agreed, self._on_refused)

    def _on_agreed(self, code: ModelCode) -> None:
        self.hide()
        self.agreed.emit()

    def _on_refused(self, mistake: Mistake) -> None:
        self._banner.show_message("error", formatting.sentence(mistake.message, mistake.field))
