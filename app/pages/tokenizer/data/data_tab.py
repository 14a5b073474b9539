"""Owns the side that shows data as a training sees it: whose data, its lengths against the limits, its rows as tokens."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.core.i18n import tr
from app.core.text.data_subject import TrainingSubject
from app.pages.tokenizer.data.lengths_page import LengthsPage
from app.pages.tokenizer.data.rows_page import RowsPage
from app.pages.tokenizer.data.subject_bar import SubjectBar
from app.services.context import AppContext
from app.widgets.empty_state import EmptyState
from backend.contract.rpc.training_data import TrainingLengths

LENGTHS, ROWS, NOTHING = 0, 1, 2


class Side(QWidget):
    """The tokenizer is the training's own, whatever the page has chosen."""

    message = Signal(str, str)
    settings_chosen = Signal(dict)
    draft_wanted = Signal()
    """Whoever knows the run that is being set up should call `show_draft`."""
    new_run_requested = Signal()
    own_tokenizer = True

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.tokenizer = ""
        self._asked = 0
        self._page = LENGTHS
        self.bar = SubjectBar(context)
        self.lengths, self.rows = LengthsPage(context.client), RowsPage(context.client)
        self.nothing = EmptyState("table", tr("No data yet"), button=tr("Set up a run"))
        self.nothing.asked.connect(self.new_run_requested)
        self.pages = QStackedWidget()
        for page in (self.lengths, self.rows, self.nothing):
            self.pages.addWidget(page)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        column.addWidget(self.bar)
        column.addWidget(self.pages, 1)
        self._connect()

    def _connect(self) -> None:
        self.bar.changed.connect(self._look)
        self.bar.page_chosen.connect(self.show_page)
        self.bar.again.connect(self._look_again)
        self.lengths.settings_chosen.connect(self.settings_chosen)
        self.lengths.row_chosen.connect(self._on_row_chosen)
        self.lengths.measured.connect(self._on_measured)
        self.rows.answered.connect(lambda answer: self.bar.set_splits(answer.splits))

    def use(self, tokenizer: str) -> None:
        """Data is shown with its own tokenizer."""
        self.tokenizer = tokenizer

    def shown(self) -> None:
        """The draft may be another by now, and runs may have come."""
        self.bar.refresh()
        self.draft_wanted.emit()
        self._look()

    def show_draft(self, spec: Mapping[str, Any], lacks: str) -> None:
        """The run that is being set up, and what it still lacks as a sentence."""
        is_other = self.bar.set_draft(TrainingSubject(spec=dict(spec), lacks=lacks))
        if is_other and self.bar.subject.is_draft:
            self._look()

    def look_at_draft(self) -> None:
        """Show the data of the run that is being set up."""
        self.bar.choose_draft()
        self.show_page(LENGTHS)

    def show_step(self, run: str, step: int) -> None:
        """Show the rows of a run's optimizer step."""
        self.bar.choose_run(run)
        self._page = ROWS
        self.bar.show_page(ROWS)
        self.pages.setCurrentIndex(ROWS)
        self.rows.show_step(self._arguments(), step)

    def show_page(self, place: int) -> None:
        """LENGTHS or ROWS."""
        self._page = place
        self.bar.show_page(place)
        self._look()

    def _arguments(self) -> dict[str, Any]:
        return self.bar.subject.arguments(self.bar.split, self._asked)

    def _look(self) -> None:
        """Ask what the page in view shows, unless it is there."""
        subject = self.bar.subject
        if not subject.ready:
            self.nothing.set_words(tr("No data yet"), subject.lacks)
            self.pages.setCurrentIndex(NOTHING)
            return
        self.pages.setCurrentIndex(self._page)
        if not self.isVisible():
            return
        if self._page == LENGTHS:
            self.lengths.ask(self._arguments(), can_set=subject.is_draft)
        else:
            self.rows.show_subject(self._arguments())

    def _look_again(self) -> None:
        self._asked += 1
        self._look()

    def _on_measured(self, answer: TrainingLengths) -> None:
        self.bar.set_splits(answer.splits)
        self.bar.box.setToolTip(
            tr("{task_title}, tokens of {tokenizer}", task_title=answer.task_title, tokenizer=answer.tokenizer)
        )

    def _on_row_chosen(self, row: int) -> None:
        self._page = ROWS
        self.bar.show_page(ROWS)
        self.pages.setCurrentIndex(ROWS)
        self.rows.show_row(self._arguments(), row)
