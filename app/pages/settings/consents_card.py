"""Owns the consents to run code that came with a model: to look through, and to withdraw."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core.backend_sentences import told
from app.core.i18n import tr
from app.widgets.card import Card, label
from app.widgets.icon_label import IconButton
from app.widgets.text.elided_label import ElidedLabel
from backend.contract import consents
from backend.contract.errors import InputError

NONE = tr("You have agreed to no model's own code. You are asked where a model needs it, once for each version of it.")
SHOWN = 12
"""Signs of a commit."""


class ConsentsCard(Card):
    """One line for each repository and commit."""

    message = Signal(str, str)

    def __init__(self) -> None:
        super().__init__(tr("Code of models"))
        self.lines = QVBoxLayout()
        self.lines.setSpacing(6)
        self.none = label(NONE, "faint", wrap=True)
        self.add(self.none)
        self.body.addLayout(self.lines)
        self.show_consents()

    def show_consents(self) -> None:
        """Read them again; another page may have added some."""
        while (item := self.lines.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        agreed = consents.read()
        for one in agreed:
            self.lines.addWidget(self._line(one.name, one.version))
        self.none.setVisible(not agreed)

    def _line(self, repository: str, commit: str) -> QWidget:
        line = QWidget()
        row = QHBoxLayout(line)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(ElidedLabel(repository, "strong", Qt.TextElideMode.ElideMiddle), 1)
        version = label(commit[:SHOWN], "mono")
        version.setToolTip(tr("Version {commit}", commit=commit))
        row.addWidget(version)
        withdraw = IconButton(tr("Withdraw"), "close")
        withdraw.setAccessibleName(tr("Withdraw the consent to run the code of {repository}", repository=repository))
        withdraw.clicked.connect(lambda: self.withdraw(repository, commit))
        row.addWidget(withdraw)
        return line

    def withdraw(self, repository: str, commit: str) -> None:
        """Agree no longer; a run that is alive goes on."""
        try:
            consents.withdraw(repository, commit)
        except InputError as error:
            self.message.emit("error", told(str(error)))
            return
        self.show_consents()
        self.message.emit(
            "success", tr("The code of {repository} is not run any more without asking you.", repository=repository)
        )
