"""Owns the bar above the predictions: whose, of which data, right or wrong, and with which text."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.core.run_library import RunSummary
from app.panels.predictions_cards.row_views.row_view import Order
from app.widgets.chips import chips
from app.widgets.icon_label import IconButton
from app.widgets.quiet_combo_box import QuietComboBox

CALM_MS = 200
SPLITS = (("Validation", "validation"), ("Test", "test"))
RIGHTNESS: tuple[tuple[str, bool | None], ...] = (("All", None), ("Right", True), ("Wrong", False))
PAIR_LETTERS = 28
FILE_ORDER = Order("In the file's order", "", False)
NO_SPLIT = {"validation": "This run has no predictions for validation data", "test": "This run was given no test data"}


class FilterBar(QWidget):
    """Says what a person wants to see; it reads nothing."""

    run_chosen = Signal(str)
    split_chosen = Signal()
    changed = Signal()
    """Other rows are wanted."""
    order_chosen = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.run_choice = QuietComboBox()
        self.run_choice.setMinimumWidth(200)
        self.run_choice.setAccessibleName("Run")
        self.run_choice.activated.connect(lambda _: self.run_chosen.emit(self.run_choice.currentData()))
        self.split_group, splits = chips([title for title, _ in SPLITS])
        self.right_group, rights = chips([title for title, _ in RIGHTNESS])
        self.split_group.idClicked.connect(lambda _: self.split_chosen.emit())
        self.right_group.idClicked.connect(lambda _: self.changed.emit())
        self.order_choice = QuietComboBox()
        self.order_choice.setAccessibleName("Order of the rows")
        self.order_choice.setToolTip("Order of the rows")
        self.order_choice.setMinimumWidth(150)
        self.order_choice.activated.connect(lambda _: self.order_chosen.emit())
        self._pair: tuple[str, str] | None = None
        self.pair_button = IconButton("", "close", "chip", "accent_text")
        self.pair_button.setCheckable(True)
        self.pair_button.setAccessibleName("Show the rows of every label again")
        self.pair_button.setToolTip("Show the other rows again")
        self.pair_button.clicked.connect(lambda: self._on_pair_dropped())
        self.search = QLineEdit(placeholderText="Find text in any column", clearButtonEnabled=True)
        self.search.setAccessibleName("Find text in any column")
        self.search.setMaximumWidth(320)
        self.search.setMinimumWidth(140)
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self.changed)
        self.search.textChanged.connect(self._calm.start)
        row = QHBoxLayout()
        row.setSpacing(14)
        row.addWidget(self.run_choice, 3)
        row.addLayout(splits)
        row.addLayout(rights)
        row.addStretch(1)
        row.addWidget(self.order_choice, 2)
        row.addWidget(self.search, 2)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addLayout(row)
        column.addWidget(self.pair_button, 0, Qt.AlignmentFlag.AlignLeft)
        self.show_pair(None)
        self.offer_orders(())

    @property
    def split(self) -> str:
        """Whose predictions are wanted: `validation` or `test`."""
        return SPLITS[self.split_group.checkedId()][1]

    @property
    def right(self) -> bool | None:
        """Right rows, wrong rows, or all."""
        return RIGHTNESS[self.right_group.checkedId()][1]

    @property
    def order(self) -> Order:
        """How the rows are wanted."""
        return self.order_choice.currentData() or FILE_ORDER

    @property
    def pair(self) -> tuple[str, str] | None:
        """Actual and predicted label of the rows that are wanted, if not all."""
        return self._pair

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

    def offer_orders(self, orders: Sequence[Order]) -> None:
        """Let choose among these and the file's own order, which is chosen."""
        self.order_choice.clear()
        for order in (FILE_ORDER, *orders):
            self.order_choice.addItem(order.title, order)
        self.order_choice.setVisible(bool(orders))

    def show_file_order(self) -> None:
        """The rows were sorted in another way than this choice offers."""
        self.order_choice.setCurrentIndex(0)

    def show_pair(self, pair: tuple[str, str] | None) -> None:
        """Name the label pair whose rows are wanted; emits nothing."""
        self._pair = pair
        self.pair_button.setVisible(pair is not None)
        self.pair_button.setChecked(True)
        if pair is not None:
            self.pair_button.setText(f"Actual {_short(pair[0])}, predicted {_short(pair[1])}")

    def _on_pair_dropped(self) -> None:
        self.show_pair(None)
        self.changed.emit()


def _short(label: str) -> str:
    return label if len(label) <= PAIR_LETTERS else f"{label[:PAIR_LETTERS]}…"
