"""Owns which column of the data plays which part of the task."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.panels.new_run_cards.rows import CAPTION_WIDTH
from app.widgets.card import label
from app.widgets.elided_label import ElidedLabel
from app.widgets.quiet_combo_box import QuietComboBox
from backend.contract.catalog import Column
from backend.contract.queries import DataPreview

CHOSEN = "as chosen"
"""The backend's reason where nothing was guessed; the drop-down says as much."""


class ColumnChoice(QWidget):
    """One drop-down per part, with the reason of the guess beside it."""

    changed = Signal(str, object)
    """Part and column (None: not used)."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.boxes: dict[str, QuietComboBox] = {}
        self._reasons: dict[str, ElidedLabel] = {}
        self._captions: dict[str, QLabel] = {}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(10)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnMinimumWidth(0, CAPTION_WIDTH)
        self._grid.setColumnStretch(2, 1)

    def set_parts(self, parts: list[Column]) -> None:
        """The parts of another task."""
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self.boxes, self._reasons, self._captions = {}, {}, {}
        for row, part in enumerate(parts):
            box = self.boxes[part.name] = QuietComboBox()
            box.setMinimumWidth(150)
            box.setToolTip(part.description)
            box.setAccessibleName(f"Column for {part.title}")
            box.addItem("Choose a column" if part.required else "Not used", None)
            box.activated.connect(
                lambda number, name=part.name: self.changed.emit(name, self.boxes[name].itemData(number))
            )
            self._reasons[part.name] = ElidedLabel("", "faint")
            caption = self._captions[part.name] = label(part.title, "muted", wrap=True)
            caption.setFixedWidth(CAPTION_WIDTH)
            caption.setBuddy(box)
            self._grid.addWidget(caption, row, 0)
            self._grid.addWidget(box, row, 1)
            self._grid.addWidget(self._reasons[part.name], row, 2)

    def show_preview(self, preview: DataPreview, columns: dict[str, str | None]) -> None:
        """Offer the data's columns and show which are chosen; a chosen one that is not there stays, marked."""
        for part, box in self.boxes.items():
            first, chosen = box.itemText(0), columns.get(part)
            box.clear()
            box.addItem(first, None)
            for column in preview.columns:
                box.addItem(column, column)
            if chosen and chosen not in preview.columns:
                box.addItem(f"{chosen} (not in the data)", chosen)
            box.setCurrentIndex(max(0, box.findData(chosen)))
            guessed = preview.guessed_columns.get(part) == chosen and chosen is not None
            reason = preview.guess_reasons.get(part, "") if guessed else ""
            self._reasons[part].setText("" if reason == CHOSEN else reason)
        self._show_needed(columns)

    def _show_needed(self, columns: dict[str, str | None]) -> None:
        """Of parts that are numbered (`choice_0` …) those in use and one more."""
        free: set[str] = set()
        for part, box in self.boxes.items():
            stem, _, number = part.rpartition("_")
            shown = not (number.isdigit() and stem) or bool(columns.get(part)) or stem not in free
            if number.isdigit() and not columns.get(part):
                free.add(stem)
            for widget in (box, self._captions[part], self._reasons[part]):
                widget.setVisible(shown)
