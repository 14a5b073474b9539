"""Owns the table of tokens that could be added: what stands for each now, and how often it would occur."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.core.backend_words import COLUMNS as COLUMN_TITLES
from app.core.formatting import grouped
from app.core.i18n import tr
from app.core.text.proposed_tokens import ProposedRows, line_of, saved_words
from app.widgets.card import Card, label
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconToolButton
from app.widgets.tables.row_table import RowTable
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.queries import Progress
from backend.contract.tokens.making import ProposedToken, TokenCounts

WIDTHS = {"token": 132, "pieces_now": 170, "occurs": 70, "note": 128}


class ProposalCard(Card):
    """Counting goes on while the pieces are shown already."""

    stopped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Proposed tokens"), parent)
        self._tokens: Sequence[ProposedToken] = ()
        self.counted = label("", "faint")
        self.stop = IconToolButton("stop", tr("Stop counting"))
        self.stop.clicked.connect(self.stopped)
        self.corner.addWidget(self.counted)
        self.corner.addWidget(self.stop)
        self.table = RowTable()
        self.table.set_titles(COLUMN_TITLES)
        self.table.setAccessibleName(tr("Proposed tokens"))
        self.table.row_selected.connect(self._show_line)
        self._summary = ""
        self.words = ElidedLabel("", "muted")
        empty = EmptyState(
            "plus",
            tr("No tokens yet"),
            tr(
                "Write words at the left, one on each line. Here you see which pieces each replaces, and "
                "with texts chosen how often it occurs."
            ),
        )
        self.pages = QStackedWidget()
        self.pages.addWidget(empty)
        self.pages.addWidget(self.table)
        self.add(self.pages, 1)
        self.add(self.words)
        self.show_tokens([])

    def show_tokens(self, tokens: Sequence[ProposedToken], counts: TokenCounts | None = None) -> None:
        """Other tokens, or how often they occur."""
        self._tokens = tokens
        rows = ProposedRows(tokens, counts.counts if counts is not None else None)
        self.table.set_source(rows)
        self.table.set_color(rows.color)
        self.table.set_widths({name: WIDTHS[name] for name in rows.columns}, ["pieces_now"])
        self.pages.setCurrentIndex(1 if tokens else 0)
        self._summary = saved_words(counts) if counts is not None and tokens else ""
        self._show_line(-1)
        self.show_counting(None)

    def _show_line(self, row: int) -> None:
        """The whole of a selected line, whose cells may be cut; else the summary."""
        token = self._tokens[row] if 0 <= row < len(self._tokens) else None
        self.words.setText(self._summary if token is None else line_of(token))

    def show_counting(self, progress: Progress | None) -> None:
        """How far the count is; None where nothing is counted."""
        self.stop.setVisible(progress is not None)
        if progress is None:
            self.counted.setText("")
        else:
            of = (
                tr(" {done} of {total}", done=grouped(int(progress.done)), total=grouped(int(progress.total)))
                if progress.total
                else ""
            )
            self.counted.setText(f"Counting…{of}")
