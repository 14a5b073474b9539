"""Owns the choice of whose data is looked at: the run that is being set up or an earlier one, and which split."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.core import formatting
from app.core.i18n import tr
from app.core.text.data_subject import TrainingSubject
from app.services.context import AppContext
from app.widgets.card import label
from app.widgets.forms.chips import chips
from app.widgets.forms.quiet_combo_box import QuietComboBox
from app.widgets.icon_label import IconToolButton

SPLITS = {"train": tr("Training data"), "validation": tr("Validation data"), "test": tr("Test data")}
PAGES = (tr("Lengths"), tr("Rows"))


class SubjectBar(QWidget):
    """`subject` is the present choice; `changed` says that a person has made another one."""

    changed = Signal()
    page_chosen = Signal(int)
    again = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.draft = TrainingSubject(lacks=tr("Choose data and a model under New run first."))
        self.box = QuietComboBox()
        self.box.setAccessibleName(tr("Whose data"))
        self.box.setToolTip(tr("The run that is being set up, or one that was started"))
        self.box.activated.connect(lambda _: self._on_chosen())
        self.split_box = QuietComboBox()
        self.split_box.setAccessibleName(tr("Split"))
        self.split_box.setMinimumContentsLength(14)
        self.split_box.activated.connect(lambda _: self.changed.emit())
        self.pages, chosen_page = chips(PAGES)
        self.pages.idClicked.connect(self.page_chosen)
        self.fresh = IconToolButton("refresh", tr("Read the files again"))
        self.fresh.clicked.connect(self.again)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(label(tr("Data of"), "muted"))
        row.addWidget(self.box, 3)
        row.addWidget(self.split_box, 1)
        row.addWidget(self.fresh)
        row.addSpacing(6)
        row.addLayout(chosen_page)
        self.set_splits(["train"])
        self.refresh()

    @property
    def subject(self) -> TrainingSubject:
        """Whose data is chosen."""
        run = self.box.currentData()
        return TrainingSubject(run=run) if run else self.draft

    @property
    def split(self) -> str:
        """Which of its data."""
        return self.split_box.currentData()

    def refresh(self) -> None:
        """Offer the runs that there are now, newest first, behind the draft; the choice stays."""
        chosen = self.box.currentData()
        self.box.blockSignals(True)
        self.box.clear()
        name = str(self.draft.spec.get("name") or "run") if self.draft.spec else tr("nothing yet")
        self.box.addItem(tr("New run · {name}", name=formatting.name_of_path(name)), "")
        for run in self._context.library.runs:
            self.box.addItem(f"{run.title or run.name} · {run.name}", str(run.path))
        self.box.setCurrentIndex(max(0, self.box.findData(chosen) if chosen else 0))
        self.box.blockSignals(False)

    def set_draft(self, draft: TrainingSubject) -> bool:
        """The run that is being set up; says whether it is another one than before."""
        is_other = draft != self.draft
        self.draft = draft
        self.refresh()
        return is_other

    def choose_run(self, path: str) -> None:
        """A run, and its training data."""
        if self.box.findData(path) < 0:
            self.box.addItem(Path(path).name, path)
        self.box.setCurrentIndex(self.box.findData(path))
        self.set_splits(["train"])

    def choose_draft(self) -> None:
        """The run that is being set up, and its training data."""
        self.box.setCurrentIndex(0)
        self.set_splits(["train"])

    def set_splits(self, splits: Sequence[str]) -> None:
        """Those that the data has; the choice stays where it can."""
        chosen = self.split_box.currentData() or "train"
        self.split_box.clear()
        for split in splits:
            self.split_box.addItem(SPLITS.get(split, split), split)
        self.split_box.setCurrentIndex(max(0, self.split_box.findData(chosen)))
        self.split_box.setEnabled(len(splits) > 1)

    def show_page(self, place: int) -> None:
        """Mark one of PAGES as chosen."""
        self.pages.button(place).setChecked(True)

    def _on_chosen(self) -> None:
        self.set_splits(["train"])
        self.changed.emit()
