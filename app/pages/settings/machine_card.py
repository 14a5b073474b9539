"""What this machine has and lacks, with the command that fixes it."""

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core import formatting
from app.core.backend_messages import translate_message
from app.core.backend_words import translate_word
from app.core.i18n import tr, trn
from app.services.backend_client import BackendClient
from app.widgets.banner import Banner
from app.widgets.boxes import holder, vbox
from app.widgets.card import Card, label
from app.widgets.icon_label import IconButton, IconLabel, IconToolButton
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.protocol import ErrorReply

STYLES = {"fine": ("check", "success"), "note": ("info", "info"), "missing": ("warning", "warning")}
"""How each state of a finding looks."""


class MachineCard(Card):
    """Queries the helper's doctor."""

    message = Signal(str, str)

    def __init__(self, client: BackendClient) -> None:
        super().__init__(tr("This computer"))
        self._client = client
        self.fold: IconButton | None = None
        """Shows what is fine."""
        self.check_again = IconButton(tr("Check again"), "refresh", "quiet")
        self.check_again.clicked.connect(self.ask)
        self.corner.addWidget(self.check_again)
        self.banner = Banner()
        self.add(self.banner)
        self.lines = QVBoxLayout()
        self.lines.setSpacing(10)
        self.body.addLayout(self.lines)

    def ask(self) -> None:
        """Check again."""
        self.check_again.setEnabled(False)
        self._client.ask("doctor", {}, self.show_findings, self.show_mistake)

    def show_mistake(self, mistake: ErrorReply) -> None:
        """Show why the checks could not be run."""
        self.check_again.setEnabled(True)
        self.banner.show_message("error", mistake.message)

    def show_findings(self, answer: dict[str, Any]) -> None:
        """Which devices can train, then what is wrong, a line each; what is fine is folded away."""
        self.check_again.setEnabled(True)
        self.banner.clear()
        while (item := self.lines.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        findings = [one for one in answer["findings"] if one.get("about") != "display"]
        about_devices = [one for one in findings if one.get("about") == "device"]
        rest = [one for one in findings if one.get("about") != "device"]
        passed = [one for one in rest if one["state"] == "fine"]
        for finding in (*about_devices, *(one for one in rest if one["state"] != "fine")):
            self.lines.addWidget(FindingLine(finding, self._on_copied))
        self._fold_passed([FindingLine(finding, self._on_copied) for finding in passed])

    def _fold_passed(self, lines: Sequence[QWidget]) -> None:
        """Fold away what is fine: people come here to see what is not."""
        if not lines:
            return
        inside = holder(vbox(*lines, spacing=10))
        inside.hide()
        words = trn("{count} check passed", "{count} checks passed", len(lines))
        fold = self.fold = IconButton(words, "chevron-right", "quiet")
        fold.setCheckable(True)
        fold.toggled.connect(inside.setVisible)
        fold.toggled.connect(lambda on: fold.set_icon("chevron-down" if on else "chevron-right"))
        self.lines.addWidget(fold, 0, Qt.AlignmentFlag.AlignLeft)
        self.lines.addWidget(inside)

    def _on_copied(self, command: str) -> None:
        QGuiApplication.clipboard().setText(command)
        self.message.emit("success", tr("Copied."))


COMMANDS = ("sudo", "apt-get", "pip", "python", "unset", "export", "burnish", "hf")
"""First words of the fixes that are commands."""


class FindingLine(QWidget):
    """One check, with its fix if something is wrong."""

    def __init__(self, finding: dict[str, Any], copy: Callable[[str], None]) -> None:
        super().__init__()
        icon, token = STYLES.get(finding["state"], STYLES["missing"])
        mark = IconLabel(icon, token, 16)
        mark.setAccessibleName(translate_word(str(finding["state"])))
        texts = QVBoxLayout()
        texts.setSpacing(1)
        texts.addWidget(label(_sentence(finding["text"]), "strong" if finding["state"] == "missing" else "", wrap=True))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(mark, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(texts, 1)
        fix = str(finding.get("mend") or "")
        if is_command(fix):
            command = QHBoxLayout()
            command.addWidget(ElidedLabel(fix, "mono"), 1)
            button = IconToolButton("copy", tr("Copy the fix: {finding}", finding=fix), size=14)
            button.clicked.connect(lambda: copy(fix))
            command.addWidget(button)
            texts.addLayout(command)
        elif fix:
            texts.addWidget(label(formatting.sentence(translate_message(fix)), "muted", wrap=True, selectable=True))


def is_command(fix: str) -> bool:
    """Whether a fix can be pasted into a terminal; the others are sentences."""
    words = fix.split()
    return words[1:3] == ["-m", "pip"] or next(iter(words), "") in COMMANDS


def _sentence(text: str) -> str:
    """The sentence with a capital letter, unless it starts with the name of a library or device."""
    words = text.split()
    is_named = "not installed" in text or len(words) < 4 or any(letter.isdigit() for letter in words[1])
    return translate_message(text) if is_named else formatting.sentence(translate_message(text))
