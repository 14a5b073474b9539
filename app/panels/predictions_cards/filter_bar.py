"""Owns the bar above the predictions: whose, of which data, right or wrong, and with which text."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from app.core.run_library import RunSummary
from app.widgets.chips import chips
from app.widgets.quiet_combo_box import QuietComboBox

CALM_MS = 200
SPLITS = (("Validation", "validation"), ("Test", "test"))
RIGHTNESS: tuple[tuple[str, bool | None], ...] = (("All", None), ("Right", True), ("Wrong", False))
NO_SPLIT = {"validation": "This run has no predictions for validation data", "test": "This run was given no test data"}


class FilterBar(QWidget):
    """Says what a person wants to see; it reads nothing."""

    run_chosen = Signal(str)
    split_chosen = Signal()
    changed = Signal()
    """Other rows are wanted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.run_choice = QuietComboBox()
        self.run_choice.setMinimumWidth(300)
        self.run_choice.setAccessibleName("Run")
        self.run_choice.activated.connect(lambda _: self.run_chosen.emit(self.run_choice.currentData()))
        self.split_group, splits = chips([title for title, _ in SPLITS])
        self.right_group, rights = chips([title for title, _ in RIGHTNESS])
        self.split_group.idClicked.connect(lambda _: self.split_chosen.emit())
        self.right_group.idClicked.connect(lambda _: self.changed.emit())
        self.search = QLineEdit(placeholderText="Find text in any column", clearButtonEnabled=True)
        self.search.setAccessibleName("Find text in any column")
        self.search.setMaximumWidth(320)
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self.changed)
        self.search.textChanged.connect(self._calm.start)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(18)
        row.addWidget(self.run_choice, 1)
        row.addLayout(splits)
        row.addLayout(rights)
        row.addStretch(1)
        row.addWidget(self.search, 2)

    @property
    def split(self) -> str:
        """Whose predictions are wanted: `validation` or `test`."""
        return SPLITS[self.split_group.checkedId()][1]

    @property
    def right(self) -> bool | None:
        """Right rows, wrong rows, or all."""
        return RIGHTNESS[self.right_group.checkedId()][1]

    @property
    def text(self) -> str:
        """What the rows must hold."""
        return self.search.text().strip()

    def list_runs(self, runs: Sequence[RunSummary], chosen: Path | None) -> None:
        """Offer the runs that have predictions, and the chosen one whether it has any or not."""
        known = [(f"{run.title} · {run.name}", str(run.path)) for run in runs if run.has_predictions]
        if chosen is not None and str(chosen) not in [path for _, path in known]:
            known.insert(0, (chosen.name, str(chosen)))
        box = self.run_choice
        if known != [(box.itemText(place), box.itemData(place)) for place in range(box.count())]:
            box.clear()
            for title, path in known:
                box.addItem(title, path)
        if chosen is not None:
            box.setCurrentIndex(box.findData(str(chosen)))

    def offer_splits(self, splits: Sequence[str]) -> None:
        """Let choose among these and choose the first."""
        for place, (_, split) in enumerate(SPLITS):
            button = self.split_group.button(place)
            button.setEnabled(split in splits)
            button.setToolTip("" if split in splits else NO_SPLIT[split])
        first = next((place for place, (_, split) in enumerate(SPLITS) if split in splits), 0)
        self.split_group.button(first).setChecked(True)

    def offer_rows(self, any_rows: bool, has_actual: bool) -> None:
        """Filters are of use only where there are rows, and right and wrong only where the answer is known."""
        self.search.setEnabled(any_rows)
        for place, button in enumerate(self.right_group.buttons()):
            button.setEnabled(any_rows and (has_actual or place == 0))
            button.setToolTip("" if has_actual or place == 0 else "These rows have no actual values to compare with")
        if not has_actual:
            self.right_group.button(0).setChecked(True)
