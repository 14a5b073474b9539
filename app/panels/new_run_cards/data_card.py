"""Owns the choice of the data: files, columns, and a look at the first rows."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.core import schema, wording
from app.core.draft import Draft
from app.panels.new_run_cards.column_choice import ColumnChoice
from app.panels.new_run_cards.path_field import PathField, dropped_paths
from app.panels.new_run_cards.preview_rows import PreviewRows
from app.panels.new_run_cards.rows import Rows
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.number_line import NumberLine
from app.widgets.quiet_combo_box import QuietComboBox
from app.widgets.row_table import RowTable
from app.widgets.schema_form import SchemaForm
from backend.contract.catalog import Column, SourceEntry
from backend.contract.queries import DataPreview

FRACTION, FILE, NONE = "A fraction", "A file", "None"
SHOWN_LABELS = 8


class DataCard(Card):
    """Emits `changed` with the dotted key of the spec."""

    changed = Signal(str, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("2 · Data", parent)
        self._sources: dict[str, SourceEntry] = {}
        self._draft = Draft()
        self._form: SchemaForm | None = None
        self.state = label("", "faint")
        self.corner.addWidget(self.state)
        self._build_files()
        self.columns = ColumnChoice()
        self.columns.changed.connect(lambda part, column: self.changed.emit(f"data.columns.{part}", column))
        self.banner = Banner()
        self.labels = label("", "muted", wrap=True)
        self.skipped = label("", "warning", wrap=True)
        self.table = RowTable()
        self.table.setMinimumHeight(178)
        self.table.setAccessibleName("First rows of the data")
        for widget in (self.columns, self.banner, self.table, self.labels, self.skipped):
            self.add(widget)
        self._show_nothing()
        self.setAcceptDrops(True)

    def _build_files(self) -> None:
        self.source = QuietComboBox()
        self.source.activated.connect(lambda number: self.changed.emit("data.source", self.source.itemData(number)))
        hint = "CSV, JSON, Parquet or text; or drop it here"
        self.train = PathField("Training data", hint)
        self.validation_kind = QuietComboBox()
        self.validation_kind.addItems([FRACTION, FILE, NONE])
        self.validation_kind.textActivated.connect(self._on_validation_kind)
        self.fraction = NumberLine(whole=False)
        self.fraction.setAccessibleName("Fraction of the training rows for validation")
        self.fraction.setFixedWidth(72)
        self.fraction.editingFinished.connect(self._on_fraction)
        self.validation = PathField("Validation data", "The same kind of file")
        self.test = PathField("Test data", "Optional; scored once, at the end")
        for key, field in (("train", self.train), ("validation", self.validation), ("test", self.test)):
            field.changed.connect(lambda value, key=key: self.changed.emit(f"data.{key}", value))
        both = QWidget()
        row = QHBoxLayout(both)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.validation_kind, 1)
        row.addWidget(self.fraction)
        row.addWidget(self.validation, 2)
        rows = Rows()
        self._source_caption = rows.add("Source", self.source)
        self._file_rows: list[tuple[QLabel, QWidget]] = [
            (rows.add("Training", self.train), self.train),
            (rows.add("Validation", both, self.validation_kind), both),
            (rows.add("Test", self.test), self.test),
        ]
        self.body.addLayout(rows)
        self._form_place = QVBoxLayout()
        self.body.addLayout(self._form_place)

    # What can be chosen

    def set_sources(self, sources: Sequence[SourceEntry]) -> None:
        """Offer these; a single one is not worth a row."""
        self._sources = {source.name: source for source in sources}
        self.source.clear()
        for source in sources:
            self.source.addItem(source.title, source.name)
            self.source.setItemData(self.source.count() - 1, source.description, Qt.ItemDataRole.ToolTipRole)
        for widget in (self.source, self._source_caption):
            widget.setVisible(len(sources) > 1)

    def set_parts(self, parts: list[Column]) -> None:
        """Another task, or another setting of it: other columns."""
        self.columns.set_parts(parts)

    def show_draft(self, draft: Draft) -> None:
        """Show what the draft says."""
        self._draft = draft
        source = str(draft.get("data.source", "files"))
        self.source.setCurrentIndex(self.source.findData(source))
        self.train.set_value(draft.get("data.train"))
        self.test.set_value(draft.get("data.test"))
        self._show_validation(draft.get("data.validation"))
        self._show_form(source)
        for caption, field in self._file_rows:
            caption.setVisible(source != "demo")
            field.setVisible(source != "demo")

    def _show_validation(self, value: Any) -> None:
        fraction = float(value) if isinstance(value, int | float) else None
        is_fraction = fraction is not None
        self.validation_kind.setCurrentText(FRACTION if is_fraction else FILE if value else NONE)
        self.fraction.setVisible(is_fraction)
        self.validation.setVisible(bool(value) and not is_fraction)
        if fraction is not None:
            self.fraction.setText(f"{fraction:g}")
        self.validation.set_value(value if isinstance(value, str | list) else None)

    def _show_form(self, source: str) -> None:
        entry = self._sources.get(source)
        if self._form is not None and self._form.property("source") == source:
            self._form.set_values(self._draft.get("data", {}))
            return
        if self._form is not None:
            self._form.hide()
            self._form_place.removeWidget(self._form)
            self._form.deleteLater()
            self._form = None
        fields = schema.resolved(entry.settings) if entry else {}
        if not fields.get("properties"):
            return
        if source == "files":
            # How a file is written is found by itself nearly always.
            fields = schema.folded(fields)
        self._form = SchemaForm(fields, prefix="data")
        self._form.setProperty("source", source)
        self._form.set_values(self._draft.get("data", {}))
        self._form.changed.connect(self.changed)
        self._form_place.addWidget(self._form)

    def _on_validation_kind(self, kind: str) -> None:
        if kind == FRACTION:
            self.changed.emit("data.validation", 0.1)
        elif kind == NONE:
            self.changed.emit("data.validation", None)
        else:
            self.fraction.hide()
            self.validation.show()
            self.validation.line.setFocus()

    def _on_fraction(self) -> None:
        try:
            value = float(self.fraction.text())
        except ValueError:
            value = 0.0
        if not 0 < value < 1:
            self._show_validation(self._draft.get("data.validation"))
            self.show_problem("Validation: a fraction lies between 0 and 1, for example 0.1. Nothing was changed.")
            return
        self.changed.emit("data.validation", value)

    def mark(self, field: str, sentence: str) -> bool:
        """Show a mistake that belongs to this card; says whether it does."""
        if not field.startswith("data"):
            return False
        self.show_problem(sentence)
        return True

    # What the data is

    def _show_nothing(self) -> None:
        for widget in (self.columns, self.table, self.labels, self.skipped):
            widget.hide()
        self.state.setText("")

    def show_reading(self) -> None:
        """The data is being read."""
        self.state.setText("Reading…")

    def show_problem(self, sentence: str) -> None:
        """The data cannot be used, or (empty) there is none."""
        if sentence:
            self.banner.show_message("error", sentence)
        else:
            self.banner.clear()
        self.state.setText("")

    def show_nothing(self) -> None:
        """No data is chosen."""
        self.banner.clear()
        self._show_nothing()

    def show_preview(self, preview: DataPreview, columns: dict[str, str | None]) -> None:
        """The first rows, the columns, the labels, and what had to be left out."""
        self.banner.clear()
        self.state.setText(f"{wording.count(preview.row_count, 'row')}")
        self.columns.show_preview(preview, columns)
        self.columns.show()
        self.table.set_source(PreviewRows(preview))
        used = [column for column in columns.values() if column in preview.columns]
        self.table.set_widths(
            dict.fromkeys(preview.columns, 92),
            stretched=str(used[0]) if used else preview.columns[0] if preview.columns else "",
        )
        self.table.show()
        self.labels.setText(_label_words(preview.label_counts))
        self.labels.setVisible(bool(preview.label_counts))
        self.skipped.setText(_skipped_words(preview))
        self.skipped.setToolTip("\n".join(preview.skipped))
        self.skipped.setVisible(preview.skipped_count > 0)

    # Drops

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """A file dropped anywhere on the card is training data."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Take it."""
        self.train.dropEvent(event)


def _label_words(counts: dict[str, int]) -> str:
    shown = [f"{name} {wording.grouped(count)}" for name, count in list(counts.items())[:SHOWN_LABELS]]
    more = len(counts) - len(shown)
    words = "1 label" if len(counts) == 1 else f"{len(counts)} labels"
    return f"{words}: {' · '.join(shown)}{f' and {more} more' if more > 0 else ''}"


def _skipped_words(preview: DataPreview) -> str:
    first = "; ".join(preview.skipped[:2])
    return f"{wording.count(preview.skipped_count, 'row')} cannot be used: {first}{' …' if preview.skipped_count > 2 else ''}"
