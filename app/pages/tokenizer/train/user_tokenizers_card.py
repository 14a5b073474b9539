"""The tokenizers made here before: where each is, and buttons to open, use or forget it."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.core.backend_words import COLUMNS as COLUMN_TITLES
from app.core.formatting import name_of_path
from app.core.i18n import tr
from app.core.preferences import Preferences
from app.core.text import tokenizer_list
from app.core.text.tokenizer_list import MadeBefore, made_rows
from app.widgets.boxes import hbox, stack
from app.widgets.card import Card
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.tables.row_table import RowTable
from app.widgets.text.elided_label import ElidedLabel

WIDTHS = {"name": 240, "pieces": 90, "made": 120, "folder": 200}
FOLDER_GONE = tr("Folder not found: {path}. You can remove this tokenizer from the list.")


class UserTokenizersCard(Card):
    """Forgetting one deletes nothing."""

    open_requested = Signal(str)
    use_requested = Signal(str)
    forgotten = Signal()
    message = Signal(str, str)

    def __init__(self, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(tr("Your tokenizers"), parent)
        self._preferences = preferences
        self._made: list[MadeBefore] = []
        self._row = -1
        self.table = RowTable(name=tr("Tokenizers you trained or extended"), titles=COLUMN_TITLES)
        self.table.remember("made_tokenizers")
        self.table.row_selected.connect(self._on_selected)
        self.table.activated.connect(lambda index: self._open())
        self.where = ElidedLabel("", "muted")
        hint = tr("Tokenizers you train or extend here are listed with their folders.")
        self.pages = stack(EmptyState("text", tr("No tokenizers yet"), hint), self.table)
        self.open = IconButton(tr("Open"), "search", "primary", hint=tr("Open on this page"), clicked=self._open)
        self.use = IconButton(tr("Use it in my run"), "bolt", clicked=lambda: self._emit(self.use_requested))
        self.copy = IconButton(tr("Copy path"), "copy", "quiet", clicked=self._copy)
        hint = tr("Remove it from this list; its folder is kept")
        self.forget = IconButton(tr("Remove"), "close", "quiet", hint=hint, clicked=self._forget)
        self.add_all((self.pages, 1), self.where, hbox(self.open, self.use, self.copy, self.forget, 1))
        self.refresh()

    def refresh(self) -> None:
        """Show the remembered tokenizers, and which still exist."""
        self._made = tokenizer_list.made_tokenizers(self._preferences)
        self.table.show_rows(made_rows(self._made), WIDTHS, ["folder"])
        self.pages.setCurrentIndex(1 if self._made else 0)
        self._on_selected(-1)

    def chosen(self) -> MadeBefore | None:
        """The selected one."""
        return self._made[self._row] if 0 <= self._row < len(self._made) else None

    def _on_selected(self, row: int) -> None:
        self._row = row
        one = self.chosen()
        exists = one is not None and one.is_there
        for button in (self.open, self.use, self.copy, self.forget):
            button.setVisible(bool(self._made))
        for button in (self.open, self.use):
            button.setEnabled(exists)
        for button in (self.copy, self.forget):
            button.setEnabled(one is not None)
        self.where.setText("" if one is None else one.path if exists else FOLDER_GONE.format(path=one.path))

    def _emit(self, signal: object) -> None:
        if (one := self.chosen()) is not None and one.is_there:
            signal.emit(one.path)  # type: ignore[attr-defined]
        else:
            self.refresh()

    def _open(self) -> None:
        self._emit(self.open_requested)

    def _copy(self) -> None:
        if (one := self.chosen()) is not None:
            QGuiApplication.clipboard().setText(one.path)
            self.message.emit("success", tr("Copied the folder of the tokenizer."))

    def _forget(self) -> None:
        if (one := self.chosen()) is not None:
            tokenizer_list.forget(self._preferences, one.path)
            self.refresh()
            self.forgotten.emit()
            said = tr("{path} was removed from the list; its folder is kept.", path=name_of_path(one.path))
            self.message.emit("info", said)
