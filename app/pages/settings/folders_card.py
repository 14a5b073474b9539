"""The folders of runs and caches: where they are, how large they are, and freeing space."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFileDialog, QGridLayout, QHBoxLayout, QLabel, QLineEdit

from app.core import formatting
from app.core.backend_words import translate_word
from app.core.i18n import inside, tr, trn
from app.services.backend_client import PendingQuery
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.forms.path_field import PathLine
from app.widgets.icon_label import IconButton, IconToolButton
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.rpc.storage import ClearedCache, StorageUse

SMALLEST = 500_000
"""Bytes of a part of the cache that is worth a word."""
FEATURES = ("features", "lengths", "report", "pages")
"""What the feature cache is; the rest of the cache folder is taken away only where a person says so."""
TABLES = "tables"


class FoldersCard(Card):
    """Queries the helper for sizes; never reads a folder itself."""

    message = Signal(str, str)
    folder_chosen = Signal(str, str)
    """Preference and folder; an empty one is the usual."""

    def __init__(self, context: AppContext) -> None:
        super().__init__(tr("Folders"))
        self._context = context
        self._storage: StorageUse | None = None
        self._ticket: PendingQuery | None = None
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(1, 1)
        self.runs_folder, self.runs_size = self._folder(tr("Runs"), "runs_folder")
        self.cache_folder, self.cache_size = self._folder(tr("Caches"), "cache_folder")
        self.hub_folder, self.hub_size = self._line(tr("Hub"), PathLine("", readOnly=True))
        self.hub_folder.setAccessibleName(tr("Hub download folder"))
        self.body.addLayout(self._grid)
        self.add(
            label(tr("New runs are saved in the runs folder. Existing runs stay where they are."), "faint", wrap=True)
        )
        self.banner = Banner()
        self.tables = QCheckBox(tr("Also clear cached rows"))
        self.add(self.banner)
        self._add_clearing()
        self.show_folders()

    def _add_clearing(self) -> None:
        self.clear_button = IconButton(tr("Clear cache"), "trash")
        self.clear_button.setEnabled(False)
        self.clear_button.clicked.connect(self._ask_to_clear)
        self.keep_button = IconButton(tr("Cancel"), "close")
        self.sure_button = IconButton(tr("Clear"), "trash", "danger")
        self.keep_button.clicked.connect(self._leave_question)
        self.sure_button.clicked.connect(self._clear)
        self.stop_button = IconButton(tr("Stop"), "stop")
        self.stop_button.clicked.connect(self._stop)
        row = QHBoxLayout()
        row.setSpacing(8)
        for button in (self.clear_button, self.sure_button, self.keep_button, self.stop_button):
            row.addWidget(button)
        row.addStretch(1)
        self.add(self.tables)
        self.body.addLayout(row)
        self._leave_question()

    def _folder(self, title: str, name: str) -> tuple[QLineEdit, QLabel]:
        line, size = self._line(title, PathLine("", readOnly=True))
        line.setAccessibleName(tr("{title} folder", title=title))
        browse, reset = (
            IconToolButton("folder", tr("Browse for the {title} folder", title=inside(title))),
            IconToolButton("refresh", tr("Reset the {title} folder", title=title)),
        )
        browse.clicked.connect(lambda: self._choose(name, line))
        reset.clicked.connect(lambda: self.folder_chosen.emit(name, ""))
        row = self._grid.rowCount() - 2
        self._grid.addWidget(browse, row, 2)
        self._grid.addWidget(reset, row, 3)
        return line, size

    def _line(self, title: str, line: PathLine) -> tuple[PathLine, QLabel]:
        size = label("", "faint")
        row = self._grid.rowCount()
        self._grid.addWidget(label(title, "muted"), row, 0)
        self._grid.addWidget(line, row, 1)
        self._grid.addWidget(size, row + 1, 1, 1, 3)
        return line, size

    def _choose(self, name: str, line: QLineEdit) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Choose a folder"), line.text())
        if folder:
            self.folder_chosen.emit(name, folder)

    def show_folders(self) -> None:
        """Show the current folders of runs and caches."""
        preferences = self._context.preferences
        for line, path in (
            (self.runs_folder, preferences.runs_path()),
            (self.cache_folder, preferences.cache_path()),
        ):
            line.setText(str(path))
            line.setToolTip(str(path))
            line.setCursorPosition(0)

    # Sizes

    def ask_sizes(self) -> None:
        """Query the sizes, which takes the helper a moment."""
        if self._ticket is not None and self._ticket.open:
            self._ticket.cancel()
        for size in (self.runs_size, self.cache_size, self.hub_size):
            size.setText(tr("Calculating…"))
        self._ticket = self._context.client.ask("storage", {}, self._on_storage, self._on_unmeasured)

    def _on_storage(self, storage: StorageUse) -> None:
        self._storage = storage
        runs = trn("{count} run", "{count} runs", storage.runs)
        self.runs_size.setText(tr("{size} in {runs}", size=_size(storage.runs_size), runs=runs))
        parts = ", ".join(
            f"{inside(translate_word(part.title))} {_size(part.size)}"
            for part in storage.parts
            if part.size >= SMALLEST
        )
        free = tr("{size} free on this disk", size=_size(storage.free))
        self.cache_size.setText(
            f"{_size(storage.cache_size)}: {parts}; {free}" if parts else f"{_size(storage.cache_size)}; {free}"
        )
        self.cache_size.setWordWrap(True)
        self.hub_folder.setText(storage.hub_folder)
        self.hub_folder.setToolTip(storage.hub_folder)
        self.hub_size.setText(
            tr("{size} of models and data from the Hub, shared with other programs", size=_size(storage.hub_size))
        )
        self.hub_size.setWordWrap(True)
        self._show_clearable()

    def _on_unmeasured(self, mistake: ErrorReply) -> None:
        for size in (self.runs_size, self.cache_size, self.hub_size):
            size.setText("")
        self.banner.show_message(
            "warning", tr("Couldn't calculate the folder sizes: {message}", message=mistake.message)
        )

    def _sizes(self, names: tuple[str, ...]) -> int:
        return sum(part.size for part in self._storage.parts if part.name in names) if self._storage else 0

    def _show_clearable(self) -> None:
        clearable = self._sizes((*FEATURES, TABLES))
        self.clear_button.setEnabled(clearable > 0)
        self.clear_button.setToolTip(
            tr("Clear tokenized features, measured lengths and opened predictions. They are recreated when needed")
            if clearable
            else tr("The cache is empty")
        )

    # Making room

    def _ask_to_clear(self) -> None:
        features, tables = _size(self._sizes(FEATURES)), _size(self._sizes((TABLES,)))
        self.banner.show_message(
            "warning",
            tr(
                "Clear {features} of tokenized features, measured lengths and opened predictions? "
                "They are recreated when needed. Anything used by an active run is kept.",
                features=features,
            ),
        )
        self.tables.setText(tr("Also clear {tables} of cached rows (Hub data will be downloaded again)", tables=tables))
        self.tables.setChecked(not self._sizes(FEATURES))
        self._show_buttons(asking=True)
        self.tables.setVisible(self._sizes((TABLES,)) > 0)
        self.keep_button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _leave_question(self) -> None:
        self.banner.clear()
        self._show_buttons()

    def _show_buttons(self, asking: bool = False, working: bool = False) -> None:
        self.clear_button.setVisible(not asking and not working)
        for button in (self.sure_button, self.keep_button):
            button.setVisible(asking)
        self.tables.setVisible(asking)
        self.stop_button.setVisible(working)

    def _clear(self) -> None:
        parts = [*FEATURES, *([TABLES] if self.tables.isChecked() else [])]
        self.banner.show_message("info", tr("Clearing…"))
        self._show_buttons(working=True)
        self._ticket = self._context.client.ask("clear_cache", {"parts": parts}, self._on_cleared, self._on_not_cleared)

    def _stop(self) -> None:
        if self._ticket is not None:
            self._ticket.cancel()
        self._leave_question()
        self.ask_sizes()

    def _on_cleared(self, cleared: ClearedCache) -> None:
        self._leave_question()
        self.message.emit("success", tr("Cleared {size}.", size=_size(cleared.freed)))
        if cleared.failed:
            self.banner.show_message("error", cleared.failed[0])
        elif cleared.kept_for:
            runs = ", ".join(cleared.kept_for)
            self.banner.show_message(
                "info",
                tr("Kept {size} that active runs may be reading: {runs}.", size=_size(cleared.kept), runs=runs),
            )
        self.ask_sizes()

    def _on_not_cleared(self, mistake: ErrorReply) -> None:
        self._leave_question()
        self.banner.show_message("error", mistake.message)


def _size(count: int) -> str:
    """A size in words, down to `0 MB`."""
    return formatting.megabytes(count / 1e6)
