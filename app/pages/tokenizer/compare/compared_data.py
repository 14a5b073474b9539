"""Owns how a comparison on a column of data looks: a table by language and tokenizer, and plots beside it."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.core.backend_words import COLUMNS as COLUMN_TITLES
from app.core.formatting import number
from app.core.i18n import tr, trn
from app.core.text.token_rates import MAX_GROUPS, MEASURES, UNITS, RateRows, bars
from app.pages.tokenizer.compare.compared_tokenizers import COLOR_TOKENS
from app.widgets.card import Card
from app.widgets.forms.chips import chips
from app.widgets.plots.bar_plot import BarPlot, Bars
from app.widgets.plots.live_plot import LivePlot, SeriesStyle
from app.widgets.tables.layout_memory import RememberedSplitter
from app.widgets.tables.row_table import RowTable
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.tokens.comparison import DataComparison

WIDTHS = {
    "tokenizer": 150, "language": 82, "rows": 70, "tokens": 92, "per_word": 80, "per_character": 104, "per_row": 74,
    "median": 72, "longest": 74, "unknown": 82,
}  # fmt: skip


class ComparedData(QWidget):
    """Shows one comparison at a time."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: RateRows | None = None
        self.table = RowTable()
        self.table.set_titles(COLUMN_TITLES)
        self.table.setAccessibleName(tr("Tokens by tokenizer and language"))
        self.table.sort_requested.connect(self._on_sort_requested)
        self.table.set_color(self._color)
        self.summary = ElidedLabel("", "faint")
        table = Card()
        table.layout().setContentsMargins(1, 6, 1, 8)  # type: ignore[union-attr]
        table.add(self.table, 1)
        below = QHBoxLayout()
        below.setContentsMargins(14, 0, 14, 0)
        below.addWidget(self.summary)
        table.body.addLayout(below)
        self.measure, row = chips([*(title for title, _ in MEASURES), tr("Lengths")])
        self.measure.idClicked.connect(self._show_measure)
        self.bars = BarPlot(tr("Tokens per word, character or row"))
        self.card = Card(tr("Tokens"))
        self.card.add(self.bars, 1)
        styles = [SeriesStyle(str(place), "", color_token=token) for place, token in enumerate(COLOR_TOKENS)]
        self.lengths = LivePlot(tr("Rows by their tokens"), styles, "tokens")
        self.plots = QStackedWidget()
        self.plots.addWidget(self.card)
        self.plots.addWidget(self.lengths)
        side = QWidget()
        column = QVBoxLayout(side)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        row.addStretch(1)
        column.addLayout(row)
        column.addWidget(self.plots, 1)
        splitter = RememberedSplitter("compared-data", Qt.Orientation.Horizontal)
        splitter.hold((table, side), (3, 2), (600, 420))
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(splitter)

    def show_comparison(self, found: DataComparison, names: Sequence[str]) -> None:
        """Show another one; `names` are those of the tokenizers."""
        self.rows = RateRows(found, list(names))
        self.table.set_source(self.rows)  # type: ignore[arg-type]
        self.table.setColumnHidden(0, True)
        self.table.set_widths({name: WIDTHS[name] for name in self.rows.columns}, ["tokenizer"])
        words = [
            trn("{count} row", "{count} rows", found.total.rows),
            trn("{count} word", "{count} words", found.total.words),
            trn("{count} character", "{count} characters", found.total.characters),
        ]
        more = len(found.languages) - MAX_GROUPS
        words += [tr("the plot shows the first {MAX_GROUPS} languages", MAX_GROUPS=MAX_GROUPS)] if more > 0 else []
        self.summary.setText(" · ".join([*words, tr("counted in {seconds} s", seconds=number(found.seconds, 1))]))
        self._show_lengths(found, names)
        self._show_measure(self.measure.checkedId())

    def _show_lengths(self, found: DataComparison, names: Sequence[str]) -> None:
        self.lengths.clear()
        middles = [(begin + end) / 2 for begin, end in zip(found.bins, found.bins[1:], strict=False)]
        for place, (name, rows) in enumerate(zip(names, found.histograms, strict=True)):
            self.lengths.rename(str(place), name)
            self.lengths.append(str(place), middles, rows)

    def _show_measure(self, place: int) -> None:
        if self.rows is None:
            return
        if place == len(MEASURES):
            self.plots.setCurrentWidget(self.lengths)
            return
        by = MEASURES[place][1]
        self.card.set_title(UNITS[by])
        groups, heights = bars(self.rows.found, by)
        drawn = [
            Bars(name, values, token)
            for name, values, token in zip(self.rows.names, heights, COLOR_TOKENS, strict=False)
        ]
        self.bars.show_bars(groups, drawn, UNITS[by])
        self.plots.setCurrentIndex(0)

    def _color(self, row: int, column: str) -> str:
        if column != "tokenizer" or self.rows is None:
            return ""
        return COLOR_TOKENS[self.rows.place(row)[1]]

    def _on_sort_requested(self, column: str, descending: bool) -> None:
        if self.rows is not None:
            self.table.set_indices(self.rows.order(column, descending))
            self.table.setColumnHidden(0, True)
