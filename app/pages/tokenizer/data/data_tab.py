"""The My data tab: data as training sees it, its lengths against the limits and its rows as tokens."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.core import formatting
from app.core.i18n import tr
from app.core.text.training_data import TrainingSubject
from app.pages.tokenizer.data.lengths_page import LengthsPage
from app.pages.tokenizer.data.rows_page import RowsPage
from app.pages.tokenizer.tokenizer_tab import TokenizerTab
from app.services.context import AppContext
from app.widgets.boxes import hbox, stack, vbox
from app.widgets.card import label
from app.widgets.empty_state import EmptyState
from app.widgets.forms.chips import chips
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconToolButton
from backend.contract.rpc.training_data import TrainingLengths

SPLITS = {"train": tr("Training data"), "validation": tr("Validation data"), "test": tr("Test data")}
PAGES = (tr("Lengths"), tr("Rows"))

LENGTHS, ROWS, NOTHING = 0, 1, 2


class DataTab(TokenizerTab):
    """Always uses the training run's own tokenizer, whatever the page has chosen."""

    has_own_tokenizer = True

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._reads = 0
        self._page = LENGTHS
        self.bar = SubjectBar(context)
        self.lengths, self.rows = LengthsPage(context.client), RowsPage(context.client)
        self.nothing = EmptyState("table", tr("No data yet"), button=tr("Set up a run"))
        self.nothing.action_clicked.connect(self.new_run_requested)
        self.pages = stack(self.lengths, self.rows, self.nothing)
        vbox(self.bar, (self.pages, 1), spacing=14, parent=self)
        self._connect()

    def _connect(self) -> None:
        self.bar.changed.connect(self._ask_again)
        self.bar.pages.idClicked.connect(self.show_page)
        self.bar.fresh.clicked.connect(self._reload)
        self.lengths.settings_chosen.connect(self.settings_chosen)
        self.lengths.row_chosen.connect(self._on_row_chosen)
        self.lengths.measured.connect(self._on_measured)
        self.rows.answered.connect(lambda answer: self.bar.set_splits(answer.splits))

    def on_shown(self) -> None:
        """Update: the draft may have changed, and there may be new runs."""
        self.bar.refresh()
        self.draft_wanted.emit()
        self._ask_again()

    def show_draft(self, spec: Mapping[str, Any], lacks: str) -> None:
        """Set the run being set up, and what is missing from it as a sentence."""
        is_other = self.bar.set_draft(TrainingSubject(spec=dict(spec), lacks=lacks))
        if is_other and self.bar.subject.is_draft:
            self._ask_again()

    def show_lengths(self) -> None:
        """Show the data of the run being set up."""
        self.bar.choose("")
        self.show_page(LENGTHS)

    def show_step(self, run: str, step: int) -> None:
        """Show the rows of a run's optimizer step."""
        self.bar.choose(run)
        self._turn_to_rows()
        self.rows.show_step(self._arguments(), step)

    def show_page(self, place: int) -> None:
        """LENGTHS or ROWS."""
        self._page = place
        self.bar.show_page(place)
        self._ask_again()

    def _arguments(self) -> dict[str, Any]:
        return self.bar.subject.arguments(self.bar.split, self._reads)

    def _ask_again(self) -> None:
        """Query what the current page shows, unless it is up to date."""
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

    def _reload(self) -> None:
        self._reads += 1
        self._ask_again()

    def _on_measured(self, answer: TrainingLengths) -> None:
        self.bar.set_splits(answer.splits)
        self.bar.box.setToolTip(
            tr("{task_title}, tokens of {tokenizer}", task_title=answer.task_title, tokenizer=answer.tokenizer)
        )

    def _on_row_chosen(self, row: int) -> None:
        self._turn_to_rows()
        self.rows.show_row(self._arguments(), row)

    def _turn_to_rows(self) -> None:
        self._page = ROWS
        self.bar.show_page(ROWS)
        self.pages.setCurrentIndex(ROWS)


class SubjectBar(QWidget):
    """`subject` is the current choice; `changed` is emitted when the user makes another one."""

    changed = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.draft = TrainingSubject(lacks=tr("Choose data and a model on the New run page first."))
        hint = tr("The run you are setting up, or one that has been started")
        self.box = QuietComboBox(name=tr("Run that provides the data"), hint=hint, activated=self._on_chosen)
        self.split_box = QuietComboBox(name=tr("Split"), activated=self.changed.emit)
        self.split_box.setMinimumContentsLength(14)
        self.pages, chosen_page = chips(PAGES)
        self.fresh = IconToolButton("refresh", tr("Reload the files"))
        row = hbox(
            label(tr("Data from"), "muted"), (self.box, 3), (self.split_box, 1), self.fresh, spacing=10, parent=self
        )
        row.addSpacing(6)
        row.addLayout(chosen_page)
        self.set_splits(["train"])
        self.refresh()

    @property
    def subject(self) -> TrainingSubject:
        """Whose data is shown."""
        run = self.box.currentData()
        return TrainingSubject(run=run) if run else self.draft

    @property
    def split(self) -> str:
        """The chosen split."""
        return self.split_box.currentData()

    def refresh(self) -> None:
        """Offer the current runs, newest first, after the draft; the choice is kept."""
        name = str(self.draft.spec.get("name") or "run") if self.draft.spec else tr("nothing yet")
        runs = [(f"{run.title or run.name} · {run.name}", str(run.path)) for run in self._context.library.runs]
        draft = (tr("New run · {name}", name=formatting.name_of_path(name)), "")
        self.box.set_items([draft, *runs], self.box.currentData())

    def set_draft(self, draft: TrainingSubject) -> bool:
        """Set the run being set up; returns whether it has changed."""
        is_other = draft != self.draft
        self.draft = draft
        self.refresh()
        return is_other

    def choose(self, path: str) -> None:
        """The training data of a run, or without a path of the one that is being set up."""
        if self.box.findData(path) < 0:
            self.box.addItem(Path(path).name, path)
        self.box.setCurrentIndex(self.box.findData(path))
        self.set_splits(["train"])

    def set_splits(self, splits: Sequence[str]) -> None:
        """Offer the data's splits; the choice is kept if possible."""
        chosen = self.split_box.currentData() or "train"
        self.split_box.set_items([(SPLITS.get(split, split), split) for split in splits], chosen)
        self.split_box.setEnabled(len(splits) > 1)

    def show_page(self, place: int) -> None:
        """Show one of PAGES as chosen."""
        self.pages.button(place).setChecked(True)

    def _on_chosen(self) -> None:
        self.set_splits(["train"])
        self.changed.emit()
