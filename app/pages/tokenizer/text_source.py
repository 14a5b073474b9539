"""The choice of texts: any data that Burnish reads, and which of its columns to use."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.core import formatting, json_schema
from app.core.draft import data_source
from app.core.draft.data_source import change_source, data_name, forget_reading, split_kind
from app.core.draft.draft import Draft
from app.core.i18n import tr, trn
from app.services.backend_client import BackendClient
from app.services.latest_question import LatestQuestion
from app.widgets.banner import Banner
from app.widgets.card import Card, FormGrid, label
from app.widgets.forms.inputs import CheckMenu, QuietComboBox
from app.widgets.forms.path_field import PathField, dropped_paths
from app.widgets.forms.schema_form import SchemaForm
from app.widgets.icon_label import IconButton
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.catalog import SourceEntry
from backend.contract.rpc.data import DataPreview
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.tokens.text_columns import likely_texts

CAPTION_WIDTH = 132
"""Pixels of the captions, as beside the settings below."""
_NOT_OF_TEXTS = ("validation", "test", "columns")
COMMON = {"train", "training", "data", "text", "texts"}
NO_FILE = tr("Choose the texts: a file, a folder or another source.")
_HINTS = {"files": tr("A file or folder"), "names": tr("Name of the split, for example train")}


class TextSource(Card):
    """Queries the first rows of the choice, to learn its columns."""

    changed = Signal()
    """Other data, other columns, or what is known of them."""
    run_requested = Signal()
    """Use the data of the run that you are setting up (`take`)."""

    def __init__(self, client: BackendClient, title: str = tr("Texts"), parent: QWidget | None = None) -> None:
        super().__init__(title, parent)
        self._sources: dict[str, SourceEntry] = {}
        self._draft = Draft({"data": {"source": "files"}})
        self._form: SchemaForm | None = None
        self.preview: DataPreview | None = None
        self._preview = LatestQuestion(
            client,
            "preview_data",
            self._on_preview,
            self._on_mistake,
            opened="",
            arguments=self._question,
            parent=self,
        )
        self.state = label("", "faint")
        hint = tr("Use the data of the run you are setting up")
        self.of_run = IconButton(tr("My run's data"), "bolt", "quiet", hint=hint, clicked=self.run_requested)
        self.corner.addWidget(self.state)
        self.corner.addWidget(self.of_run)
        self._build()
        self.setAcceptDrops(True)

    def _build(self) -> None:
        self.source = QuietComboBox(activated=lambda: self._on_source(self.source.currentData()))
        self.train = PathField(tr("Data"), _HINTS["files"])
        self.train.changed.connect(lambda value: self.change("data.train", value))
        self.columns_menu = CheckMenu(tr("Columns with the texts"), tr("Choose columns"))
        self.columns_menu.changed.connect(self.changed)
        self.columns_menu.offer([], [])
        top, below = FormGrid(), FormGrid()
        top.add(tr("Source"), self.source)
        self._train_caption = below.add(tr("Data"), self.train)
        below.add(tr("Columns"), self.columns_menu)
        for rows in (top, below):
            rows.setColumnMinimumWidth(0, CAPTION_WIDTH)
        self._before, self._after = QVBoxLayout(), QVBoxLayout()
        self.banner = Banner()
        self.banner.fix_taken.connect(self._on_fix_taken)
        self.first = ElidedLabel("", "faint")
        self.add_all(top, self._before, below, self.first, self._after, self.banner)
        self.first.hide()

    def set_sources(self, sources: Sequence[SourceEntry]) -> None:
        """Offer these."""
        self._sources = {source.name: source for source in sources}
        self.source.set_items((source.title, source.name) for source in sources)
        self._show_source()

    @property
    def entry(self) -> SourceEntry | None:
        """The chosen source."""
        return self._sources.get(str(self._draft.get("data.source", "files")))

    def data(self) -> dict[str, Any]:
        """The `data` section of the choice."""
        values = self._draft.values().get("data", {})
        return {name: value for name, value in values.items() if name not in _NOT_OF_TEXTS and value is not None}

    def columns(self) -> list[str]:
        """The checked columns."""
        return self.columns_menu.checked_items()

    def name(self) -> str:
        """A name for the result; a common file name is replaced by its folder's."""
        found = data_name(self._draft, self.entry)
        path = self._draft.get("data.train")
        is_common = found.lower() in COMMON and split_kind(self.entry) == "files" and isinstance(path, str)
        return PurePath(path).parent.name or found if is_common else found

    def reason(self) -> str:
        """Why there are no texts yet, as a sentence; empty if there are."""
        if not self._sources:
            return tr("The backend has not answered yet.")
        if lacking := data_source.missing_data(self._draft, self.entry):
            return NO_FILE if split_kind(self.entry) == "files" else lacking
        if self.banner.text():
            return tr("The data can't be read.")
        if self.preview is None:
            return tr("Reading the data…")
        return "" if self.columns() else tr("Choose a column with texts.")

    def change(self, key: str, value: Any) -> None:
        """Apply the user's change: a dotted key of the spec."""
        if self._draft.set(key, value):
            if key == "data.train":
                forget_reading(self._draft, self.entry)
            self._show_source()
            self._ask()

    def take(self, data: Mapping[str, Any]) -> None:
        """Use another `data` section as a whole."""
        self._draft = Draft({"data": {name: value for name, value in data.items() if name not in _NOT_OF_TEXTS}})
        self._show_source()
        self._ask()

    def show_mistake(self, sentence: str) -> None:
        """Show why the data cannot be used; empty clears it."""
        self.banner.show_message("error", sentence)

    def _on_source(self, name: str) -> None:
        before, after = self.entry, self._sources[name]
        if before is not after:
            change_source(self._draft, before, after)
            self._show_source()
            self._ask()

    def _show_source(self) -> None:
        entry, kind = self.entry, split_kind(self.entry)
        self.source.setCurrentIndex(self.source.findData(self._draft.get("data.source", "files")))
        self.source.setToolTip(entry.description if entry else "")
        self.train.set_browsing(kind == "files", _HINTS.get(kind, ""))
        self.train.set_value(self._draft.get("data.train"))
        for widget in (self.train, self._train_caption):
            widget.setVisible(kind in ("files", "names"))
        self._train_caption.setText(tr("Data") if kind == "files" else tr("Split"))
        self._show_form(entry)

    def _show_form(self, entry: SourceEntry | None) -> None:
        name = entry.name if entry else ""
        if self._form is not None and self._form.property("source") == name:
            self._form.set_values(self._draft.get("data", {}))
            return
        if self._form is not None:
            self._form.hide()
            self._form.deleteLater()
            self._form = None
        fields = json_schema.resolve(entry.settings) if entry else {}
        if not fields.get("properties"):
            return
        self._form = SchemaForm(
            json_schema.fold(fields) if name == "files" else fields, prefix="data", label_width=CAPTION_WIDTH
        )
        self._form.setProperty("source", name)
        self._form.set_values(self._draft.get("data", {}))
        self._form.changed.connect(self.change)
        # How a file is written is found by itself nearly always.
        (self._after if name == "files" else self._before).addWidget(self._form)

    # The first rows

    def _ask(self) -> None:
        self.preview = None
        self.show_mistake("")
        self.first.hide()
        self.columns_menu.offer([], [])
        self.state.setText("" if self._question() is None else tr("Reading…"))
        self._preview.ask_soon()
        self.changed.emit()

    def _question(self) -> dict[str, Any] | None:
        return None if data_source.missing_data(self._draft, self.entry) else {"data": self.data()}

    def _on_preview(self, preview: DataPreview) -> None:
        self.preview = preview
        self.state.setText(trn("{count} row", "{count} rows", preview.row_count))
        likely = likely_texts(preview.columns, preview.rows)
        self.columns_menu.offer(preview.columns, likely)
        cells = preview.rows[0] if preview.rows else []
        first = next((cells[preview.columns.index(name)] for name in likely if cells), "")
        self.first.setText(tr("First: {split}", split=" ".join(first.split())))
        self.first.setVisible(bool(first))
        self.changed.emit()

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.state.setText("")
        self.show_mistake(formatting.sentence(mistake.message, mistake.field))
        if mistake.fix is not None:
            self.banner.offer_fix(mistake.fix)
        self.changed.emit()

    def _on_fix_taken(self, changes: dict[str, Any]) -> None:
        for key, value in changes.items():
            self.change(key, value)

    # Drops

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a file dropped anywhere on the card as data."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Read the drop as files, whatever the source was."""
        if split_kind(self.entry) != "files" and "files" in self._sources:
            self._on_source("files")
        self.train.dropEvent(event)
