"""The Settings page: appearance, folders, the hub, consents, CSV, notifications, this computer, other machines, trackers, and versions."""

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QBoxLayout, QCheckBox, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from app import theme
from app.core.actions import Action
from app.core.i18n import tr
from app.core.page_actions import SETTINGS
from app.pages.settings.appearance_card import AppearanceCard
from app.pages.settings.folders_card import FoldersCard
from app.pages.settings.hub_card import ConsentsCard, HubCard, check_row
from app.pages.settings.machine_card import MachineCard
from app.pages.settings.machines_card import MachinesCard
from app.pages.settings.trackers_card import TrackersCard
from app.services import notifications
from app.services.context import AppContext
from app.widgets import desktop
from app.widgets.card import Card, label
from app.widgets.page_layout import PageArea, PageHeader, scrolling_layout
from backend.contract import places
from backend.contract.catalog import Catalog
from backend.contract.versions import CONTRACT_VERSION

TWO_COLUMNS = 780
"""Pixels of the page."""
NO_DESKTOP = tr("Desktop notifications aren't available; Burnish will still notify you in the app.")


class Page(QWidget):
    """Saves every change at once."""

    message = Signal(str, str)
    theme_changed = Signal(str)
    text_size_changed = Signal(int)
    restart_wanted = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self._context = context
        self._machine_requested = False
        self.appearance, self.folders = AppearanceCard(context.preferences), FoldersCard(context)
        self.hub, self.consents = HubCard(context), ConsentsCard()
        self.machine, self.machines = MachineCard(context.client), MachinesCard(context.client)
        self.trackers = TrackersCard(context.client)
        header = PageHeader(tr("Settings"), tr("Stored in {config_folder}", config_folder=places.config_folder()))
        page = scrolling_layout(self, header)
        page.addWidget(self._columns(), 1)
        self._connect()

    def _columns(self) -> PageArea:
        holder = QWidget()
        self._area = PageArea(holder, self)
        columns = self._sides = QHBoxLayout(holder)
        columns.setContentsMargins(0, 0, 0, 0)
        columns.setSpacing(14)
        # Choices are on the left, information is on the right.
        left = [self.appearance, self.folders, self.hub, self.consents, self._messages_card(), self._csv_card()]
        right = [self.machine, self.machines, self.trackers, self._about_card()]
        for cards in (left, right):
            column = QVBoxLayout()
            column.setSpacing(14)
            for card in cards:
                column.addWidget(card)
            column.addStretch(1)
            columns.addLayout(column, 1)
        return self._area

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Without room for two columns, the right one goes below the left one."""
        super().resizeEvent(event)
        is_wide = event.size().width() >= theme.pixels(TWO_COLUMNS)
        self._sides.setDirection(QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom)

    def _connect(self) -> None:
        self.appearance.theme_chosen.connect(self._on_theme_chosen)
        self.appearance.size_chosen.connect(self._on_size_chosen)
        self.appearance.language.chosen.connect(lambda code: self._set("language", code))
        self.appearance.language.restart_wanted.connect(self.restart_wanted)
        self.folders.folder_chosen.connect(self.set_folder)
        self.hub.offline_changed.connect(self._on_offline)
        for card in (self.folders, self.hub, self.consents, self.machine, self.machines):
            card.message.connect(self.message)

    def _csv_card(self) -> Card:
        card = Card(tr("CSV export"))
        self.csv_bom = self._check(
            card,
            tr("Add UTF-8 BOM (for Excel)"),
            "csv_bom",
            tr("Lets Excel read letters such as é and ü correctly."),
        )
        self.csv_defuse = self._check(
            card,
            tr("Escape formulas"),
            "csv_defuse",
            tr("Adds ' before cells that a spreadsheet would run as formulas, such as =1+1."),
        )
        return card

    def _messages_card(self) -> Card:
        card = Card(tr("Notifications"))
        possible = desktop.shows_messages() or notifications.is_possible()
        reason = tr("Only while the window is in the background.") if possible else NO_DESKTOP
        self.desktop_messages = self._check(
            card, tr("Notify me when a run finishes or fails"), "desktop_messages", reason
        )
        self.desktop_messages.setEnabled(possible)
        return card

    def _check(self, card: Card, title: str, name: str, reason: str) -> QCheckBox:
        present = bool(getattr(self._context.preferences, name))
        return check_row(card, title, reason, present, lambda on: self._set(name, on))

    def _about_card(self) -> Card:
        card = Card(tr("About"))
        self.versions = QGridLayout()
        self.versions.setHorizontalSpacing(18)
        self.versions.setVerticalSpacing(5)
        self.versions.setColumnStretch(1, 1)
        card.add(label(tr("Fine-tune transformer models by point and click. Licensed under Apache-2.0."), wrap=True))
        card.body.addLayout(self.versions)
        self._show_versions({})
        return card

    def offered_actions(self) -> list[Action]:
        """Each setting by its title, for the palette, which brings it into view for editing."""
        named: dict[str, QWidget] = {
            "theme": self.appearance.themes.buttons()[0],
            "text_size": self.appearance.sizes.buttons()[0],
            "language": self.appearance.language.box,
            "runs_folder": self.folders.runs_folder,
            "cache_folder": self.folders.cache_folder,
            "offline": self.hub.offline,
            "token": self.hub.token,
            "consents": self.consents,
            "machines": self.machines.name,
            "trackers": self.trackers,
            "desktop_messages": self.desktop_messages,
            "csv_bom": self.csv_bom,
            "csv_defuse": self.csv_defuse,
        }
        return [SETTINGS[name].bind(lambda widget=widget: self._go_to(widget)) for name, widget in named.items()]

    def _go_to(self, widget: QWidget) -> None:
        self._area.ensureWidgetVisible(widget, 0, 60)
        group = widget.group() if isinstance(widget, QAbstractButton) else None
        chosen = group.checkedButton() if group is not None else None
        (chosen or widget).setFocus(Qt.FocusReason.ShortcutFocusReason)

    # Changes

    def show_preferences(self) -> None:
        """Show changes made elsewhere, for example in the palette."""
        self.appearance.show_preferences()

    def _set(self, name: str, value: object) -> None:
        self._context.preferences.set(name, value)
        if name in ("offline", "runs_folder", "cache_folder"):
            # The helper learns of these from its environment.
            self._context.client.restart()

    def _on_theme_chosen(self, choice: str) -> None:
        self._set("theme", choice)
        self.theme_changed.emit(choice)

    def _on_size_chosen(self, size: int) -> None:
        self._set("text_size", size)
        self.text_size_changed.emit(size)

    def _on_offline(self, offline: bool) -> None:
        self._set("offline", offline)
        self.hub.ask_account()

    def set_folder(self, name: str, folder: str) -> None:
        """Move runs or caches to another folder; empty means the default one."""
        self._set(name, folder)
        self.folders.show_folders()
        self.folders.ask_sizes()
        if name == "runs_folder":
            self._context.library.root = Path(self._context.preferences.runs_path())
            self._context.library_watcher.refresh_now()

    # What is here

    def on_shown(self) -> None:
        """Query what takes the helper a moment: the machine once, the rest on every visit."""
        self.consents.show_consents()
        self.folders.ask_sizes()
        self.hub.ask_account()
        self.machines.ask()
        if not self._machine_requested:
            self._machine_requested = True
            self.machine.ask()
            self._context.client.ask("catalog", {}, self._show_catalog, self.machine.show_mistake)

    def _show_catalog(self, catalog: Catalog) -> None:
        self._show_versions(catalog.versions)
        self.trackers.show_catalog(catalog.mirrors)

    def _show_versions(self, versions: dict[str, str]) -> None:
        while self.versions.count():
            item = self.versions.takeAt(0)
            if item is not None and (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for row, (name, version) in enumerate({**versions, "contract": CONTRACT_VERSION}.items()):
            self.versions.addWidget(label(name, "muted"), row, 0)
            self.versions.addWidget(label(version or tr("not installed"), selectable=True), row, 1)
