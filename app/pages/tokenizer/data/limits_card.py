"""Owns the card with the usual limits, each with the rows that are longer."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.core.backend_words import COLUMNS as COLUMN_TITLES
from app.core.formatting import grouped
from app.core.i18n import tr
from app.core.text.training_messages import percent
from app.widgets.card import Card
from app.widgets.tables.row_table import ROW_HEIGHT, RowTable
from backend.contract.rpc.training_data import LengthMeasure, Loss

COLUMNS = ("limit", "rows", "share")
TITLES = {
    "cut": tr("Rows that are cut"),
    "windows": tr("Rows in several windows"),
    "blocks": tr("Rows longer than a block"),
}


class _Losses:
    """Limits as a table's source."""

    columns = COLUMNS

    def __init__(self, losses: list[Loss], limit: int) -> None:
        self.losses, self.limit = losses, limit

    @property
    def row_count(self) -> int:
        return len(self.losses)

    def cell(self, row: int, column: int) -> object:
        one = self.losses[row]
        mark = tr(" (as set)") if one.limit == self.limit else ""
        return (f"{grouped(one.limit)}{mark}", grouped(one.rows), percent(one.share))[column]


class LimitsCard(Card):
    """A double click, or Enter, on a limit takes it for the run that is being set up."""

    settings_chosen = Signal(dict)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Limits"), parent, spacing=6)
        self._measure: LengthMeasure | None = None
        self._can_set = False
        self.table = RowTable()
        self.table.set_titles(COLUMN_TITLES)
        self.table.setAccessibleName(tr("Usual limits"))
        self.table.activated.connect(lambda index: self._on_activated(index.row()))
        self.add(self.table, 1)

    def show_measure(self, measure: LengthMeasure, *, can_set: bool) -> None:
        """Show the usual limits for these lengths."""
        self._measure, self._can_set = measure, can_set
        self.set_title(TITLES[measure.beyond])
        self.table.set_source(_Losses(measure.losses, measure.limit))
        self.table.setMinimumHeight(self.table.horizontalHeader().height() + ROW_HEIGHT * len(measure.losses) + 2)
        self.table.hideColumn(0)  # limits need no numbers
        self.table.set_widths({"limit": 110, "rows": 76, "share": 76}, stretched="limit")
        self.table.set_color(lambda row, column: "accent_text" if measure.losses[row].limit == measure.limit else "")
        self.table.setToolTip(tr("Double-click a limit, or press Enter, to set it") if can_set else "")

    def _on_activated(self, row: int) -> None:
        if self._measure is not None and self._can_set:
            self.settings_chosen.emit({self._measure.setting: self._measure.losses[row].limit})
