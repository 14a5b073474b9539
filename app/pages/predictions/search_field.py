"""Owns the field in which rows are looked for by a text: where, and how exactly."""

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QMenu, QToolButton, QWidget

from app.core.i18n import inside, tr
from app.core.predictions.row_filter import RowFilter, short
from app.widgets.icon_label import IconToolButton

CALM_MS = 200
ANYWHERE = tr("Any column")
EXACTNESS = (("case", tr("Match case")), ("words", tr("Whole words")), ("regex", tr("Regular expression")))


class SearchField(QWidget):
    """A text, and behind the button the column that must hold it and how it must stand there."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.line = QLineEdit(clearButtonEnabled=True)
        self.line.setMinimumWidth(140)
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self.changed)
        self.line.textChanged.connect(self._calm.start)
        self.options = IconToolButton("settings", tr("Where and how to search"))
        self.options.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu = QMenu(self)
        self.options.setMenu(self.menu)
        self._places = QActionGroup(self)
        self.exactness = {name: self._exact(name, title) for name, title in EXACTNESS}
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.line, 1)
        row.addWidget(self.options)
        self.offer_columns([])

    def _exact(self, name: str, title: str) -> QAction:
        action = QAction(title, self, checkable=True)
        action.setData(name)
        action.toggled.connect(self._on_option)
        return action

    def offer_columns(self, columns: Sequence[tuple[str, str]]) -> None:
        """Columns that can be searched, by name and title; any is chosen."""
        self.menu.clear()
        for action in self._places.actions():
            self._places.removeAction(action)
        for name, title in (("", ANYWHERE), *columns):
            action = self.menu.addAction(title.replace("&", "&&"))
            action.setCheckable(True)
            action.setData(name)
            action.setChecked(not name)
            action.triggered.connect(self._on_option)
            self._places.addAction(action)
        self.menu.addSeparator()
        for action in self.exactness.values():
            self.menu.addAction(action)
        self._say()

    @property
    def column(self) -> str:
        """Where the text is looked for; empty: in any column."""
        chosen = self._places.checkedAction()
        return str(chosen.data()) if chosen else ""

    def choose_column(self, name: str) -> None:
        """Look in this column alone, as if a person had chosen it."""
        next(action for action in self._places.actions() if action.data() == name).trigger()

    def put_into(self, wanted: RowFilter) -> RowFilter:
        """The filter with what is typed here."""
        exact = {name: action.isChecked() for name, action in self.exactness.items()}
        return replace(wanted, text=self.line.text().strip(), text_column=self.column, **exact)

    def clear(self) -> None:
        """Nothing is looked for; told at once."""
        self.line.clear()
        self._calm.stop()

    def _on_option(self) -> None:
        self._say()
        if self.line.text().strip():
            self.changed.emit()

    def _say(self) -> None:
        column = short(self.column.replace("_", " "))
        words = tr("Find text in {column}", column=column) if column else tr("Find text in any column")
        chosen = [inside(title) for name, title in EXACTNESS if self.exactness[name].isChecked()]
        self.line.setPlaceholderText(words)
        self.line.setAccessibleName(words)
        self.line.setToolTip(f"{words}: {', '.join(chosen)}" if chosen else words)
        self.options.set_token("accent_text" if column or chosen else "muted")
