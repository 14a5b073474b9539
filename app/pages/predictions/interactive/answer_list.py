"""Owns the list of what was asked in this session: found again, asked again, taken away."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QWidget

from app import theme
from app.core.i18n import tr
from app.core.predictions.interactive_answers import Asked
from app.widgets.card import Card, label
from app.widgets.icon_label import IconToolButton
from app.widgets.text.directed_text import DirectedText

LONGEST_HINT = 1000


class AnswerList(Card):
    """The latest at the top; `places` count from there, whatever is filtered."""

    chosen = Signal(int)
    again_requested = Signal(int)
    removed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Last answers"), parent)
        self._asked: Sequence[Asked] = ()
        self.search = QLineEdit(placeholderText=tr("Find"), clearButtonEnabled=True)
        self.search.setAccessibleName(tr("Find in the last answers"))
        self.search.setMaximumWidth(180)
        self.search.textChanged.connect(self._filter)
        self.again = IconToolButton("refresh", tr("Ask this again"))
        self.again.clicked.connect(lambda: self._emit(self.again_requested))
        self.delete = IconToolButton("trash", tr("Take this answer off the list (Delete)"))
        self.delete.clicked.connect(lambda: self._emit(self.removed))
        for widget in (self.search, self.again, self.delete):
            self.corner.addWidget(widget)
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Last answers"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        theme.role(self.list, "lines")
        self.list.setItemDelegate(DirectedText(self.list))
        self.list.currentRowChanged.connect(self._on_row)
        self.list.itemDoubleClicked.connect(lambda _: self._emit(self.again_requested))
        delete = QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), self.list)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(lambda: self._emit(self.removed))
        self.nothing = label(tr("No answer holds these words."), "faint")
        self.nothing.hide()
        self.add(self.list, 1)
        self.add(self.nothing)

    @property
    def place(self) -> int:
        """The chosen answer, −1 for none."""
        return self.list.currentRow()

    def show_asked(self, asked: Sequence[Asked], place: int) -> None:
        """List these and choose one, without telling."""
        self._asked = asked
        self.list.blockSignals(True)
        self.list.clear()
        for one in asked:
            item = QListWidgetItem(f"{one.line()}   ✓" if one.added else one.line())
            names = f"{one.name}, {one.beside.name}" if one.beside else one.name
            item.setToolTip(f"{one.line(LONGEST_HINT)}\n{names}")
            self.list.addItem(item)
        self.list.setCurrentRow(min(place, len(asked) - 1))
        self.list.blockSignals(False)
        self._filter()

    def _filter(self) -> None:
        text = self.search.text().strip()
        kept = [not text or one.holds(text) for one in self._asked]
        for place, keep in enumerate(kept):
            self.list.item(place).setHidden(not keep)
        self.nothing.setVisible(bool(kept) and not any(kept))

    def _on_row(self, place: int) -> None:
        if place >= 0:
            self.chosen.emit(place)

    def _emit(self, signal: SignalInstance) -> None:
        if self.place >= 0 and not self.list.item(self.place).isHidden():
            signal.emit(self.place)
