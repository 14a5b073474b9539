"""Owns the Settings page: the look, folders, the network, CSV, what this machine lacks, and versions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.core import wording
from app.services import desktop_notification
from app.services.context import AppContext
from app.widgets import desktop_messages
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.chips import chips
from app.widgets.elided_label import ElidedLabel
from app.widgets.icon_label import IconButton, IconLabel, IconToolButton
from app.widgets.page_header import PageHeader, page_layout
from app.widgets.path_line import PathLine
from backend.contract import places
from backend.contract.queries import Mistake
from backend.contract.version import CONTRACT_VERSION

THEMES = (("Follow the system", "system"), ("Light", "light"), ("Dark", "dark"))
LOOKS = {"fine": ("check", "success"), "note": ("info", "info"), "missing": ("warning", "warning")}
"""How each state of a finding looks."""


NO_DESKTOP = "This desktop shows no messages of programs; the window tells it in any case."


class Panel(QWidget):
    """Writes every change at once."""

    message = Signal(str, str)
    theme_changed = Signal(str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self._context = context
        self._asked = False
        holder = QWidget()
        holder.setObjectName("scrolled")
        columns = QHBoxLayout(holder)
        columns.setContentsMargins(0, 0, 4, 0)
        columns.setSpacing(14)
        left, right = QVBoxLayout(), QVBoxLayout()
        for column, cards in (
            (
                left,
                [self._look_card(), self._folders_card(), self._hub_card(), self._csv_card(), self._messages_card()],
            ),
            (right, [self._doctor_card(), self._about_card()]),
        ):
            column.setSpacing(14)
            for card in cards:
                column.addWidget(card)
            column.addStretch(1)
            columns.addLayout(column, 1)
        area = QScrollArea(widgetResizable=True)
        area.setWidget(holder)
        page = page_layout(self)
        page.addWidget(PageHeader("Settings", f"Kept in {places.config_folder()}"))
        page.addWidget(area, 1)

    # Building

    def _look_card(self) -> Card:
        card = Card("Appearance")
        self.theme_group, row = chips([title for title, _ in THEMES])
        self.show_preferences()
        self.theme_group.idClicked.connect(self._on_theme_chosen)
        row.addStretch(1)
        card.body.addLayout(row)
        return card

    def _folders_card(self) -> Card:
        card = Card("Folders")
        preferences = self._context.preferences
        self.runs_folder = self._folder(card, "Runs", "runs_folder", str(preferences.runs_path()))
        self.cache_folder = self._folder(card, "Caches", "cache_folder", str(preferences.cache_path()))
        card.add(label("New runs go to the runs folder; what lies elsewhere stays there.", "faint", wrap=True))
        return card

    def _folder(self, card: Card, title: str, name: str, path: str) -> QLineEdit:
        line = PathLine(path, readOnly=True)
        line.setAccessibleName(f"{title} folder")
        line.setToolTip(path)
        line.setCursorPosition(0)
        browse, reset = IconButton("Browse", "folder"), IconToolButton("refresh", f"{title}: back to the usual folder")
        browse.setAccessibleName(f"Browse for the {title.lower()} folder")
        browse.clicked.connect(lambda: self._choose_folder(name, line))
        reset.clicked.connect(lambda: self.set_folder(name, ""))
        row = QHBoxLayout()
        row.setSpacing(8)
        caption = label(title, "muted")
        caption.setFixedWidth(56)
        for widget, stretch in ((caption, 0), (line, 1), (browse, 0), (reset, 0)):
            row.addWidget(widget, stretch)
        card.body.addLayout(row)
        return line

    def _hub_card(self) -> Card:
        card = Card("Model hub")
        self.offline = self._check(card, "Work offline", "offline", "Nothing is downloaded; only what is here is used.")
        return card

    def _csv_card(self) -> Card:
        card = Card("CSV export")
        self.csv_bom = self._check(
            card,
            "Begin files with a byte order mark",
            "csv_bom",
            "Excel then reads letters such as é and ü correctly.",
        )
        self.csv_defuse = self._check(
            card, "Defuse formulas", "csv_defuse", "Puts ' before cells that a spreadsheet would run, such as =1+1."
        )
        return card

    def _messages_card(self) -> Card:
        card = Card("Notifications")
        possible = desktop_messages.are_possible() or desktop_notification.is_possible()
        reason = "Only while the window is not in front." if possible else NO_DESKTOP
        self.desktop_messages = self._check(
            card, "Let the desktop tell when a run has finished or failed", "desktop_messages", reason
        )
        self.desktop_messages.setEnabled(possible)
        return card

    def _check(self, card: Card, title: str, name: str, reason: str) -> QCheckBox:
        box = QCheckBox(title)
        box.setChecked(getattr(self._context.preferences, name))
        box.setAccessibleDescription(reason)
        box.toggled.connect(lambda on: self._set(name, on))
        why = label(reason, "faint", wrap=True)
        why.setContentsMargins(26, 0, 0, 0)
        holder = QVBoxLayout()
        holder.setSpacing(0)
        holder.addWidget(box)
        holder.addWidget(why)
        card.body.addLayout(holder)
        return box

    def _doctor_card(self) -> Card:
        card = Card("This machine")
        self.check_again = IconButton("Check again", "refresh", "quiet")
        self.check_again.clicked.connect(self._ask_doctor)
        card.corner.addWidget(self.check_again)
        self.doctor_banner = Banner()
        card.add(self.doctor_banner)
        self.doctor_lines = QVBoxLayout()
        self.doctor_lines.setSpacing(10)
        card.body.addLayout(self.doctor_lines)
        return card

    def _about_card(self) -> Card:
        card = Card("About")
        self.versions = QGridLayout()
        self.versions.setHorizontalSpacing(18)
        self.versions.setVerticalSpacing(5)
        self.versions.setColumnStretch(1, 1)
        card.add(label("Burnish fine-tunes transformer models. Licensed under Apache-2.0.", wrap=True))
        card.body.addLayout(self.versions)
        self._show_versions({})
        return card

    def show_preferences(self) -> None:
        """Show what was chosen elsewhere, for example in the palette."""
        present = self._context.preferences.theme
        # A file of another version may name a theme that is not here; the first one follows the system.
        chosen = next((place for place, (_, value) in enumerate(THEMES) if value == present), 0)
        self.theme_group.button(chosen).setChecked(True)

    # Changes

    def _set(self, name: str, value: object) -> None:
        self._context.preferences.set(name, value)
        if name in ("offline", "runs_folder", "cache_folder"):
            # The helper learns of these from its environment.
            self._context.client.restart()

    def _on_theme_chosen(self, place: int) -> None:
        self._set("theme", THEMES[place][1])
        self.theme_changed.emit(THEMES[place][1])

    def _choose_folder(self, name: str, line: QLineEdit) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Choose a folder", line.text())
        if folder:
            self.set_folder(name, folder)

    def set_folder(self, name: str, folder: str) -> None:
        """Keep runs or caches in another folder; empty means the usual one."""
        self._set(name, folder)
        preferences = self._context.preferences
        self.runs_folder.setText(str(preferences.runs_path()))
        self.cache_folder.setText(str(preferences.cache_path()))
        if name == "runs_folder":
            self._context.library.root = Path(preferences.runs_path())
            self._context.library_watcher.look_now()

    # What is here

    def shown(self) -> None:
        """Ask once; it takes the helper a moment."""
        if not self._asked:
            self._asked = True
            self._ask_doctor()
            self._context.client.ask(
                "catalog", {}, lambda catalog: self._show_versions(catalog.versions), self._on_mistake
            )

    def _ask_doctor(self) -> None:
        self.check_again.setEnabled(False)
        self._context.client.ask("doctor", {}, self._on_doctor, self._on_mistake)

    def _on_mistake(self, mistake: Mistake) -> None:
        self.check_again.setEnabled(True)
        self.doctor_banner.show_message("error", mistake.message)

    def _on_doctor(self, answer: dict[str, Any]) -> None:
        self.check_again.setEnabled(True)
        self.doctor_banner.clear()
        _clear(self.doctor_lines)
        for finding in answer["findings"]:
            self.doctor_lines.addWidget(FindingLine(finding, self._copied))

    def _copied(self, command: str) -> None:
        QGuiApplication.clipboard().setText(command)
        self.message.emit("success", "Copied.")

    def _show_versions(self, versions: dict[str, str]) -> None:
        while self.versions.count():
            item = self.versions.takeAt(0)
            if item is not None and (widget := item.widget()) is not None:
                widget.deleteLater()
        for row, (name, version) in enumerate({**versions, "contract": CONTRACT_VERSION}.items()):
            self.versions.addWidget(label(name, "muted"), row, 0)
            self.versions.addWidget(label(version or "not installed", selectable=True), row, 1)


class FindingLine(QWidget):
    """One thing that was looked at; where it is not right, what mends it."""

    def __init__(self, finding: dict[str, Any], copy: Callable[[str], None]) -> None:
        super().__init__()
        icon, token = LOOKS.get(finding["state"], LOOKS["missing"])
        mark = IconLabel(icon, token, 16)
        mark.setAccessibleName(str(finding["state"]))
        texts = QVBoxLayout()
        texts.setSpacing(1)
        texts.addWidget(label(_sentence(finding["text"]), "strong" if finding["state"] == "missing" else "", wrap=True))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(mark, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(texts, 1)
        if finding.get("mend"):
            command = QHBoxLayout()
            command.addWidget(ElidedLabel(finding["mend"], "mono"), 1)
            button = IconToolButton("copy", "Copy what mends it", size=14)
            button.clicked.connect(lambda: copy(finding["mend"]))
            command.addWidget(button)
            texts.addLayout(command)


def _sentence(text: str) -> str:
    """Begun with a capital, unless it begins with the name of a library or device."""
    words = text.split()
    is_named = "not installed" in text or len(words) < 4 or any(letter.isdigit() for letter in words[1])
    return text if is_named else wording.sentence(text)


def _clear(column: QVBoxLayout) -> None:
    while column.count():
        item = column.takeAt(0)
        if item is not None and (widget := item.widget()) is not None:
            widget.deleteLater()
