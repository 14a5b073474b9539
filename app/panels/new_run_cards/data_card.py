"""Owns the choice of the data: files, columns, and a look at the first rows."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.core import schema, wording
from app.core.draft import Draft
from app.core.source_choice import split_kind
from app.panels.new_run_cards.column_choice import ColumnChoice
from app.panels.new_run_cards.path_field import dropped_paths
from app.panels.new_run_cards.preview_rows import PreviewRows
from app.panels.new_run_cards.rows import CAPTION_WIDTH, Rows
from app.panels.new_run_cards.split_fields import SplitFields
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.icon_label import IconButton
from app.widgets.quiet_combo_box import QuietComboBox
from app.widgets.row_table import RowTable
from app.widgets.schema_form import SchemaForm
from backend.contract.catalog import Column, SourceEntry
from backend.contract.queries import DataPreview

SHOWN_LABELS = 8


class DataCard(Card):
    """Emits `changed` with the dotted key of the spec."""

    changed = Signal(str, object)
    mistakes_changed = Signal()
    report_asked = Signal()
    tokens_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("2 · Data", parent)
        self._sources: dict[str, SourceEntry] = {}
        self._draft = Draft()
        self._form: SchemaForm | None = None
        self.state = label("", "faint")
        self.report = IconButton("Report", "chart", "quiet")
        self.report.setToolTip("Rows, labels, lengths, duplicates and overlap of all splits")
        self.report.clicked.connect(self.report_asked)
        self.tokens = IconButton("Tokens", "text", "quiet")
        self.tokens.setToolTip(
            "Lengths against the limit, unknown tokens, padding, and what the model gets of every row"
        )
        self.tokens.clicked.connect(self.tokens_asked)
        for widget in (self.state, self.tokens, self.report):
            self.corner.addWidget(widget)
        self._build_choice()
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

    def _build_choice(self) -> None:
        self.source = QuietComboBox()
        self.source.activated.connect(lambda number: self.changed.emit("data.source", self.source.itemData(number)))
        rows = Rows()
        self._source_caption = rows.add("Source", self.source)
        self._source_words = label("", "faint", wrap=True)
        rows.addWidget(self._source_words, rows.rowCount(), 1)
        self.body.addLayout(rows)
        self.splits = SplitFields()
        self.splits.changed.connect(self.changed)
        self.splits.refused.connect(self.show_problem)
        self.train, self.validation, self.test = self.splits.train, self.splits.validation, self.splits.test
        self.validation_kind, self.fraction = self.splits.validation_kind, self.splits.fraction
        self._choices = QVBoxLayout()
        self._choices.setSpacing(8)
        self._choices.addWidget(self.splits)
        self.body.addLayout(self._choices)

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
        self._source_words.setText(self._sources[source].description if source in self._sources else "")
        # Everybody knows files; the line is worth more to the preview below.
        self._source_words.setVisible(source != "files")
        self.splits.show_draft(draft, split_kind(self._sources.get(source)))
        self._show_form(source)

    def _show_form(self, source: str) -> None:
        entry = self._sources.get(source)
        if self._form is not None and self._form.property("source") == source:
            self._form.set_defaults()
            self._form.set_values(self._draft.get("data", {}))
            return
        self._drop_form()
        fields = schema.resolved(entry.settings) if entry else {}
        if not fields.get("properties"):
            return
        if source == "files":
            # How a file is written is found by itself nearly always.
            fields = schema.folded(fields)
        self._form = SchemaForm(fields, prefix="data", label_width=CAPTION_WIDTH)
        self._form.setProperty("source", source)
        self._form.set_values(self._draft.get("data", {}))
        self._form.changed.connect(self.changed)
        self._form.mistakes_changed.connect(self.mistakes_changed)
        # Where the data is comes before which part of it.
        self._choices.insertWidget(1 if split_kind(entry) == "files" else 0, self._form)

    def _drop_form(self) -> None:
        if self._form is not None:
            self._form.hide()
            self._choices.removeWidget(self._form)
            self._form.deleteLater()
            self._form = None

    def mark(self, field: str, sentence: str) -> bool:
        """Show a mistake that belongs to this card; says whether it does."""
        if not field.startswith("data"):
            return False
        if self._form is None or not self._form.mark(field, sentence):
            self.show_problem(sentence)
        return True

    def clear_marks(self) -> None:
        """Take the mistakes away that were said from outside."""
        if self._form is not None:
            self._form.clear_marks()

    def mistakes(self) -> list[str]:
        """The sentences of all marked fields."""
        return wording.mistakes(self._form.mistakes()) if self._form is not None else []

    # What the data is

    def _show_nothing(self) -> None:
        for widget in (self.columns, self.table, self.labels, self.skipped):
            widget.hide()
        self._offer_looks(False)
        self.state.setText("")

    def _offer_looks(self, on: bool) -> None:
        for button in (self.tokens, self.report):
            button.setEnabled(on)

    def show_reading(self) -> None:
        """The data is being read."""
        self._offer_looks(False)
        self.state.setText("Reading…")

    def show_problem(self, sentence: str) -> None:
        """The data cannot be used, or (empty) there is none."""
        if sentence:
            self.banner.show_message("error", sentence)
        else:
            self.banner.clear()
        self.state.setText("")

    def show_unread(self) -> None:
        """The data cannot be read, so nothing of other data is shown."""
        self.banner.clear()
        self._show_nothing()

    def show_nothing(self) -> None:
        """No data is chosen."""
        self.banner.clear()
        self._show_nothing()

    def show_preview(self, preview: DataPreview, columns: dict[str, str | None]) -> None:
        """The first rows, the columns, the labels, and what had to be left out."""
        self.banner.clear()
        self.clear_marks()
        self._offer_looks(True)
        self.state.setText(f"{wording.count(preview.row_count, 'row')}")
        self.columns.show_preview(preview, columns)
        self.columns.show()
        rows = PreviewRows(preview, [column for column in columns.values() if column])
        self.table.set_source(rows)
        self.table.set_widths(rows.widths(), stretched=rows.texts())
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
        """Files where splits are files, the folder where there is one; else the file's rows are a source of their own."""
        source = self._sources.get(str(self._draft.get("data.source", "files")))
        if split_kind(source) == "own" and source is not None:
            event.acceptProposedAction()
            self.changed.emit(f"data.{source.path_fields[0]}", dropped_paths(event)[0])
            return
        if split_kind(source) != "files":
            self.changed.emit("data.source", "files")
        self.train.dropEvent(event)


def _label_words(counts: dict[str, int]) -> str:
    shown = [f"{name} {wording.grouped(count)}" for name, count in list(counts.items())[:SHOWN_LABELS]]
    more = len(counts) - len(shown)
    words = "1 label" if len(counts) == 1 else f"{len(counts)} labels"
    return f"{words}: {' · '.join(shown)}{f' and {more} more' if more > 0 else ''}"


def _skipped_words(preview: DataPreview) -> str:
    first = "; ".join(preview.skipped[:2])
    return f"{wording.count(preview.skipped_count, 'row')} cannot be used: {first}{' …' if preview.skipped_count > 2 else ''}"
