"""The line that counts how often each piece occurs in chosen data, with its progress and its result."""

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QWidget

from app.core.backend_words import said
from app.core.formatting import grouped
from app.core.i18n import tr
from app.pages.tokenizer.data_choice import DataChoice
from app.services.backend_client import PendingQuery
from app.services.context import AppContext
from app.widgets.card import label
from app.widgets.icon_label import IconButton
from app.widgets.progress import ThinProgressBar
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.protocol import ErrorReply, Progress
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
        self.words, self.bar = ElidedLabel("", "muted"), ThinProgressBar()
        self.stop = IconButton(tr("Stop"), "stop")
        self.stop.clicked.connect(self.cancel)
        caption = label(tr("Frequency in"), "muted")
        self.pages = QStackedWidget()
        self.pages.addWidget(_row(caption, (self.data, 1), self.start))
        self.pages.addWidget(_row((self.words, 2), (self.bar, 3), self.stop))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.pages)
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
        self.words.setText(tr("Opening the tokenizer…"))
        self.bar.set_fraction(None)
        self._ticket = self._context.client.ask(
            "count_pieces", question, self._on_counts, self._on_mistake, self._on_progress
        )
        self._show_state()
        self.stop.setFocus()

    def cancel(self) -> None:
        """Stop counting; what was counted before stays."""
        if self._ticket is not None:
            self._ticket.cancel()
        self._ticket = None
        self._show_state()

    @property
    def counting(self) -> bool:
        """Whether an answer is still to come."""
        return self._ticket is not None

    def _show_state(self) -> None:
        self.pages.setCurrentIndex(1 if self.counting else 0)
        self.start.setEnabled(self.data.ready and bool(self._about))

    def _on_progress(self, progress: Progress) -> None:
        self.bar.set_fraction(progress.done / progress.total if progress.total else None)
        total = tr(" of {total}", total=grouped(int(progress.total))) if progress.total else ""
        self.words.setText(
            said(progress.text)
            or tr(
                "Counting… {done}{total} {unit}",
                done=grouped(int(progress.done)),
                total=total,
                unit=said(progress.unit),
            )
        )

    def _on_counts(self, counts: PieceCounts) -> None:
        self._ticket = None
        self._show_state()
        self.counted.emit(counts)

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self._ticket = None
        self._show_state()
        self.failed.emit(mistake.message)


def _row(*parts: QWidget | tuple[QWidget, int]) -> QWidget:
    made = QWidget()
    row = QHBoxLayout(made)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(10)
    for part in parts:
        widget, stretch = part if isinstance(part, tuple) else (part, 0)
        row.addWidget(widget, stretch)
    return made
