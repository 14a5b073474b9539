"""Exports a run's model: which form and number format, to which new folder."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QDialog, QFileDialog, QPushButton, QRadioButton, QWidget

from app import theme
from app.core import formatting
from app.core.i18n import tr
from app.core.runs.run_spec import trains_adapter
from app.services.backend_client import BackendClient, PendingQuery
from app.widgets.boxes import hbox, holder, keep_room, vbox
from app.widgets.card import label
from app.widgets.forms.path_field import PathLine
from app.widgets.progress import ThinProgressBar
from backend.contract.rpc.protocol import ErrorReply, ExportedFile
from backend.contract.run.folder import RunFolder


class ModelExportDialog(QDialog):
    """Emits `export_requested` with the query's arguments; stays open until the model is written or the export was stopped."""

    export_requested = Signal(dict)

    def __init__(self, run: RunFolder, parent: QWidget) -> None:
        super().__init__(parent)
        self._run = run
        self.setWindowTitle(tr("Export model"))
        self.setMinimumWidth(480)
        adapter = trains_adapter(run)
        self.merged = QRadioButton(tr("Complete model, with the adapter merged into it (float32)"))
        self.float32 = QRadioButton(tr("The adapter alone (small; needs its base model)") if adapter else tr("float32"))
        self.float16 = QRadioButton(tr("float16 (half the size)"))
        self.merged.setVisible(adapter)
        self.float16.setVisible(not adapter)
        (self.merged if adapter else self.float32).setChecked(True)
        self.folder = PathLine(str(Path.home() / f"{run.name}-model"))
        self.folder.setAccessibleName(tr("New folder"))
        self.browse = QPushButton(tr("Browse…"))
        self.browse.clicked.connect(self._on_browse)
        self.mistake = label("", "mistake", wrap=True)
        self.bar = ThinProgressBar()
        keep_room(self.mistake, self.bar)
        self.cancel, self.save = QPushButton(tr("Cancel")), QPushButton(tr("Export"))
        theme.role(self.save, "primary")
        self.save.setDefault(True)
        self.save.clicked.connect(self._on_save)
        self.cancel.clicked.connect(self.reject)
        self._choices = holder(vbox(self.merged, self.float32, self.float16, spacing=6))
        vbox(
            label(tr("Contents") if adapter else tr("Number format"), "section"),
            self._choices,
            label(tr("New folder"), "section"),
            hbox((self.folder, 1), self.browse, spacing=8),
            label(tr("In Hugging Face format with the tokenizer, so other programs can load the folder as it is."), "faint", wrap=True),
            self.mistake,
            self.bar,
            hbox(1, self.cancel, self.save, spacing=8),
            spacing=8, margins=(20, 18, 20, 16), parent=self,
        )  # fmt: skip
        self.show_writing(False)

    def _on_browse(self) -> None:
        parent = QFileDialog.getExistingDirectory(self, tr("Choose where to put the new folder"), str(Path.home()))
        if parent:
            self.folder.setText(str(Path(parent) / f"{self._run.name}-model"))

    def _on_save(self) -> None:
        if not self.folder.text().strip():
            self.show_mistake(tr("Enter a name for the new folder."))
            return
        self.show_writing(True)
        self.export_requested.emit(
            {
                "run": str(self._run.path),
                "folder": self.folder.text().strip(),
                "merged": self.merged.isChecked(),
                "dtype": "float16" if self.float16.isChecked() else "float32",
            }
        )

    def show_writing(self, writing: bool) -> None:
        """Show whether the model is being written; then it can only be stopped."""
        for one in (self._choices, self.folder, self.browse, self.save):
            one.setEnabled(not writing)
        self.mistake.hide()
        self.bar.setVisible(writing)
        self.bar.set_fraction(None if writing else 0.0)
        self.cancel.setText(tr("Stop") if writing else tr("Cancel"))

    def show_mistake(self, sentence: str) -> None:
        """Show why it cannot be exported so."""
        self.show_writing(False)
        self.mistake.setText(sentence)
        self.mistake.show()


class ModelExport(QObject):
    """Asks how, then lets the backend write; one export at a time."""

    wrote = Signal(str, str)
    """What was written, in words, and the folder."""

    def __init__(self, client: BackendClient, page: QWidget) -> None:
        super().__init__(page)
        self._client, self._page = client, page
        self.dialog: ModelExportDialog | None = None
        self._query: PendingQuery | None = None

    def ask(self, run: RunFolder) -> None:
        """Ask which form of the run's model to write, and where."""
        dialog = self.dialog = ModelExportDialog(run, self._page)
        dialog.export_requested.connect(self._export)
        dialog.finished.connect(self._on_closed)
        dialog.open()

    def _export(self, arguments: dict[str, object]) -> None:
        self._query = self._client.ask("export_model", arguments, self._on_written, self._on_refused)

    def _on_written(self, answer: ExportedFile) -> None:
        self._query = None
        if self.dialog is not None:
            self.dialog.accept()
        self.wrote.emit(tr("Exported the model to {path}.", path=answer.path), str(Path(answer.path) / "config.json"))

    def _on_refused(self, mistake: ErrorReply) -> None:
        self._query = None
        if self.dialog is not None:
            self.dialog.show_mistake(formatting.sentence(mistake.message.removeprefix("--model: ")))

    def _on_closed(self) -> None:
        if self._query is not None:
            self._query.cancel()
            self._query = None
        if self.dialog is not None:
            self.dialog.deleteLater()
            self.dialog = None
