"""The Data section: files and columns, and beside them what was recognised and the first rows."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.core import json_schema
from app.core.draft.data_source import rows_of, split_kind
from app.core.draft.draft import Draft
from app.core.draft.section_words import source_words
from app.core.i18n import tr
from app.pages.new_run.data.column_choice import Chosen, ColumnChoice
from app.pages.new_run.data.data_view import DataView
from app.pages.new_run.data.recognised_note import NO_OFFER, RecognisedNote, TaskOffer
from app.pages.new_run.data.split_fields import SplitFields
from app.pages.new_run.section import Panel, Section
from app.widgets.banner import Banner
from app.widgets.boxes import fill, stack
from app.widgets.card import CAPTION_WIDTH, FormGrid
from app.widgets.drop_hint import DropZone
from app.widgets.empty_state import EmptyState
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.forms.path_field import dropped_paths
from app.widgets.forms.schema_form import SchemaForm
from app.widgets.icon_label import IconButton
from backend.contract.catalog import Column, SourceEntry
from backend.contract.errors import Fix
from backend.contract.rpc.data import DataPreview, RecognisedData
from backend.contract.rpc.protocol import Progress

COLUMNS = "data.columns."
DROP_TITLE = tr("Drop your data here")
DROP_WORDS = tr(
    "One or more files, or a folder: CSV, TSV, JSON, Parquet, Arrow, Excel, OpenDocument, plain "
    "text, CoNLL, SQuAD or GLUE, optionally compressed with gzip or zip. Files named train, "
    "validation and test are assigned automatically. You can also paste a path."
)


class DataSection(Section):
    """Beside it: what was recognised, the first rows, and what is wrong with them."""

    changed = Signal(str, object)
    mistakes_changed = Signal()
    report_requested = Signal()
    tokens_requested = Signal()
    train_named = Signal(object)
    """Training files were typed or chosen, which may be read by another source."""
    dropped = Signal(list, str)
    """Paths, and the split on whose field they were dropped (empty: on none)."""
    undo_requested = Signal()
    """The user asked to restore the settings from before the detection."""
    task_requested = Signal(str)
    stop_requested = Signal()
    read_requested = Signal()

    def __init__(self, panel: Panel, parent: QWidget | None = None) -> None:
        super().__init__(tr("Data"), panel, parent)
        self._sources: dict[str, SourceEntry] = {}
        self._draft = Draft()
        self._form: SchemaForm | None = None
        self._recognised_rows: object = None
        self._shown_rows: object = None
        """The rows of which the preview was shown."""
        self._shown_files: Sequence[str] = ()
        self.columns = ColumnChoice()
        self.columns.changed.connect(lambda part, column: self.changed.emit(f"data.columns.{part}", column))
        self._build_choice()
        self._build_corner()
        self._build_panel()
        self.column_banner = Banner(is_narrow=True)
        self.column_banner.fix_taken.connect(self._on_fix_taken)
        for part in (self.columns, self.column_banner):  # last: another task, or other data, may need more or fewer
            self.body.addWidget(part)
        self._show_nothing()
        self.setAcceptDrops(True)

    def _build_corner(self) -> None:
        self.report = IconButton(tr("Report"), "chart", "quiet", clicked=self.report_requested)
        self.report.setToolTip(tr("Rows, labels, lengths, duplicates and overlap for every split"))
        self.tokens = IconButton(tr("Tokens"), "text", "quiet", clicked=self.tokens_requested)
        self.tokens.setToolTip(
            tr("Token lengths and the limit, unknown tokens, padding, and what the model sees for each row")
        )
        self.stop = IconButton(
            tr("Stop"), "stop", "quiet", hint=tr("Stop reading the data"), clicked=self.stop_requested
        )
        for button in (self.stop, self.tokens, self.report):
            self.panel.corner.addWidget(button)

    def _build_panel(self) -> None:
        self.recognised = RecognisedNote()
        self.recognised.undo_requested.connect(self.undo_requested)
        self.recognised.task_requested.connect(self.task_requested)
        self.banner = Banner()
        self.again = IconButton(tr("Reload"), "refresh", "quiet", clicked=self.read_requested)
        self.banner.buttons.addWidget(self.again)
        self.again.hide()
        self.banner.fix_taken.connect(self._on_fix_taken)
        self.view = DataView(self.columns)
        self.table, self.labels, self.skipped = self.view.table, self.view.labels, self.view.skipped
        self.zone = DropZone(DROP_TITLE, DROP_WORDS)
        self.zone.files_requested.connect(self.train.file_button.click)
        self.zone.folder_requested.connect(self.train.folder_button.click)
        self.reading = EmptyState("table", "")
        self.empty = EmptyState("table", tr("No rows yet"))
        self.pages = stack(self.zone, self.empty, self.reading, self.view)
        fill(self.panel.body, (self.recognised, self.banner, (self.pages, 1)))

    def _build_choice(self) -> None:
        self.source = QuietComboBox()
        self.source.activated.connect(lambda number: self.changed.emit("data.source", self.source.itemData(number)))
        rows = FormGrid()
        self._source_caption = rows.add(tr("Source"), self.source)
        self.body.addLayout(rows)
        self.splits = SplitFields()
        self.splits.changed.connect(self._on_split)
        self.splits.refused.connect(self.show_problem)
        self.train, self.validation, self.test = self.splits.train, self.splits.validation, self.splits.test
        self.validation_kind, self.fraction = self.splits.validation_kind, self.splits.fraction
        self._choices = QVBoxLayout()
        self._choices.setSpacing(8)
        self._choices.addWidget(self.splits)
        self.body.addLayout(self._choices)

    def _on_split(self, key: str, value: object) -> None:
        self.changed.emit(key, value)
        source = self._sources.get(str(self._draft.get("data.source", "files")))
        if key == "data.train" and value and split_kind(source) == "files":
            self.train_named.emit(value)

    # What can be chosen

    def set_sources(self, sources: Sequence[SourceEntry]) -> None:
        """Offer these sources; the row is hidden if there is only one."""
        self._sources = {source.name: source for source in sources}
        self.source.clear()
        for source in sources:
            self.source.addItem(source.title, source.name)
            self.source.setItemData(self.source.count() - 1, source.description, Qt.ItemDataRole.ToolTipRole)
        for widget in (self.source, self._source_caption):
            widget.setVisible(len(sources) > 1)

    def set_parts(self, parts: list[Column]) -> None:
        """Show the columns of another task, or of another setting of it."""
        self.columns.set_parts(parts)

    def show_draft(self, draft: Draft) -> None:
        """Show the draft's values."""
        self._draft = draft
        source = str(draft.get("data.source", "files"))
        self.source.setCurrentIndex(self.source.findData(source))
        entry = self._sources.get(source)
        self.empty.set_words(tr("No rows yet"), entry.description if entry is not None else "")
        kind = split_kind(self._sources.get(source))
        if rows_of(draft) != self._recognised_rows:
            self.forget_recognised()
        self.splits.show_draft(draft, kind)
        if rows_of(draft) != self._shown_rows:
            self._show_nothing()
        self._show_form(source)

    def _show_form(self, source: str) -> None:
        entry = self._sources.get(source)
        if self._form is not None and self._form.property("source") == source:
            self._form.set_defaults()
            self._form.set_values(self._draft.get("data", {}))
            return
        self._drop_form()
        fields = json_schema.resolve(entry.settings) if entry else {}
        if not fields.get("properties"):
            return
        if source == "files":
            # How a file is written is found by itself nearly always.
            fields = json_schema.fold(fields)
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

    def mark(self, field: str, sentence: str, fix: Fix | None = None) -> bool:
        """Show an error of this section at its field, below the columns or beside; returns whether it belongs here."""
        if not field.startswith("data"):
            return False
        is_column = field.startswith(COLUMNS)
        if fix is None and not is_column and self._form is not None and self._form.mark(field, sentence, unfold=False):
            return True
        banner = self.column_banner if is_column else self.banner
        self.again.hide()  # the same would be said again
        if fix is None:
            banner.show_message("error", sentence)
        else:
            banner.offer_fix(fix, sentence)
        if is_column:
            self.columns.mark(field.removeprefix(COLUMNS), sentence)
        return True

    def mistaken_column(self) -> QWidget | None:
        """The column that is wrong; its sentence is below."""
        if self.column_banner.isHidden():
            return None
        return next((box for box in self.columns.boxes.values() if box.property("mistaken")), None)

    def clear_marks(self) -> None:
        """Clear the errors reported from outside."""
        if self._form is not None:
            self._form.clear_marks()

    def forms_shown(self) -> list[SchemaForm]:
        """The form, if there is one."""
        return [] if self._form is None else [self._form]

    def show_matches(self, keys: Collection[str] | None) -> None:
        """Expand the settings with these keys."""
        if self._form is not None:
            self._form.show_matches(keys or (), alone=False)

    def mistakes(self) -> dict[str, str]:
        """Title → error message of all marked fields."""
        return self._form.mistake_sentences() if self._form is not None else {}

    # What was dropped or named

    def own_folder(self) -> str:
        """The folder key that the chosen source reads itself; empty if it reads files or names."""
        source = self._sources.get(str(self._draft.get("data.source", "files")))
        return f"data.{source.path_fields[0]}" if source is not None and split_kind(source) == "own" else ""

    def show_recognising(self) -> None:
        """Show that a drop is being recognised."""
        self._clear_banners()
        self.forget_recognised()
        self.panel.title.setText(tr("Inspecting the dropped files…"))

    def show_recognised(self, found: RecognisedData, offer: TaskOffer = NO_OFFER) -> None:
        """Show what was recognised and used, with tasks for such data."""
        self._recognised_rows = rows_of(self._draft)
        self.recognised.say(found, offer)

    def show_offer(self, offer: TaskOffer) -> None:
        """Show what is said about the task for the current data."""
        self._recognised_rows = rows_of(self._draft)
        self.recognised.show_offer(offer)

    def forget_recognised(self) -> None:
        """Hide what was recognised."""
        self.recognised.forget()

    def show_refused(self, sentence: str) -> None:
        """Show why a drop is not usable; the previous choice is kept."""
        self.forget_recognised()
        self._show_title()
        self.show_problem(sentence)

    # What the data is

    def _show_nothing(self) -> None:
        """Nothing is known of this data, and what was known of other data is not shown."""
        self._shown_rows = None
        self.view.clear()
        self.columns.clear()
        self._show_reading(False)
        self._offer_looks(False)
        self._show_title()
        is_files = split_kind(self._sources.get(str(self._draft.get("data.source", "files")))) == "files"
        self.pages.setCurrentWidget(self.zone if is_files else self.empty)

    def _show_title(self) -> None:
        """Name the data whose rows are shown."""
        source = self._sources.get(str(self._draft.get("data.source", "files")))
        self.panel.title.setText(
            tr("Data") if self._shown_rows is None else source_words(self._draft, source, self._shown_files)
        )

    def _offer_looks(self, on: bool) -> None:
        for button in (self.tokens, self.report):
            button.setVisible(on)
            button.setEnabled(on)

    def _show_reading(self, on: bool) -> None:
        self.stop.setVisible(on)
        self.panel.bar.setVisible(on)
        self.view.setEnabled(not on)

    def show_reading(self, progress: Progress | None = None) -> None:
        """Show that the data is being read, with its progress; rows of the same data stay, greyed."""
        self._offer_looks(False)
        self._show_reading(True)
        share = progress.done / progress.total if progress is not None and progress.total else None
        source = self._sources.get(str(self._draft.get("data.source", "files")))
        words = tr("Reading {name}…", name=source_words(self._draft, source))
        self.panel.title.setText(words if share is None else f"{words} {share:.0%}")
        self.panel.bar.set_fraction(share)
        if self._shown_rows is None:
            self.reading.set_words(words, tr("The first rows appear here."))
            self.pages.setCurrentWidget(self.reading)

    def show_problem(self, sentence: str, again: bool = False) -> None:
        """Show why the data cannot be used, or (empty) that there is none; `again` offers a retry."""
        self.again.setVisible(again)
        if sentence:
            self.banner.show_message("error", sentence)
        else:
            self.banner.clear()

    def _on_fix_taken(self, changes: dict[str, Any]) -> None:
        for key, value in changes.items():
            self.changed.emit(key, value)

    def _clear_banners(self) -> None:
        self.banner.clear()
        self.column_banner.clear()

    def show_unread(self) -> None:
        """Show that the data cannot be read, and nothing from other data."""
        self._clear_banners()
        self._show_nothing()

    def show_nothing(self) -> None:
        """Show that no data is chosen."""
        self._clear_banners()
        self.forget_recognised()
        self._show_nothing()

    def show_preview(self, preview: DataPreview, columns: Mapping[str, Chosen]) -> None:
        """Show the first rows, the columns, the labels, and what was left out."""
        self._clear_banners()
        if preview.fix is not None:
            self.again.hide()
            self.banner.offer_fix(preview.fix, kind="warning")
        self.clear_marks()
        self._show_reading(False)
        self._offer_looks(True)
        self._shown_rows, self._shown_files = rows_of(self._draft), preview.files
        self._show_title()
        self.columns.show_preview(preview, columns)
        self.view.show_preview(preview, columns)
        self.pages.setCurrentWidget(self.view)

    # Drops

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a file dropped anywhere on the section as training data."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Recognise whatever was dropped by its content."""
        event.acceptProposedAction()
        self.dropped.emit(dropped_paths(event), "")
