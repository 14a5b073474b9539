"""The dialog to choose a model: local models, models on the Hub, and the details of the selected one."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QKeyEvent
from PySide6.QtWidgets import QCheckBox, QDialog, QFileDialog, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app import theme
from app.core import formatting
from app.core.draft import model_rows
from app.core.draft.model_rows import ModelFilter
from app.core.i18n import inside, tr, trn
from app.pages.new_run.model.download import DownloadBar, ModelDownload
from app.pages.new_run.model.model_list import ModelList
from app.pages.new_run.model.model_sources import MakeFilter, ModelSources
from app.services.backend_client import BackendClient
from app.widgets.card import label, rule
from app.widgets.forms.chips import chips
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconButton, IconLabel
from app.widgets.progress import WaitingStack
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.catalog import TaskEntry
from backend.contract.rpc.models import HubModel, ModelChoice

_STYLES = {"danger": ("error", "danger"), "warning": ("info", "warning")}

PLACES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (tr("All local"), ("demo", "recent", "run", "cache")),
    (tr("Demo"), ("demo",)),
    (tr("Recent"), ("recent",)),
    (tr("My runs"), ("run",)),
    (tr("Cached"), ("cache",)),
    (tr("Hub"), ("hub",)),
)
HUB = len(PLACES) - 1
SEARCH_HUB, AGAIN = tr("Search the Hub"), tr("Retry")
_EMPTY = {
    "recent": (tr("No recent models"), tr("Models you start a run with appear here.")),
    "run": (
        tr("No models from runs yet"),
        tr("When a run finishes, you can start the next one from its model."),
    ),
    "cache": (tr("The Hub cache is empty"), tr("Models you download from the Hub appear here for later runs.")),
}


class ModelChooser(QDialog):
    """A non-modal dialog; a download continues when it is closed."""

    chosen = Signal(str)

    def __init__(
        self, client: BackendClient, download: ModelDownload, make_filter: MakeFilter, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._download = download
        self.sources = ModelSources(client, make_filter, self)
        self._recent: list[str] = []
        self._current = ""
        self.setWindowTitle(tr("Choose a model"))
        self.resize(980, 680)
        self.setMinimumSize(720, 480)
        self._build()
        self._place()
        self._connect()

    # Widgets

    def _build(self) -> None:
        self.title, self.subtitle = label(tr("Choose a model"), "title"), label("", "muted", wrap=True)
        self.words = QLineEdit(placeholderText=tr("Name, family, license…"), clearButtonEnabled=True)
        self.words.setAccessibleName(tr("Search models"))
        self.task = QuietComboBox()
        self.task.setMinimumContentsLength(18)
        self.task.setAccessibleName(tr("Only models for this task"))
        self.fitting = QCheckBox(tr("Only compatible models"))
        self.fitting.setToolTip(tr("Hide models that don't fit this run's task, engine or memory"))
        self.sides, self._chips = chips([name for name, _ in PLACES])
        self.list = ModelList()
        self.stack = WaitingStack(self.list)
        self.marked = SelectedModelActions()
        self.progress = DownloadBar(self._download)
        self.more = label("", "faint")
        self.browse = IconButton(tr("Browse folder…"), "folder")
        self.cancel = IconButton(tr("Cancel"), "close")
        self.choose = IconButton(tr("Choose"), "check", "primary")
        for button in (self.browse, self.cancel, self.stack.stop):
            button.setAutoDefault(False)
        self.choose.setDefault(True)

    def _place(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self.title)
        words.addWidget(self.subtitle)
        top = QHBoxLayout()
        top.addLayout(words, 1)
        top.addWidget(self.browse, 0, Qt.AlignmentFlag.AlignTop)
        search = QHBoxLayout()
        search.setSpacing(10)
        search.addWidget(self.words, 1)
        search.addWidget(self.task)
        search.addWidget(self.fitting)
        self._chips.addStretch(1)
        self._chips.addWidget(self.more)
        buttons = QHBoxLayout()
        buttons.setSpacing(10)
        buttons.addStretch(1)
        buttons.addWidget(self.cancel)
        buttons.addWidget(self.choose)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        for part in (top, search, self._chips):
            column.addLayout(part)
        column.addWidget(self.stack, 1)
        column.addWidget(rule())
        column.addWidget(self.marked)
        column.addWidget(self.progress)
        column.addLayout(buttons)

    def _connect(self) -> None:
        self.words.textChanged.connect(self._on_words)
        self.words.returnPressed.connect(self._on_return)
        self.task.activated.connect(self._show)
        self.fitting.toggled.connect(self._show)
        self.sides.idToggled.connect(lambda place, on: self._on_side() if on else None)
        self.list.marked.connect(self._on_marked)
        self.list.taken.connect(self._on_chosen)
        self.browse.clicked.connect(self._on_browse)
        self.cancel.clicked.connect(self.reject)
        self.choose.clicked.connect(lambda: self._on_chosen(self.list.current()))
        self.marked.download_requested.connect(self._download.start)
        self._download.changed.connect(self._on_download_changed)
        self.stack.stopped.connect(self._on_stopped)
        self.stack.again.connect(self._on_again)
        self.sources.changed.connect(self._show)
        self.sources.searching.connect(self._on_searching)
        self.sources.described.connect(self.marked.show_hub_model)
        self.sources.undescribed.connect(self.marked.show_unasked)

    def set_tasks(self, tasks: Sequence[TaskEntry]) -> None:
        """Set the tasks that the list can be filtered by."""
        self.task.clear()
        self.task.addItem(tr("For any task"), "")
        for task in tasks:
            self.task.addItem(tr("For {title}", title=inside(task.title)), task.name)

    # Opening

    def open_on(self, current: str, recent: Sequence[str], subtitle: str, *, fitting: bool = False) -> None:
        """Show it with the chosen model selected."""
        self._current, self._recent = current, list(recent)
        self.subtitle.setText(subtitle)
        self.fitting.setChecked(fitting)
        self.sides.button(0).setChecked(True)
        self.words.clear()
        self.refresh()
        self.show()
        self.raise_()
        self.activateWindow()
        self.words.setFocus()

    def refresh(self) -> None:
        """Query the local models again, for example after a download or for another task."""
        if not self.sources.local:
            self.stack.show_waiting(tr("Loading models"))
        self.sources.refresh_local(self._recent)

    def show_hub(self) -> None:
        """Search the hub."""
        self.sides.button(HUB).setChecked(True)

    def _is_on_hub(self) -> bool:
        return self.sides.checkedId() == HUB

    # What is shown

    def _show(self) -> None:
        groups = PLACES[max(0, self.sides.checkedId())][1]
        if self._is_on_hub() and self.sources.is_searching:
            return
        models = [*self.sources.local, *self.sources.on_hub]
        sought = ModelFilter(self.words.text(), groups, self.task.currentData() or "", self.fitting.isChecked())
        self.list.set_lines(model_rows.lines(models, sought), self._current)
        if self.list.models:
            self.stack.show_content()
        else:
            self.stack.show_sentence(*self._nothing(groups))
        self._show_counts()

    def _show_counts(self) -> None:
        for place, (name, side) in enumerate(PLACES[:HUB]):
            count = sum(one.group in side for one in self.sources.local)
            self.sides.button(place).setText(f"{name} · {count}" if count else name)
        is_cut = self._is_on_hub() and self.sources.is_cut
        count = len(self.sources.on_hub)
        self.more.setText(
            tr("The {count} most downloaded. Refine your search to find others", count=count) if is_cut else ""
        )

    def _nothing(self, groups: tuple[str, ...]) -> tuple[str, str, str]:
        if self._is_on_hub():
            if self.sources.hub_failure:
                return tr("Can't reach the Hub"), self.sources.hub_failure, AGAIN
            return (
                tr("No results"),
                tr("Try fewer or different words, or another task. The Hub searches by name only."),
                "",
            )
        if self.sources.local_failure:
            return tr("Couldn't list the models"), self.sources.local_failure, AGAIN
        if self.words.text().strip() or self.fitting.isChecked() or self.task.currentData():
            return tr("No results"), tr("Try searching the Hub."), SEARCH_HUB
        return (*_EMPTY.get(groups[0], (tr("Nothing here"), "")), SEARCH_HUB)

    def _on_marked(self, model: ModelChoice | None) -> None:
        self.marked.show_model(model)
        self._on_download_changed()
        may = model is not None and not model.problem
        self.choose.setEnabled(may)
        self.choose.setToolTip("" if may or model is None else formatting.sentence(model.problem))
        self.sources.describe(model)

    def _on_download_changed(self) -> None:
        self.marked.set_downloading(self._download.goes_on)

    def _on_searching(self, words: str) -> None:
        self.list.set_lines([])  # nothing of the last search can be chosen meanwhile
        self.stack.show_waiting(
            tr("Searching the Hub for “{words}”", words=words) if words else tr("Loading popular models from the Hub")
        )

    # What people do

    def _on_words(self, words: str) -> None:
        if self._is_on_hub():
            self.sources.search(words, soon=True)
        else:
            self._show()

    def _on_return(self) -> None:
        if not self._is_on_hub() and not self.list.models:
            self.show_hub()
        elif self._is_on_hub() and not self.list.models:
            self.sources.search(self.words.text())
        else:
            self.list.setFocus()

    def _on_side(self) -> None:
        if self._is_on_hub():
            self.sources.search(self.words.text())
        else:
            self.sources.stop_search()
            self._show()

    def _on_stopped(self) -> None:
        self.sources.stop_search(tr("Search stopped."))
        self._show()

    def _on_again(self) -> None:
        if self._is_on_hub():
            self.sources.search(self.words.text())
        elif self.sources.local_failure:
            self.refresh()
        else:
            self.show_hub()

    def _on_chosen(self, model: ModelChoice | None) -> None:
        if model is not None and not model.problem:
            self.chosen.emit(model.name)
            self.accept()

    def _on_browse(self) -> None:
        path = QFileDialog.getExistingDirectory(self, tr("Model folder"), self._current)
        if path:
            self.chosen.emit(path)
            self.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Down moves from the search field to the list; Enter in the search field starts the search."""
        if event.key() == Qt.Key.Key_Down and self.words.hasFocus():
            self.list.setFocus()
            return
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.words.hasFocus():
            return
        super().keyPressEvent(event)

    def done(self, result: int) -> None:
        """Stop queries when the dialog closes."""
        self.sources.close()
        super().done(result)


class SelectedModelActions(QWidget):
    """Emits what the user wants to do with the selected model."""

    download_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model: ModelChoice | None = None
        self._page = ""
        self.name = ElidedLabel("", "section")
        self.icon = IconLabel("info", "muted", 16)
        self.sentences = label("", "muted", wrap=True, selectable=True)
        self.facts = ElidedLabel("", "faint")
        self.open = IconButton(tr("Open folder"), "folder", "quiet")
        self.page = IconButton(tr("Open model page"), "external", "quiet")
        self.download = IconButton(tr("Download"), "download")
        for button in (self.open, self.page, self.download):
            button.setAutoDefault(False)
        self.open.clicked.connect(self._on_open)
        self.page.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(self._page)))
        self.download.clicked.connect(self._on_download)
        self._place()
        self.show_model(None)

    def _place(self) -> None:
        status_row = QHBoxLayout()
        status_row.setSpacing(8)
        status_row.addWidget(self.icon)
        status_row.addWidget(self.sentences, 1)
        texts = QVBoxLayout()
        texts.setSpacing(3)
        texts.addWidget(self.name)
        texts.addLayout(status_row)
        texts.addWidget(self.facts)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addLayout(texts, 1)
        for button in (self.open, self.page, self.download):
            row.addWidget(button)

    def show_model(self, model: ModelChoice | None) -> None:
        """Show all details; `show_hub_model` adds more for a hub model."""
        self._model, self._page = model, ""
        self.name.setText(model_rows.title(model) if model else "")
        self.name.setToolTip(model.name if model else "")
        sentences = model_rows.sentences(model) if model else []
        self.sentences.setText(" ".join(sentences) if sentences else formatting.sentence(model.use) if model else "")
        icon, ink = _STYLES.get(model_rows.kind(model) if model else "", ("check", "success"))
        self.icon.set_icon(icon, ink)
        self.icon.setVisible(bool(sentences))
        theme.role(self.sentences, "danger" if model and model.problem else "muted")
        self.facts.setText(model.name if model and model.title else " ")
        is_folder = model is not None and Path(model.name).is_dir()
        self.open.setVisible(is_folder)
        self.page.setVisible(False)
        self.download.setVisible(model is not None and not model.is_here)
        self.download.setEnabled(model is not None and not model.problem)
        self.download.setText(tr("Resume download") if model and model.started_mb else tr("Download"))

    def show_hub_model(self, found: HubModel) -> None:
        """Show what would be downloaded."""
        if self._model is None or found.choice.name != self._model.name:
            return
        self._page = found.page
        self.page.setVisible(bool(found.page))
        files = tr(
            "{total_mb} in {count}",
            total_mb=formatting.megabytes(found.total_mb),
            count=trn("{count} file", "{count} files", len(found.files)),
        )
        started = found.total_mb - found.left_mb
        on_disk = tr(" · {started} already downloaded", started=formatting.megabytes(started)) if started >= 1 else ""
        self.facts.setText(
            tr(
                "{files}{downloaded} · {free_mb} free disk space · {commit}",
                files=files,
                downloaded=on_disk,
                free_mb=formatting.megabytes(found.free_mb),
                commit=found.commit[:12],
            )
        )
        self.facts.setToolTip("\n".join(found.files))
        self.download.setText(tr("Download {left_mb}", left_mb=formatting.megabytes(found.left_mb)))

    def show_unasked(self, sentence: str) -> None:
        """Show that the hub gave no more details."""
        self.facts.setText(sentence)

    def set_downloading(self, goes_on: bool) -> None:
        """Allow only one download at a time."""
        self.download.setEnabled(not goes_on and self._model is not None and not self._model.problem)
        self.download.setToolTip(tr("Another download is in progress. Stop it first") if goes_on else "")

    def _on_open(self) -> None:
        if self._model is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(self._model.name))

    def _on_download(self) -> None:
        if self._model is not None:
            self.download_requested.emit(self._model.name)
