"""Tokenizers compared on a column of data: counts by language as a table, as bars, and rows by their length."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.core.backend_words import COLUMNS as COLUMN_TITLES
from app.core.formatting import group_digits, number
from app.core.i18n import figure, tr, trn
from app.core.table_rows import TableRows
from app.pages.tokenizer.compare.compared_tokenizers import COLOR_TOKENS
from app.widgets.boxes import holder, scroll_area, stack, vbox
from app.widgets.card import Card, TableCard
from app.widgets.forms.chips import chips
from app.widgets.plots.live_plot import LivePlot, SeriesStyle
from app.widgets.plots.paired_bars import Group, PairedBars
from app.widgets.tables.layout_memory import RememberedSplitter
from app.widgets.tables.row_table import RowTable
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.tokens.comparison import DataComparison, LanguageCounts

WIDTHS = {
    "tokenizer": 150, "language": 82, "rows": 70, "tokens": 92, "per_word": 80, "per_character": 104, "per_row": 74,
    "median": 72, "longest": 74, "unknown": 82,
}  # fmt: skip
MEASURES = ((tr("Per word"), "words"), (tr("Per character"), "characters"), (tr("Per row"), "rows"))
"""Title and what the tokens are divided by."""
UNITS = {"words": tr("tokens per word"), "characters": tr("tokens per character"), "rows": tr("tokens per row")}
ALL = tr("All")
MAX_GROUPS = 12
"""Languages whose bars are drawn; the table has all of them."""
COLUMNS = (
    "tokenizer", "language", "rows", "tokens", "per_word", "per_character", "per_row", "median", "longest", "unknown",
)  # fmt: skip


class ComparedData(QWidget):
    """Shows one comparison at a time; its table and plots are built for the first one, as most people compare a text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows = TableRows((), ())
        self._found: DataComparison | None = None
        self._names: Sequence[str] = ()

    def _build(self) -> None:
        self.table = RowTable(name=tr("Tokens by tokenizer and language"), titles=COLUMN_TITLES)
        self.table.sort_requested.connect(self._on_sort_requested)
        self.summary = ElidedLabel("", "faint")
        table = TableCard(self.table, self.summary)
        self.measure, row = chips([*(title for title, _ in MEASURES), tr("Lengths")], self._show_measure)
        self.bars = PairedBars()
        self.bars.setAccessibleName(tr("Tokens per word, character or row"))
        self.card = Card(tr("Tokens"))
        self.card.add(scroll_area(holder(vbox(self.bars, 1))), 1)
        styles = [SeriesStyle(str(place), "", color_token=token) for place, token in enumerate(COLOR_TOKENS)]
        self.lengths = LivePlot(tr("Rows by token count"), styles, "tokens")
        self.plots = stack(self.card, self.lengths)
        row.addStretch(1)
        side = holder(vbox(row, (self.plots, 1), spacing=8))
        splitter = RememberedSplitter("compared-data", Qt.Orientation.Horizontal)
        splitter.hold((table, side), (3, 2), (600, 420))
        vbox(splitter, parent=self)

    def show_comparison(self, found: DataComparison, names: Sequence[str]) -> None:
        """Show another comparison; `names` are the tokenizers' names."""
        if self._found is None:
            self._build()
        self.rows, self._found, self._names = rate_rows(found, names), found, names
        self.table.show_rows(self.rows, WIDTHS, ["tokenizer"])
        self.table.set_color(lambda row, column: COLOR_TOKENS[row % len(names)] if column == "tokenizer" else "")
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
        assert self._found is not None
        if place == len(MEASURES):
            self.plots.setCurrentWidget(self.lengths)
            return
        by = MEASURES[place][1]
        self.card.set_title(UNITS[by])
        rates = rates_by_language(self._found, by)
        most = max((value or 0 for _, values in rates for value in values), default=0)
        groups = [
            Group(name, values, ["–" if value is None else figure(value, ".3f") for value in values], most)
            for name, values in rates
        ]
        self.bars.show_groups(self._names, groups)
        self.plots.setCurrentIndex(0)

    def _on_sort_requested(self, column: str, descending: bool) -> None:
        self.table.set_indices(self.rows.order(column, descending))
        self.table.setColumnHidden(0, True)


def rate(counts: LanguageCounts, tokenizer: int, by: str) -> float | None:
    """One tokenizer's tokens divided by rows, words or characters; None if there are none."""
    whole = getattr(counts, by)
    return counts.tokens[tokenizer] / whole if whole else None


def rates_by_language(found: DataComparison, by: str) -> list[tuple[str, list[float | None]]]:
    """Each tokenizer's rate in all languages together and in each of the first ones, whose names need not differ."""
    tokenizers = range(len(found.tokenizers))
    return [
        (
            one.language or (ALL if one is found.total else "–"),
            [rate(one, tokenizer, by) for tokenizer in tokenizers],
        )
        for one in _groups(found)[: MAX_GROUPS + 1]
    ]


def _groups(found: DataComparison) -> list[LanguageCounts]:
    return [found.total, *found.languages]


def rate_rows(found: DataComparison, names: Sequence[str]) -> TableRows:
    """A row for each tokenizer overall and per language; the language column only if there are several."""
    has_languages = bool(found.languages)
    columns = [name for name in COLUMNS if name != "language" or has_languages]
    rows = []
    for counts in _groups(found):
        for place, name in enumerate(names):
            spread = found.spreads[place] if counts is found.total else None
            values = {
                "tokenizer": name,
                "language": counts.language or (ALL if counts is found.total else "–"),
                "rows": counts.rows,
                "tokens": counts.tokens[place],
                "per_word": rate(counts, place, "words"),
                "per_character": rate(counts, place, "characters"),
                "per_row": rate(counts, place, "rows"),
                "median": None if spread is None else spread.p50,
                "longest": None if spread is None else spread.max,
                "unknown": counts.unknown[place],
            }
            rows.append([values[column] for column in columns])
    return TableRows(columns, rows, shown=_cell_text)


def _cell_text(value: float | str | None, column: str) -> str | None:
    if isinstance(value, float):
        return figure(value, ".3f") if column.startswith("per_") else group_digits(round(value))
    return group_digits(value) if isinstance(value, int) else value
