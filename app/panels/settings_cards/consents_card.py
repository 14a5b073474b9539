"""Owns the consents to run code that came with a model: to look through, and to withdraw."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core.preferences import Preferences
from app.widgets.card import Card, label
from app.widgets.elided_label import ElidedLabel
from app.widgets.icon_label import IconButton

NONE = "You have agreed to no model's own code. You are asked where a model needs it, once for each version of it."
SHOWN = 12
"""Signs of a commit."""


class ConsentsCard(Card):
    """One line for each repository and commit."""

    message = Signal(str, str)

    def __init__(self, preferences: Preferences) -> None:
        super().__init__("Code of models")
        self._preferences = preferences
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
        agreed = self._preferences.trusted_repositories
        for repository in sorted(agreed):
            for commit in agreed[repository]:
                self.lines.addWidget(self._line(repository, commit))
        self.none.setVisible(not agreed)

    def _line(self, repository: str, commit: str) -> QWidget:
        line = QWidget()
        row = QHBoxLayout(line)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(ElidedLabel(repository, "strong"), 1)
        version = label(commit[:SHOWN], "mono")
        version.setToolTip(f"Version {commit}")
        row.addWidget(version)
        withdraw = IconButton("Withdraw", "close")
        withdraw.setAccessibleName(f"Withdraw the consent to run the code of {repository}")
        withdraw.clicked.connect(lambda: self.withdraw(repository, commit))
        row.addWidget(withdraw)
        return line

    def withdraw(self, repository: str, commit: str) -> None:
        """Agree no longer; a run that is alive goes on."""
        self._preferences.withdraw(repository, commit)
        self.show_consents()
        self.message.emit("success", f"The code of {repository} is not run any more without asking you.")
