"""The line that counts how often each piece occurs in chosen data, with its progress and its result."""

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.core.i18n import tr
from app.pages.tokenizer.data_choice import DataChoice
from app.services.backend_client import PendingQuery
from app.services.context import AppContext
from app.widgets.boxes import hbox, holder
from app.widgets.card import label
from app.widgets.icon_label import IconButton
from app.widgets.progress import WorkRow
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.tokens.vocabulary import PieceCounts


class FrequencyBar(QWidget):
    """Asks `count_pieces` for what it is `about`."""

    counted = Signal(object)
    """PieceCounts."""
    failed = Signal(str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._about: dict[str, Any] = {}
        self._ticket: PendingQuery | None = None
        self.data = DataChoice(context)
        self.data.failed.connect(self.failed)
        self.data.changed.connect(self._show_state)
        self.start = IconButton(tr("Count"), "chart")
        self.start.setToolTip(tr("Count how often each piece occurs in this column"))
        self.start.clicked.connect(self.count)
        self.work = WorkRow()
        self.work.stop.clicked.connect(self.cancel)
        caption = label(tr("Frequency in"), "muted")
        self.pages = QStackedWidget()
        self.pages.addWidget(holder(hbox(caption, (self.data, 1), self.start, spacing=10)))
        self.pages.addWidget(self.work)
        hbox(self.pages, parent=self)
        self.pages.setFixedHeight(34)
        self._show_state()

    def set_about(self, about: dict[str, Any]) -> None:
        """Tokenizer and folder of the questions from now on; a count that is under way is of no use any more."""
        self._about = about
        self.cancel()

    def count(self) -> None:
        """Ask; the helper tells how far it is."""
        if not (self._about and self.data.ready):
            return
        question = {**self._about, "data": self.data.data, "column": self.data.column.currentText()}
        self.work.begin(tr("Counting"))
        self._ticket = self._context.client.ask(
            "count_pieces", question, self._on_counts, self._on_mistake, self.work.show_progress
        )
        self._show_state()
        self.work.stop.setFocus()

    def cancel(self) -> None:
        """Stop counting; what was counted before stays."""
        if self._ticket is not None:
            self._ticket.cancel()
        self._end()

    @property
    def counting(self) -> bool:
        """Whether an answer is still to come."""
        return self._ticket is not None

    def _show_state(self) -> None:
        self.pages.setCurrentIndex(1 if self.counting else 0)
        self.start.setEnabled(self.data.ready and bool(self._about))

    def _end(self) -> None:
        self._ticket = None
        self.work.end()
        self._show_state()

    def _on_counts(self, counts: PieceCounts) -> None:
        self._end()
        self.counted.emit(counts)

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self._end()
        self.failed.emit(mistake.message)
