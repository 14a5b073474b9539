"""The line that counts how often each piece occurs in chosen data, with its progress and its result."""

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.core.i18n import tr
from app.pages.tokenizer.data_choice import DataChoice
from app.services.context import AppContext
from app.services.latest_question import LatestQuestion
from app.widgets.boxes import hbox
from app.widgets.card import label
from app.widgets.icon_label import IconButton
from app.widgets.progress import WorkStack
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.tokens.vocabulary import PieceCounts


class FrequencyBar(WorkStack):
    """Asks `count_pieces` for what it is `about`."""

    counted = Signal(object)
    """PieceCounts."""
    failed = Signal(str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._about: dict[str, Any] = {}
        self._question = LatestQuestion(
            context.client, "count_pieces", self._on_counts, self._on_mistake, self.work.show_progress, "", parent=self
        )
        self.data = DataChoice(context)
        self.data.failed.connect(self.failed)
        self.data.changed.connect(self._show_state)
        self.start = IconButton(tr("Count"), "chart", clicked=self.count)
        self.start.setToolTip(tr("Count how often each piece occurs in this column"))
        self.hold(hbox(label(tr("Frequency in"), "muted"), (self.data, 1), self.start, spacing=10))
        self.stopped.connect(self.cancel)
        self.setFixedHeight(34)
        self._show_state()

    def set_about(self, about: dict[str, Any]) -> None:
        """Tokenizer and folder of the questions from now on; a count that is under way is of no use any more."""
        self._about = about
        self.cancel()

    def count(self) -> None:
        """Ask; the helper tells how far it is."""
        if self._about and self.data.ready:
            self.begin(tr("Counting"))
            self._question.ask({**self._about, "data": self.data.data, "column": self.data.column.currentText()})

    def cancel(self) -> None:
        """Stop counting; what was counted before stays."""
        self._question.stop()
        self.end()
        self._show_state()

    def _show_state(self) -> None:
        self.start.setEnabled(self.data.ready and bool(self._about))

    def _on_counts(self, counts: PieceCounts) -> None:
        self.end()
        self.counted.emit(counts)

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.end()
        self.failed.emit(mistake.message)
