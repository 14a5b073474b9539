"""The bar above the predictions that chooses the run, its data, correct or wrong rows, and a text to search for."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QMenu, QToolButton, QVBoxLayout, QWidget

from app.core.i18n import inside, tr
from app.core.predictions.row_filter import RIGHT, TEXT, RowFilter, ValueFilter, short
from app.core.runs.run_comparison import names_of
from app.core.runs.run_library import RunSummary
from app.widgets.forms.chips import FilterChips, chips
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconToolButton
from app.widgets.row_views.row_view import RowOrder

CALM_MS = 200
ANYWHERE = tr("All columns")
EXACTNESS = (("case", tr("Match case")), ("words", tr("Whole words")), ("regex", tr("Regular expression")))

SPLITS = ((tr("Validation"), "validation"), (tr("Test"), "test"))
RIGHTNESS: tuple[tuple[str, bool | None], ...] = ((tr("All"), None), (tr("Correct"), True), (tr("Wrong"), False))
FILE_ORDER = RowOrder(tr("Original order"), "", False)
NO_SPLIT = {
    "validation": tr("This run has no predictions for validation data"),
    "test": tr("This run has no test data"),
}


class FilterBar(QWidget):
    """Emits what the user wants to see; it reads nothing."""

    run_chosen = Signal(str)
    split_chosen = Signal()
    changed = Signal()
    """Other rows are wanted."""
    order_chosen = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._more = RowFilter()
        """What is asked for by a click elsewhere: a label pair, a range of confidence, values."""
        self._split = SPLITS[0][1]
        self._make_choices()
        self.search = SearchField()
        self.search.changed.connect(self._on_changed)
        self.chips = FilterChips()
        self.chips.dropped.connect(self._on_dropped)
        self.chips.cleared.connect(self.clear)
        self.tools = QHBoxLayout()
        """Room for what belongs to the table."""
        self._lay_out()
        self.offer_orders(())
        self.offer_others(())

    def _make_choices(self) -> None:
        self.run_choice = QuietComboBox()
        self.run_choice.setMinimumWidth(200)
        self.run_choice.setMaximumWidth(460)
        self.run_choice.setAccessibleName(tr("Run"))
        self.run_choice.activated.connect(lambda _: self.run_chosen.emit(self.run_choice.currentData()))
        self.split_group, self._splits = chips([title for title, _ in SPLITS])
        self.right_group, self._rights = chips([title for title, _ in RIGHTNESS])
        self.split_group.idClicked.connect(self._on_split_clicked)
        self.right_group.idClicked.connect(lambda _: self._on_changed())
        self.other_choice = QuietComboBox()
        self.other_choice.setAccessibleName(tr("Predictions for another file"))
        self.other_choice.setToolTip(tr("Other files predicted by this run"))
        self.other_choice.setMinimumWidth(130)
        self.other_choice.setMaximumWidth(320)
        self.other_choice.activated.connect(self._on_other_chosen)
        self.order_choice = QuietComboBox()
        self.order_choice.setAccessibleName(tr("Sort order"))
        self.order_choice.setToolTip(tr("Sort order"))
        self.order_choice.setMinimumWidth(150)
        self.order_choice.setMaximumWidth(320)
        self.order_choice.activated.connect(lambda _: self.order_chosen.emit())

    def _lay_out(self) -> None:
        data = QHBoxLayout()
        data.setSpacing(14)
        data.addWidget(self.run_choice, 3)
        data.addLayout(self._splits)
        data.addWidget(self.other_choice, 1)
        data.addStretch(1)
        rows = QHBoxLayout()
        rows.setSpacing(14)
        rows.addLayout(self._rights)
        rows.addWidget(self.search, 3)
        rows.addWidget(self.order_choice, 2)
        rows.addLayout(self.tools)
        self._rows = QWidget()
        self._rows.setLayout(rows)
        rows.setContentsMargins(0, 0, 0, 0)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addLayout(data)
        column.addWidget(self._rows)
        column.addWidget(self.chips)

    # What is wanted

    @property
    def split(self) -> str:
        """Which predictions to show: `validation`, `test`, or the name of another file."""
        return self._split

    @property
    def order(self) -> RowOrder:
        """The sort order."""
        return self.order_choice.currentData() or FILE_ORDER

    @property
    def row_filter(self) -> RowFilter:
        """The current filter."""
        right = RIGHTNESS[self.right_group.checkedId()][1]
        return self.search.put_into(replace(self._more, right=right))

    def show_count(self, words: str) -> None:
        """Show how many rows match."""
        self.chips.show_count(words)

    def want_right(self, right: bool | None) -> None:
        """Show only correct rows, only wrong ones, or all."""
        place = next(place for place, (_, value) in enumerate(RIGHTNESS) if value is right)
        self.right_group.button(place).setChecked(True)
        self._on_changed()

    def want_pair(self, pair: tuple[str, str] | None) -> None:
        """Show only the rows of a label pair, or all."""
        self._more = replace(self._more, pair=pair)
        self._on_changed()

    def want_confidence(self, bounds: tuple[float, float] | None) -> None:
        """Show only rows with this confidence, or all."""
        self._more = replace(self._more, confidence=bounds)
        self._on_changed()

    def want_slice(self, wanted: tuple[int, str] | None) -> None:
        """Show only the rows of a slice, by its number and name, or all."""
        self._more = replace(self._more, slice=wanted)
        self._on_changed()

    def want_value(self, value: ValueFilter) -> None:
        """Show only rows whose column compares with a value."""
        self._more = self._more.with_value(value)
        self._on_changed()

    def clear(self) -> None:
        """Show all rows."""
        self.forget()
        self._on_changed()

    def forget(self) -> None:
        """Clear every condition; emits nothing."""
        self._more = RowFilter()
        self.right_group.button(0).setChecked(True)
        self.search.clear()
        self.chips.show_chips([])

    def _on_dropped(self, key: str) -> None:
        if key == RIGHT:
            self.right_group.button(0).setChecked(True)
        elif key == TEXT:
            self.search.clear()
        else:
            self._more = self._more.without(key)
        self._on_changed()

    def _on_changed(self) -> None:
        self.chips.show_chips(list(self.row_filter.chips()))
        self.changed.emit()

    # What can be chosen

    def list_runs(self, runs: Sequence[RunSummary], chosen: Path | None) -> None:
        """Offer the runs that have predictions, and the chosen one in any case."""
        predicted = [run for run in runs if run.has_predictions]
        known = [(name, str(run.path)) for run, name in zip(predicted, names_of(predicted), strict=True)]
        if chosen is not None and str(chosen) not in [path for _, path in known]:
            known.insert(0, (chosen.name, str(chosen)))
        box = self.run_choice
        if known != [(box.itemText(place), box.itemData(place)) for place in range(box.count())]:
            box.clear()
            for title, path in known:
                box.addItem(title, path)
        if chosen is not None:
            box.setCurrentIndex(box.findData(str(chosen)))

    def offer_splits(self, names: Sequence[str], chosen: str = "") -> None:
        """Offer these splits, some of which are other files, and choose one or the first."""
        for place, (_, split) in enumerate(SPLITS):
            button = self.split_group.button(place)
            button.setEnabled(split in names)
            button.setToolTip("" if split in names else NO_SPLIT[split])
        self.offer_others([name for name in names if name not in NO_SPLIT])
        self.choose(chosen if chosen in names else next(iter(names), SPLITS[0][1]))

    def offer_others(self, names: Sequence[str]) -> None:
        """Offer the predictions of other files."""
        self.other_choice.clear()
        self.other_choice.addItem(tr("Other files"), "")
        for name in names:
            self.other_choice.addItem(name, name)
        self.other_choice.setVisible(bool(names))

    def choose(self, name: str) -> None:
        """Choose which predictions to show; emits nothing."""
        self._split = name
        place = next((place for place, (_, split) in enumerate(SPLITS) if split == name), None)
        self.split_group.setExclusive(False)  # of another file neither is chosen
        for number, button in enumerate(self.split_group.buttons()):
            button.setChecked(number == place)
        self.other_choice.setCurrentIndex(0 if place is not None else max(0, self.other_choice.findData(name)))

    def _on_split_clicked(self, place: int) -> None:
        self.choose(SPLITS[place][1])
        self.split_chosen.emit()

    def _on_other_chosen(self) -> None:
        name = self.other_choice.currentData()
        if name:
            self.choose(name)
            self.split_chosen.emit()

    def offer_rows(self, any_rows: bool, has_actual: bool) -> None:
        """Enable filters only if there are rows, and correct/wrong only if the answers are known."""
        self._rows.setVisible(any_rows)
        self.search.setEnabled(any_rows)
        for place, button in enumerate(self.right_group.buttons()):
            button.setEnabled(any_rows and (has_actual or place == 0))
            button.setToolTip(
                "" if has_actual or place == 0 else tr("These rows have no actual values to compare with")
            )
        if not has_actual:
            self.right_group.button(0).setChecked(True)

    def offer_orders(self, orders: Sequence[RowOrder]) -> None:
        """Offer these orders and the file's own, which is selected."""
        self.order_choice.clear()
        for order in (FILE_ORDER, *orders):
            self.order_choice.addItem(order.title, order)
        self.order_choice.setVisible(bool(orders))

    def choose_order(self, column: str, mistakes: bool) -> None:
        """Choose the order that shows the highest values of a column first; emits nothing."""
        for place in range(self.order_choice.count()):
            order = self.order_choice.itemData(place)
            if (order.column, order.descending, order.mistakes) == (column, True, mistakes):
                self.order_choice.setCurrentIndex(place)

    def show_file_order(self) -> None:
        """Show that the rows are sorted in a way that this choice does not offer."""
        self.order_choice.setCurrentIndex(0)


class SearchField(QWidget):
    """A text field and, behind a button, the column to search and how to match."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.line = QLineEdit(clearButtonEnabled=True)
        self.line.setMinimumWidth(140)
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self.changed)
        self.line.textChanged.connect(self._calm.start)
        self.options = IconToolButton("settings", tr("Search options"))
        self.options.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu = QMenu(self)
        self.options.setMenu(self.menu)
        self._places = QActionGroup(self)
        self.exactness = {name: self._exact(name, title) for name, title in EXACTNESS}
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.line, 1)
        row.addWidget(self.options)
        self.offer_columns([])

    def _exact(self, name: str, title: str) -> QAction:
        action = QAction(title, self, checkable=True)
        action.setData(name)
        action.toggled.connect(self._on_option)
        return action

    def offer_columns(self, columns: Sequence[tuple[str, str]]) -> None:
        """Set the columns to search, by name and title; initially any."""
        self.menu.clear()
        for action in self._places.actions():
            self._places.removeAction(action)
        for name, title in (("", ANYWHERE), *columns):
            action = self.menu.addAction(title.replace("&", "&&"))
            action.setCheckable(True)
            action.setData(name)
            action.setChecked(not name)
            action.triggered.connect(self._on_option)
            self._places.addAction(action)
        self.menu.addSeparator()
        for action in self.exactness.values():
            self.menu.addAction(action)
        self._say()

    @property
    def column(self) -> str:
        """The column to search; empty: any column."""
        chosen = self._places.checkedAction()
        return str(chosen.data()) if chosen else ""

    def choose_column(self, name: str) -> None:
        """Search only this column, as if the user had chosen it."""
        next(action for action in self._places.actions() if action.data() == name).trigger()

    def put_into(self, wanted: RowFilter) -> RowFilter:
        """The filter with the text typed here."""
        exact = {name: action.isChecked() for name, action in self.exactness.items()}
        return replace(wanted, text=self.line.text().strip(), text_column=self.column, **exact)

    def clear(self) -> None:
        """Clear the search; emitted at once."""
        self.line.clear()
        self._calm.stop()

    def _on_option(self) -> None:
        self._say()
        if self.line.text().strip():
            self.changed.emit()

    def _say(self) -> None:
        column = short(self.column.replace("_", " "))
        words = tr("Search in {column}", column=column) if column else tr("Search all columns")
        chosen = [inside(title) for name, title in EXACTNESS if self.exactness[name].isChecked()]
        self.line.setPlaceholderText(words)
        self.line.setAccessibleName(words)
        self.line.setToolTip(f"{words}: {', '.join(chosen)}" if chosen else words)
        self.options.set_token("accent_text" if column or chosen else "muted")
