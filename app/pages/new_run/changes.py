"""Owns what the page says of settings that are not their defaults: their number on the card, and the list beside it."""

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.pages.new_run.changes_dialog import ChangesDialog
from app.pages.new_run.draft_controller import DraftController
from app.pages.new_run.settings_card import SettingsCard
from app.pages.new_run.settings_search import SettingsSearch


class Changes(QObject):
    """Follows every step of `editing`."""

    def __init__(self, editing: DraftController, seeking: SettingsSearch, card: SettingsCard, page: QWidget) -> None:
        super().__init__(page)
        self._editing, self._seeking, self._card, self._page = editing, seeking, card, page
        self.dialog: ChangesDialog | None = None
        card.changes_asked.connect(self.look)
        card.reset_asked.connect(editing.reset)
        editing.undoing.changed.connect(self.show)

    def look(self) -> None:
        """All of them, beside the page."""
        if self.dialog is None:
            self.dialog = ChangesDialog(self._page)
            self.dialog.reset_asked.connect(self._editing.reset)
            self.dialog.shown_asked.connect(self._seeking.show)
        self.dialog.show_changes(self._editing.differences())
        self.dialog.show()
        self.dialog.raise_()

    def show(self) -> None:
        """The draft may be another."""
        changes = self._editing.differences()
        self._card.show_changes(changes)
        if self.dialog is not None and self.dialog.isVisible():
            self.dialog.show_changes(changes)
