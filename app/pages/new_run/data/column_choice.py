"""Assigns data columns to the task's inputs: detected with a reason, changed, and reset."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QStandardItemModel
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.core.backend_words import translate_word as words_of
from app.core.draft import data_messages
from app.core.i18n import tr, trn
from app.widgets.accessibility import Role
from app.widgets.boxes import hbox, holder
from app.widgets.card import CAPTION_WIDTH, label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconToolButton
from app.widgets.tables.preview_table import part_color
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.catalog import Column
from backend.contract.rpc.data import DataPreview

Chosen = str | list[str] | None
SEVERAL = "\0several"
"""The choice that leads to a dialog; no column has this name."""
CHOSEN = tr("your choice")
"""The backend's reason where nothing was guessed; the drop-down says as much."""
BOX_WIDTH = 148
"""Pixels in which most names of columns fit."""
WHY_LETTERS = 46
"""Of a reason beside a column that cannot be chosen; its tooltip has the whole."""


def columns_of(chosen: Chosen) -> list[str]:
    """The columns that play a part: none, one or several."""
    return chosen if isinstance(chosen, list) else [chosen] if chosen else []


class _Dot(QWidget):
    """The colour of the role's column in the preview."""

    spoken_role = Role.Graphic

    def __init__(self, token: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._token, self.is_on = token, False
        self.setFixedSize(QSize(10, 10))

    def set_on(self, on: bool) -> None:
        """Filled if the role has a column."""
        self.is_on = on
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """A disc, or a ring."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(theme.color(self._token if self.is_on else "border_strong"))
            painter.setBrush(theme.color(self._token) if self.is_on else Qt.BrushStyle.NoBrush)
            painter.drawEllipse(self.rect().adjusted(1, 1, -2, -2))


class _Part:
    """The widgets of one role."""

    def __init__(self, part: Column, place: int) -> None:
        self.part = part
        self.box = QuietComboBox()
        self.box.setMinimumWidth(BOX_WIDTH)
        self.box.setToolTip(part.description)
        self.box.setAccessibleName(tr("Column for {title}", title=part.title))
        self.first = tr("Choose…") if part.required else tr("Not used")
        self.dot = _Dot(part_color(place))
        self.dot.setAccessibleName(part.title)
        self.reason = ElidedLabel("", "faint", lines=2, least_letters=8)
        self.reason.setMinimumWidth(1)
        self.back = IconToolButton("undo", tr("Use the detected column for {title}", title=part.title))
        self.caption: QLabel = label(part.title, "muted", wrap=True)
        self.caption.setFixedWidth(CAPTION_WIDTH)
        self.caption.setBuddy(self.box)
        self.guess: str | None = None
        self.beside = holder(hbox(self.reason, self.back, spacing=10))
        self.clear()

    def widgets(self) -> tuple[QWidget, ...]:
        """The widgets that are always shown together."""
        return self.caption, self.dot, self.box, self.beside

    def clear(self) -> None:
        """Show that the columns are not known."""
        self.guess = None
        self.box.clear()
        self.box.addItem(self.first, None)
        self.box.setEnabled(False)
        self.dot.set_on(False)
        self.reason.setText("")
        self.back.hide()
        self.mark("")

    def mark(self, sentence: str) -> None:
        """Mark the column as wrong; what is wrong with it is said below all roles. Empty clears it."""
        theme.flag(self.box, "mistaken", bool(sentence))
        self.box.setAccessibleDescription(sentence or self.part.description)
        if sentence:
            self.reason.setText("")

    def show_preview(self, preview: DataPreview, chosen: Chosen) -> None:
        """Offer the columns; unsuitable ones are disabled, with the reason."""
        self._offer(preview)
        self.box.setEnabled(True)
        if isinstance(chosen, list):
            self._show_several(chosen)
            return
        if chosen and chosen not in preview.columns:
            self.box.addItem(tr("{chosen} (not in the data)", chosen=chosen), chosen)
        self.box.setCurrentIndex(max(0, self.box.findData(chosen)))
        if chosen is not None and chosen in preview.columns:
            self.box.setItemText(self.box.currentIndex(), chosen)  # why it is unsuitable is said beside it
        self.dot.set_on(chosen is not None)
        self.mark("")
        self._show_reason(preview, chosen)

    def _show_several(self, chosen: list[str]) -> None:
        self.box.insertItem(1, ", ".join(chosen), chosen)
        self.box.setCurrentIndex(1)
        self.dot.set_on(True)
        self.mark("")
        self.guess = None
        self.reason.setText(trn("{count} column", "{count} columns", len(chosen)))
        self.back.hide()

    def _offer(self, preview: DataPreview) -> None:
        summaries = {summary.name: summary for summary in preview.summaries}
        unfit = preview.unfit.get(self.part.name, {})
        self.box.clear()
        self.box.addItem(self.first, None)
        for column in preview.columns:
            why = unfit.get(column, "")
            short_reason = why if len(why) <= WHY_LETTERS else f"{why[:WHY_LETTERS]}…"
            self.box.addItem(f"{column} · {short_reason}" if why else column, column)
            at = self.box.count() - 1
            hint = (
                f"{column} {why}"
                if why
                else data_messages.column_hint(summaries[column])
                if column in summaries
                else ""
            )
            self.box.setItemData(at, hint, Qt.ItemDataRole.ToolTipRole)
            if why:
                self._disable(at)
        if self.part.several and len(preview.columns) > 1:
            self.box.addItem(tr("Several columns…"), SEVERAL)

    def _disable(self, at: int) -> None:
        model = self.box.model()
        assert isinstance(model, QStandardItemModel)
        model.item(at).setEnabled(False)

    def _show_reason(self, preview: DataPreview, chosen: str | None) -> None:
        reason = preview.guess_reasons.get(self.part.name, "")
        guessed = preview.guessed_columns.get(self.part.name) == chosen
        better = preview.best_guesses.get(self.part.name)
        why = preview.unfit.get(self.part.name, {}).get(chosen or "", "")
        self.guess = better.column if better is not None and better.column != chosen else None
        reason_text = "" if reason == CHOSEN or not guessed else words_of(reason)
        if why:
            reason_text = f"“{chosen}” {why}"
        elif self.guess is not None and better is not None:
            reason_text = tr("Detected: “{guess}”", guess=self.guess)
            self.back.setToolTip(tr("Use “{guess}”: {reason}", guess=self.guess, reason=words_of(better.reason)))
        theme.role(self.reason, "warning" if why else "faint")
        self.reason.setText(reason_text)
        self.back.setVisible(self.guess is not None)


class SeveralDialog(QDialog):
    """Which columns play a part together, one for each label."""

    chosen = Signal(list)

    def __init__(self, columns: Sequence[str], chosen: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("A column for each label"))
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Columns"))
        for name in columns:
            item = QListWidgetItem(name, self.list)
            item.setCheckState(Qt.CheckState.Checked if name in chosen else Qt.CheckState.Unchecked)
        about = label(tr("Select the columns that say with 1 or 0, yes or no, or x, whether a row has the label."), "muted", wrap=True)  # fmt: skip
        self.accept_button = QPushButton(tr("Use these columns"))
        theme.role(self.accept_button, "primary")
        self.accept_button.setDefault(True)
        self.accept_button.clicked.connect(self._on_accepted)
        cancel = QPushButton(tr("Cancel"))
        cancel.setAutoDefault(False)
        cancel.clicked.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 18)
        column.setSpacing(10)
        column.addWidget(about)
        column.addWidget(self.list, 1)
        column.addLayout(hbox(1, cancel, self.accept_button, spacing=8))
        self.list.itemChanged.connect(self._check)
        self.resize(theme.pixels(380), theme.pixels(420))
        self._check()

    def names(self) -> list[str]:
        """The selected columns, in the data's order."""
        items = (self.list.item(row) for row in range(self.list.count()))
        return [item.text() for item in items if item.checkState() == Qt.CheckState.Checked]

    def _check(self) -> None:
        self.accept_button.setEnabled(len(self.names()) > 1)

    def _on_accepted(self) -> None:
        self.chosen.emit(self.names())
        self.accept()


class ColumnChoice(QWidget):
    """One drop-down per role, with the reason for the guess beside it."""

    changed = Signal(str, object)
    """Part and column (None: not used), or a list of columns."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: dict[str, _Part] = {}
        self._columns: Mapping[str, Chosen] = {}
        self._there: Sequence[str] = ()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(10)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnMinimumWidth(0, CAPTION_WIDTH)
        self._grid.setColumnStretch(2, 3)
        self._grid.setColumnStretch(3, 2)

    @property
    def boxes(self) -> dict[str, QuietComboBox]:
        """Role → its drop-down."""
        return {name: part.box for name, part in self._parts.items()}

    def reason(self, part: str) -> str:
        """The text beside a drop-down."""
        return self._parts[part].reason.text()

    def back_button(self, part: str) -> IconToolButton:
        """The button that restores the guess."""
        return self._parts[part].back

    def titles(self) -> dict[str, tuple[str, str]]:
        """Role → title and colour."""
        return {name: (part.part.title, part_color(place)) for place, (name, part) in enumerate(self._parts.items())}

    def set_parts(self, parts: list[Column]) -> None:
        """Show another task's roles."""
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self._parts = {part.name: _Part(part, place) for place, part in enumerate(parts)}
        for row, (name, part) in enumerate(self._parts.items()):
            part.box.activated.connect(lambda number, name=name: self._on_chosen(name, number))
            part.back.clicked.connect(lambda _=False, name=name: self.changed.emit(name, self._parts[name].guess))
            for column, widget in enumerate(part.widgets()):
                self._grid.addWidget(widget, row, column)
        self._show_needed({})

    def mark(self, part: str, sentence: str) -> None:
        """Mark the column of one role as wrong."""
        if part in self._parts:
            self._parts[part].mark(sentence)

    def clear(self) -> None:
        """Show that the columns are not known, as before there is data."""
        for part in self._parts.values():
            part.clear()

    def _on_chosen(self, name: str, number: int) -> None:
        column = self._parts[name].box.itemData(number)
        if column != SEVERAL:
            self.changed.emit(name, column)
            return
        own = self._columns.get(name)
        box = self._parts[name].box
        box.setCurrentIndex(1 if isinstance(own, list) else max(0, box.findData(own)))
        others = {column for role, column in self._columns.items() if role != name and isinstance(column, str)}
        there = [column for column in self._there if column not in others]
        self.several = SeveralDialog(there, own if isinstance(own, list) else [], self)
        self.several.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.several.chosen.connect(lambda names: self.changed.emit(name, names))
        self.several.open()

    def show_preview(self, preview: DataPreview, columns: Mapping[str, Chosen]) -> None:
        """Offer the data's columns and show the chosen ones; a chosen one that is missing is kept and marked."""
        self._columns, self._there = columns, preview.columns
        for name, part in self._parts.items():
            part.show_preview(preview, columns.get(name))
        self._show_needed(columns)

    def _show_needed(self, columns: Mapping[str, Chosen]) -> None:
        """For numbered roles (`choice_0` …) show those in use and one more."""
        free: set[str] = set()
        for name, part in self._parts.items():
            stem, _, number = name.rpartition("_")
            is_shown = not (number.isdigit() and stem) or bool(columns.get(name)) or stem not in free
            if number.isdigit() and not columns.get(name):
                free.add(stem)
            for widget in part.widgets():
                widget.setVisible(is_shown)
            if not is_shown:
                part.back.hide()
