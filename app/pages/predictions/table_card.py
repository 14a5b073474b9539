"""The card with the table of rows: its columns and its context menu."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from app.core.i18n import tr
from app.core.predictions.row_filter import ValueFilter
from app.services.prediction_rows import CONFIDENCE, ChosenColumns, ColumnChoice, PredictionRows
from app.widgets.card import Card
from app.widgets.icon_label import IconToolButton
from app.widgets.tables.row_table import RowTable
from backend.contract.rpc.predictions import AT_THRESHOLD

LONGEST_VALUE = 200
"""Characters of a value that rows are compared with."""


class TableCard(Card):
    """Shows rows; knows nothing about where they come from."""

    value_wanted = Signal(ValueFilter)
    """Only rows whose column compares so with a value are wanted."""
    message = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self._rows: PredictionRows | None = None
        self._usual: list[str] = []
        self._kind = ""
        self._kept = ColumnChoice()
        self._remembered = ChosenColumns()
        self.table = RowTable()
        self.table.setAccessibleName(tr("Predictions"))
        self.table.set_many()
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(lambda place: self.cell_menu().popup(self._on_screen(place)))
        self.table.column_resized.connect(self._on_column_resized)
        self.table.copied_part.connect(self._on_copied_part)
        header = self.table.horizontalHeader()
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(lambda place: self.columns_menu.popup(header.mapToGlobal(place)))
        copy_cell = QShortcut(QKeySequence("Ctrl+Shift+C"), self.table, self.table.copy_cell)
        copy_cell.setContext(Qt.ShortcutContext.WidgetShortcut)
        self.columns_menu = QMenu(self)
        self.columns_button = IconToolButton("table", tr("Choose columns"))
        self.columns_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.columns_button.setMenu(self.columns_menu)
        self.layout().setContentsMargins(1, 6, 1, 8)  # type: ignore[union-attr]
        self.add(self.table, 1)

    def show_rows(self, rows: PredictionRows | None, usual: Sequence[str] = (), kind: str = "") -> None:
        """Show all rows of a file; `usual` are the default columns for this `kind`."""
        self._rows, self._usual, self._kind = rows, list(usual), kind
        self._kept = self._remembered.read(kind)
        if rows is None:
            self.table.set_source(None)
            return
        self.table.set_titles({AT_THRESHOLD: tr("At threshold")})
        self.table.set_source(rows, self._visible_columns())
        self._fit()
        self._offer_columns()

    # Columns

    def _visible_columns(self) -> list[str]:
        """The existing columns among the user's choice, or the usual ones."""
        assert self._rows is not None
        if self._kept.shown is None:
            return list(self._usual)
        listed = [name for name in self._order() if name in self._kept.shown or name == AT_THRESHOLD]
        return listed or list(self._usual)

    def _order(self) -> list[str]:
        assert self._rows is not None
        return [*self._usual, *(name for name in self._rows.columns if name not in self._usual)]

    def _fit(self) -> None:
        assert self._rows is not None
        columns = self.table.columns
        widths, stretched = self._rows.widths(columns)
        self.table.set_widths(
            {**widths, **self._kept.widths}, [name for name in stretched if name not in self._kept.widths]
        )

    def show_threshold(self, usual: Sequence[str]) -> None:
        """Update for the threshold's prediction column being added or removed."""
        self._usual = list(usual)
        self._apply()

    def _offer_columns(self) -> None:
        self.columns_menu.clear()
        columns = self.table.columns
        for name in self._order():
            action = self.columns_menu.addAction(self.table.title(name).replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(name in columns)
            action.setData(name)
            action.toggled.connect(self._on_columns_ticked)
        self.columns_menu.addSeparator()
        self.columns_menu.addAction(tr("Reset columns"), self.reset_columns)

    def _on_columns_ticked(self) -> None:
        ticked = [str(action.data()) for action in self.columns_menu.actions() if action.isChecked()]
        if ticked:
            self._keep(ColumnChoice(ticked, self._kept.widths))
            self._apply()

    def reset_columns(self) -> None:
        """Restore the usual columns and widths."""
        self._keep(ColumnChoice())
        self._apply()
        self._offer_columns()

    def _apply(self) -> None:
        line = self.table.currentIndex().row()
        self.table.set_columns(self._visible_columns())
        self._fit()
        if line >= 0:
            self.table.selectRow(line)

    def _keep(self, columns: ColumnChoice) -> None:
        self._kept = columns
        self._remembered.keep(self._kind, columns)

    def _on_column_resized(self, name: str, width: int) -> None:
        self._keep(ColumnChoice(self._kept.shown, {**self._kept.widths, name: width}))

    # The menu of a cell

    def _on_screen(self, place: QPoint) -> QPoint:
        return self.table.viewport().mapToGlobal(place)

    def cell_menu(self) -> QMenu:
        """The menu of actions for the current cell."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        index = self.table.currentIndex()
        name = self.table.column_of(index.column()) if index.isValid() else ""
        if name:
            menu.addAction(tr("Copy cell\tCtrl+Shift+C"), self.table.copy_cell)
        menu.addAction(tr("Copy rows\tCtrl+C"), self.table.copy_rows)
        menu.addAction(tr("Copy rows with column names"), lambda: self.table.copy_rows(with_titles=True))
        if name and name != AT_THRESHOLD and self._rows is not None:
            [value] = self._rows.cells([self.table.source_row(index.row())], name)
            self._add_conditions(menu, name, value)
        return menu

    def _add_conditions(self, menu: QMenu, name: str, value: Any) -> None:
        if isinstance(value, list | dict) or (isinstance(value, str) and len(value) > LONGEST_VALUE):
            return
        menu.addSeparator()
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        comparisons = ["is", "is_not", *(["at_least", "at_most"] if is_number else [])]
        if name == CONFIDENCE:
            comparisons = ["at_least", "at_most"]
        for comparison in comparisons:
            condition = ValueFilter(name, comparison, value)
            words = tr("Only rows where {words}", words=condition.words).replace("&", "&&")
            menu.addAction(words, lambda condition=condition: self.value_wanted.emit(condition))

    def _on_copied_part(self, count: int) -> None:
        self.message.emit("info", tr("Copied the first {count:,} rows. To get more, use Export.", count=count))
