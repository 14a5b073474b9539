"""The Model section: the model's name, why it cannot be used, and what its folder contains."""

from pathlib import Path, PurePath

from PySide6.QtCore import QEvent, QObject, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QWidget

from app import theme
from app.core import formatting
from app.core.backend_words import translate_word
from app.core.draft.data_source import MODEL_SUFFIXES
from app.core.draft.draft import Draft
from app.core.draft.model_consent import CONVERT, TRUST
from app.core.i18n import thin, tr
from app.pages.new_run.model.download import DownloadBar, ModelDownload
from app.pages.new_run.model.obstacle import ModelObstacle, obstacle
from app.pages.new_run.section import Panel, Section
from app.pages.new_run.section_state import section_of
from app.widgets.banner import Banner
from app.widgets.boxes import fill, hbox, holder, stack, vbox
from app.widgets.card import CAPTION_WIDTH, FormGrid, label
from app.widgets.empty_state import EmptyState
from app.widgets.forms.path_field import PathLine, dropped_paths
from app.widgets.icon_label import IconButton
from app.widgets.pill import Pill
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.resources import demo_model
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.protocol import Progress

FACTS = (
    tr("Architecture"),
    tr("Parameters"),
    tr("On disk"),
    tr("License"),
    tr("Tokenizer"),
    tr("Max input"),
    tr("Source"),
)
_SAFETY = {
    "safetensors": (tr("Safetensors"), "success"),
    "bin": (tr("Old format"), "warning"),
    "flax": (tr("Flax weights"), "warning"),
    "none": (tr("No weights"), "neutral"),
    "lfs-pointer": (tr("Weights missing"), "danger"),
    "broken": (tr("Damaged"), "danger"),
}
_FOUND = {
    "folder": tr("local folder"),
    "cache": tr("Hub cache"),
    "hub": tr("Hub"),
    "converted": tr("converted copy"),
}

HINT = tr("A model folder, or a Hub ID such as google/mt5-small. You can also drop a folder here")


class ModelSection(Section):
    """Beside it: what the model's folder contains, how it is downloaded, and what prevents its use."""

    changed = Signal(str, object)
    conversion_agreed = Signal()
    trust_agreed = Signal()
    list_requested = Signal(bool)
    """The list of models is wanted; whether only with what fits."""
    download_requested = Signal()
    tokenizer_requested = Signal(str)
    """Somebody wants to look at the tokenizer of this model."""

    def __init__(self, panel: Panel, parent: QWidget | None = None) -> None:
        super().__init__(tr("Model"), panel, parent)
        self._chosen, self._limit = "", 0
        self._draft: Draft | None = None
        self._download: ModelDownload | None = None
        self._model: ModelDescription | None = None
        self._is_trusted = False
        self.pill = Pill()
        self.panel.corner.addWidget(self.pill)
        self._build_choice()
        self.banner = Banner()
        self._build_fixes()
        self.facts = ModelFacts()
        self.notes = label("", "muted", wrap=True)
        self._looks = self._build_looks()
        described = vbox(self.facts, self.notes, self._looks, 1, spacing=12)
        self.empty = EmptyState(
            "search",
            tr("No model yet"),
            tr("Choose a model to see its size, its license and its limits."),
            tr("Browse models"),
        )
        self.empty.action_clicked.connect(lambda: self.list_requested.emit(False))
        self.pages = stack(self.empty, EmptyState("search", tr("Inspecting the model…")), holder(described))
        fill(self.panel.body, (self.banner, self._fix_row, (self.pages, 1)))
        self.show_nothing()
        self.setAcceptDrops(True)
        self.panel.setAcceptDrops(True)
        self.panel.installEventFilter(self)

    # Widgets

    def _build_choice(self) -> None:
        self.name = PathLine(placeholderText=tr("Folder or Hub ID"))
        self.name.setToolTip(HINT)
        self.name.setAccessibleName(tr("Model folder or Hub ID"))
        self.name.setMinimumWidth(60)
        self.name.setAcceptDrops(False)  # what is dropped on the section is the section's
        self.name.editingFinished.connect(self._on_edited)
        self.list = QPushButton(tr("Browse…"))
        self.list.setToolTip(tr("Demo models, models from your runs, models on this computer, and the Hub"))
        self.list.clicked.connect(lambda: self.list_requested.emit(False))
        self.embedded = QPushButton()
        theme.role(self.embedded, "chip")
        self.embedded.clicked.connect(lambda: self.choose(str(self._embedded.folder)))
        self.header.offer(*self._build_quick_choice())
        rows = FormGrid()
        rows.add(tr("Model"), holder(hbox((self.name, 1), self.list, spacing=8)), self.name)
        start = hbox(self.embedded, label(tr("included, no download"), "faint"), 1, spacing=8)
        rows.add(tr("Start from"), holder(start), self.embedded)
        self._embed("")
        self.body.addLayout(rows)

    def _build_quick_choice(self) -> tuple[QPushButton, QPushButton]:
        """The embedded model and the list, for who has not opened the section."""
        self.quick, self.quick_list = QPushButton(), QPushButton(tr("Browse…"))
        for button, role in ((self.quick, "chip"), (self.quick_list, "small")):
            theme.role(button, role)
        self.quick.clicked.connect(self.embedded.click)
        self.quick_list.clicked.connect(self.list.click)
        self.quick_list.setToolTip(self.list.toolTip())
        self.quick_list.setAccessibleName(tr("Browse models"))
        return self.quick, self.quick_list

    def _build_fixes(self) -> None:
        self.convert = IconButton(CONVERT, "refresh", "primary")
        self.trust = IconButton(TRUST, "warning", "danger")
        self.another = IconButton(tr("Show compatible models"), "search")
        self.shorten = IconButton(tr("Set to the limit"), "check", "primary")
        self.fetch = IconButton(tr("Download now"), "download")
        self.convert.clicked.connect(self.conversion_agreed)
        self.trust.clicked.connect(self.trust_agreed)
        self.another.clicked.connect(lambda: self.list_requested.emit(True))
        self.shorten.clicked.connect(lambda: self.changed.emit("task.max_length", self._limit))
        self.fetch.clicked.connect(self.download_requested)
        self._fixes = {
            "convert": self.convert,
            "trust": self.trust,
            "another": self.another,
            "shorten": self.shorten,
            "download": self.fetch,
        }
        self.read = IconButton(tr("Open folder"), "folder", "quiet", clicked=self._on_open)
        # Below the sentence: beside it, little room would be left for either.
        self._fix_row = holder(hbox(1, self.read, *self._fixes.values(), spacing=8))

    def _build_looks(self) -> QWidget:
        """Buttons for further details about the chosen model."""
        self.open = IconButton(tr("Open folder"), "folder", "quiet")
        self.tokenizer = IconButton(tr("View tokenizer"), "text", "quiet")
        self.tokenizer.setToolTip(tr("Open its tokenizer on the Tokenizer page"))
        self.open.clicked.connect(self._on_open)
        self.tokenizer.clicked.connect(lambda: self.tokenizer_requested.emit(self._model.folder if self._model else ""))
        return holder(hbox(self.open, self.tokenizer, 1, spacing=8))

    def use_download(self, download: ModelDownload) -> None:
        """Show this download once it is running."""
        self.progress = DownloadBar(download)
        self.panel.body.insertWidget(0, self.progress)
        self._download = download
        download.changed.connect(self.look_again)

    # The choice

    def _embed(self, task: str) -> None:
        """Choose the embedded model for the task with one click."""
        self._embedded = demo_model(task)
        for button in (self.embedded, self.quick):
            button.setText(self._embedded.name)
            button.setAccessibleName(tr("Start from {name}", name=self._embedded.name))
            button.setToolTip(tr("A demo model: {use}", use=self._embedded.use))

    def show_draft(self, draft: Draft) -> None:
        """Show the draft's values."""
        self._draft = draft
        self._embed(str(draft.get("task.type") or ""))
        chosen = str(draft.get("model.name_or_path") or "")
        if chosen != self._chosen:
            self.show_nothing()
        self._show_name(chosen)
        self.look_again()

    def _show_name(self, name: str) -> None:
        self._chosen = name
        if self.name.text() != name:
            self.name.setText(name)
        self.name.setToolTip(name or HINT)

    def choose(self, name: str) -> None:
        """Choose it as if the user had."""
        if name != self._chosen:
            # What is known, and what can be agreed to, belongs to the model before.
            self.show_nothing()
            self._show_name(name)
            self.changed.emit("model.name_or_path", name)

    def _on_edited(self) -> None:
        self.choose(self.name.text().strip())

    def mark(self, field: str, sentence: str) -> bool:
        """Show an error of this section; returns whether it belongs here."""
        if section_of(field) != "model":
            return False
        self._say(ModelObstacle("error", sentence))
        return True

    # What it is

    def show_nothing(self) -> None:
        """Show that nothing is known about the model, or none is chosen."""
        self._model = None
        self.pill.hide()
        self._show_bar(None)
        self.panel.title.setText(tr("Model"))
        self.pages.setCurrentIndex(0)
        self._say(None)

    def _show_bar(self, progress: Progress | None) -> None:
        self.panel.bar.setVisible(progress is not None)
        if progress is not None:
            self.panel.bar.set_fraction(progress.done / progress.total if progress.total else None)

    def show_reading(self, progress: Progress | None = None) -> None:
        """Show that the model is being read, downloaded or converted, with no consent to give meanwhile."""
        self._say(None)
        self.panel.title.setText(_reading_words(progress))
        self.pages.setCurrentIndex(1)
        self.pill.hide()
        self._show_bar(progress)

    def show_problem(self, sentence: str) -> None:
        """Show why the model cannot be used."""
        self.show_nothing()
        self._say(ModelObstacle("error", sentence, "another"))

    def show_description(self, model: ModelDescription, trusted: bool) -> None:
        """Show what its folder contains, and any obstacles."""
        self._model, self._is_trusted = model, trusted
        self._show_bar(None)
        self.panel.title.setText(PurePath(model.name.rstrip("/\\")).name or model.name)
        self.pages.setCurrentIndex(2)
        self.facts.show_model(model)
        self.notes.setText("\n\n".join(model.notes))
        self.notes.setVisible(bool(model.notes))
        self.pill.set(*safety(model))
        self.pill.setVisible(bool(self.pill.text()))
        self._looks.setVisible(bool(model.folder))
        self.look_again()

    def look_again(self) -> None:
        """Check again: another setting may have caused or removed an obstacle."""
        if self._model is None:
            return
        found = obstacle(self._model, self._is_trusted, self._draft)
        if found is not None and found.fix == "download" and self._is_downloading():
            found = None
        self._say(found)

    def _is_downloading(self) -> bool:
        download = self._download
        return download is not None and download.goes_on and download.name == self._chosen

    def _say(self, found: ModelObstacle | None) -> None:
        for fix, button in self._fixes.items():
            button.setVisible(found is not None and found.fix == fix)
        self._fix_row.setVisible(found is not None and bool(found.fix))
        asks_to_read = found is not None and found.fix == "trust"
        self.read.setVisible(asks_to_read)
        self.open.setVisible(not asks_to_read)
        if found is None or not found.sentence:
            self.banner.clear()
            return
        self._limit = found.limit
        self.shorten.setText(tr("Set to {limit}", limit=found.limit))
        self.banner.show_message(found.kind, found.sentence)

    # What people do

    def _on_open(self) -> None:
        if self._model is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(self._model.folder))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """What is dropped on the panel is dropped on the section."""
        if isinstance(event, QDragEnterEvent):
            self.dragEnterEvent(event)
            return True
        if event.type() == QEvent.Type.Drop and isinstance(event, QDropEvent):
            self.dropEvent(event)
            return True
        return super().eventFilter(watched, event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a folder dropped here as a model."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Use the drop; a file of a model means its folder."""
        paths = dropped_paths(event)
        if paths:
            event.accept()
            path = Path(paths[0])
            self.choose(str(path.parent if path.suffix in MODEL_SUFFIXES and path.is_file() else path))


def _reading_words(progress: Progress | None) -> str:
    if progress is not None and progress.unit == "bytes" and progress.total:
        return tr(
            "{done} of {total}",
            done=formatting.megabytes(progress.done / 1000000.0),
            total=formatting.megabytes(progress.total / 1000000.0),
        )
    return translate_word(progress.text) if progress is not None and progress.text else tr("Inspecting…")


class ModelFacts(QWidget):
    """What is known of a model, name and value."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.values: dict[str, QLabel] = {name: ElidedLabel("–") for name in FACTS}
        self.values[tr("Tokenizer")] = label("–", wrap=True)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(5)
        for number, (name, value) in enumerate(self.values.items()):
            grid.addWidget(label(name, "muted"), number, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(value, number, 1)
        grid.setColumnMinimumWidth(0, CAPTION_WIDTH)
        grid.setColumnStretch(1, 1)

    def show_model(self, model: ModelDescription) -> None:
        """Show what its folder, or the hub, says."""
        for name, value in _texts(model).items():
            self.values[name].setText(value)
        theme.role(self.values[tr("Tokenizer")], "" if model.tokenizer_fits else "warning")


def safety(model: ModelDescription) -> tuple[str, str]:
    """The text of a pill, and its kind."""
    text, kind = _SAFETY.get(model.weights_format, (model.weights_format, "neutral"))
    if model.needs_remote_code:
        return tr("Custom code"), "warning" if model.code_agreed else "danger"
    return (text, kind) if model.safe else (tr("Unsafe"), "danger")


def _texts(model: ModelDescription) -> dict[str, str]:
    family = f" · {model.model_type}" if model.architecture and model.model_type else ""
    commit = tr(" · commit {commit}", commit=model.commit[:12]) if model.commit else ""
    numbers = f" · {formatting.dtype(model.dtype)}" if model.dtype else ""
    return {
        tr("Architecture"): f"{model.architecture or model.model_type or 'unknown'}{family}",
        tr("Parameters"): formatting.short_count(model.parameters) if model.parameters else "unknown",
        tr("On disk"): f"{formatting.megabytes(model.size_mb)}{numbers}",
        tr("License"): model.licence or tr("not specified"),
        tr("Tokenizer"): thin(model.tokenizer) or "none",
        tr("Max input"): tr("{max_length} tokens", max_length=formatting.group_digits(model.max_length))
        if model.max_length
        else tr("not specified"),
        tr("Source"): f"{_FOUND.get(model.found, model.found)}{commit}" if model.found else "–",
    }
