"""Owns the card with the table of pieces or merges: its columns, their widths and colours, and the line below it."""

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.core.backend_words import COLUMNS as COLUMN_TITLES
from app.core.backend_words import said
from app.core.formatting import grouped
from app.core.i18n import tr, trn
from app.services.vocabulary_rows import FREQUENCY, VocabularyRows
from app.widgets.card import Card
from app.widgets.tables.row_table import RowTable
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.tokens.vocabulary import Vocabulary

HIDDEN = ("script",)
"""Columns that the card at the side shows; the table has room for those that people sort by."""
WIDTHS = {
    "id": 66, "piece": 124, "text": 124, "bytes": 96, "length": 66, "type": 78, "frequency": 90, "rank": 70, "score": 78,
    "left": 120, "right": 120, "result": 132,
}  # fmt: skip
STRETCHED = {"pieces": ("piece", "text"), "merges": ("left", "right", "result", "text")}
_COLORS = {"special": "accent_text", "added": "info", "byte": "warning", "unused": "faint"}


class VocabularyTable(Card):
    """Shows one of a vocabulary's tables, `pieces` or `merges`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self._rows: VocabularyRows | None = None
        self._name = "pieces"
        self.table = RowTable()
        self.table.remember("vocabulary")
        self.table.set_titles(COLUMN_TITLES)
        self.table.setAccessibleName(tr("Vocabulary"))
        self.table.set_color(self._color)
        self.counts = ElidedLabel("", "faint")
        self.layout().setContentsMargins(1, 6, 1, 8)  # type: ignore[union-attr]
        self.add(self.table, 1)
        below = QHBoxLayout()
        below.setContentsMargins(14, 0, 14, 0)
        below.addWidget(self.counts)
        self.body.addLayout(below)

    def show_nothing(self) -> None:
        """No vocabulary is open."""
        self._rows = None
        self.table.set_source(None)
        self.counts.setText("")

    def show_rows(self, rows: VocabularyRows, name: str) -> None:
        """Another table, sorted by nothing."""
        self._rows, self._name = rows, name
        shown = _in_order(rows.columns)
        self.table.set_source(rows, shown)
        self.table.setColumnHidden(0, True)  # the id counts the rows already
        self.table.set_widths({name: WIDTHS[name] for name in shown}, STRETCHED[name])

    def show_indices(self, indices: np.ndarray | None) -> int:
        """Only these rows, in this order, or all of them; how many that are."""
        self.table.set_indices(indices)  # type: ignore[arg-type]
        self.table.setColumnHidden(0, True)
        return self.table.shown_count()

    def mark_most_frequent_first(self) -> None:
        """The heading says by what the rows are sorted."""
        assert self._rows is not None
        header = self.table.horizontalHeader()
        header.setSortIndicatorShown(True)
        place = _in_order(self._rows.columns).index(FREQUENCY)
        header.setSortIndicator(place + 1, Qt.SortOrder.DescendingOrder)

    def show_summary(self, vocabulary: Vocabulary, counted: str) -> None:
        """How many rows there are, of which kinds; `counted` says how many pieces occur in data."""
        assert self._rows is not None
        shown, total, is_pieces = self.table.shown_count(), self._rows.row_count, self._name == "pieces"
        if not is_pieces:
            whole = trn("{count} merge", "{count} merges", total)
        else:
            whole = (
                trn("{count} row", "{count} rows", total)
                if vocabulary.missing
                else trn("{count} piece", "{count} pieces", total)
            )
        words = [tr("{shown} of {whole}", shown=grouped(shown), whole=whole) if shown != total else whole]
        words.append(vocabulary.kind)
        if is_pieces:
            words += [f"{grouped(n)} {said(name)}" for name, n in vocabulary.types.items() if n and name != "normal"]
            words += (
                [tr("{count} without a piece", count=trn("{count} id", "{count} ids", vocabulary.missing))]
                if vocabulary.missing
                else []
            )
            words += [counted] if counted else []
        self.counts.setText(" · ".join(words))

    def _color(self, row: int, column: str) -> str:
        if self._rows is None or self._name != "pieces":
            return ""
        if column == FREQUENCY:
            return "faint" if self._rows.raw(row, FREQUENCY) == "0" else ""
        if column in ("bytes", "length", "score", "rank"):
            return "muted"
        return _COLORS.get(self._rows.raw(row, "type"), "") if column in ("type", "piece", "text") else ""


def _in_order(columns: list[str]) -> list[str]:
    """What a table shows: the frequency, where it was counted, stands beside the text, what only experts sort by last."""
    last = [name for name in ("rank", "score") if name in columns and columns[0] != name]
    shown = [name for name in columns if name not in (*HIDDEN, *last)] + last
    if FREQUENCY in shown:
        shown.remove(FREQUENCY)
        shown.insert(shown.index("text") + 1, FREQUENCY)
    return shown
