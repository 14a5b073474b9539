"""Owns the foot of the list of models: all that is to be said of the marked one, and what can be done with it."""

from pathlib import Path

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app import theme
from app.core import formatting
from app.core.draft import model_rows
from app.core.i18n import tr, trn
from app.widgets.card import label
from app.widgets.icon_label import IconButton, IconLabel
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.model_choices import HubModel, ModelChoice

_LOOK = {"danger": ("error", "danger"), "warning": ("info", "warning")}


class MarkedModel(QWidget):
    """Emits what a person wants of the marked model."""

    download_asked = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model: ModelChoice | None = None
        self._page = ""
        self.name = ElidedLabel("", "section")
        self.icon = IconLabel("info", "muted", 16)
        self.sentences = label("", "muted", wrap=True, selectable=True)
        self.facts = ElidedLabel("", "faint")
        self.open = IconButton(tr("Open folder"), "folder", "quiet")
        self.page = IconButton(tr("Open its page"), "external", "quiet")
        self.download = IconButton(tr("Download"), "download")
        for button in (self.open, self.page, self.download):
            button.setAutoDefault(False)
        self.open.clicked.connect(self._on_open)
        self.page.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(self._page)))
        self.download.clicked.connect(self._on_download)
        self._place()
        self.show_model(None)

    def _place(self) -> None:
        said = QHBoxLayout()
        said.setSpacing(8)
        said.addWidget(self.icon)
        said.addWidget(self.sentences, 1)
        texts = QVBoxLayout()
        texts.setSpacing(3)
        texts.addWidget(self.name)
        texts.addLayout(said)
        texts.addWidget(self.facts)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addLayout(texts, 1)
        for button in (self.open, self.page, self.download):
            row.addWidget(button)

    def show_model(self, model: ModelChoice | None) -> None:
        """Say all about it; of a hub's model more is said by `show_hub_model`."""
        self._model, self._page = model, ""
        self.name.setText(model_rows.title(model) if model else "")
        self.name.setToolTip(model.name if model else "")
        said = model_rows.sentences(model) if model else []
        self.sentences.setText(" ".join(said) if said else formatting.sentence(model.use) if model else "")
        icon, ink = _LOOK.get(model_rows.kind(model) if model else "", ("check", "success"))
        self.icon.set_icon(icon, ink)
        self.icon.setVisible(bool(said))
        theme.role(self.sentences, "danger" if model and model.problem else "muted")
        self.facts.setText(model.name if model and model.title else " ")
        is_folder = model is not None and Path(model.name).is_dir()
        self.open.setVisible(is_folder)
        self.page.setVisible(False)
        self.download.setVisible(model is not None and not model.is_here)
        self.download.setEnabled(model is not None and not model.problem)
        self.download.setText(tr("Go on with the download") if model and model.started_mb else tr("Download"))

    def show_hub_model(self, found: HubModel) -> None:
        """What a download would bring."""
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
        here = tr(" · {started} of it are here", started=formatting.megabytes(started)) if started >= 1 else ""
        self.facts.setText(
            tr(
                "{files}{here} · {free_mb} free on the disk · {commit}",
                files=files,
                here=here,
                free_mb=formatting.megabytes(found.free_mb),
                commit=found.commit[:12],
            )
        )
        self.facts.setToolTip("\n".join(found.files))
        self.download.setText(tr("Download {left_mb}", left_mb=formatting.megabytes(found.left_mb)))

    def show_unasked(self, sentence: str) -> None:
        """The hub did not say more about it."""
        self.facts.setText(sentence)

    def set_downloading(self, goes_on: bool) -> None:
        """One download at a time."""
        self.download.setEnabled(not goes_on and self._model is not None and not self._model.problem)
        self.download.setToolTip(tr("Another download is going on; stop it first") if goes_on else "")

    def _on_open(self) -> None:
        if self._model is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(self._model.name))

    def _on_download(self) -> None:
        if self._model is not None:
            self.download_asked.emit(self._model.name)
