"""Exports a run's model: which form and number format, to which new folder."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import (
    QBoxLayout,
    QCheckBox,
    QDialog,
    QFileDialog,
    QGridLayout,
    QPushButton,
    QRadioButton,
    QSizePolicy,
    QWidget,
)

from app import theme
from app.core import formatting
from app.core.i18n import figure, tr
from app.core.runs.run_spec import exports_onnx, trains_adapter
from app.services.backend_client import BackendClient, PendingQuery
from app.widgets.boxes import hbox, holder, keep_room, vbox
from app.widgets.card import label
from app.widgets.forms.path_field import PathLine
from app.widgets.progress import ThinProgressBar
from backend.contract.rpc.models import OnnxExport
from backend.contract.rpc.protocol import ErrorReply, ExportedFile
from backend.contract.run.folder import RunFolder

PROOF_WIDTH = 660


class ModelExportDialog(QDialog):
    """Emits `export_requested` with the query and its arguments; stays open until the model is written or the export was stopped."""

    export_requested = Signal(str, dict)

    def __init__(self, run: RunFolder, parent: QWidget) -> None:
        super().__init__(parent)
        self._run = run
        self.setWindowTitle(tr("Export model"))
        self.setMinimumWidth(480)
        adapter = trains_adapter(run)
        self.merged = QRadioButton(tr("Complete model, with the adapter merged into it (float32)"))
        self.float32 = QRadioButton(tr("The adapter alone (small; needs its base model)") if adapter else tr("float32"))
        self.float16 = QRadioButton(tr("float16 (half the size)"))
        self.onnx = QRadioButton(tr("ONNX, for programs without PyTorch (takes about a minute)"))
        self.int8 = QCheckBox(tr("Also in 8 bits, if it answers as well"))
        self.onnx.setVisible(exports_onnx(run))
        self.int8.setVisible(False)
        self.onnx.toggled.connect(self.int8.setVisible)
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
        self._choices = holder(
            vbox(self.merged, self.float32, self.float16, self.onnx, hbox(self.int8, margins=(28, 0, 0, 0)), spacing=6)
        )
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
        place = {"run": str(self._run.path), "folder": self.folder.text().strip()}
        if self.onnx.isChecked():
            self.export_requested.emit("export_onnx", {**place, "int8": self.int8.isChecked()})
            return
        dtype = "float16" if self.float16.isChecked() else "float32"
        self.export_requested.emit("export_model", {**place, "merged": self.merged.isChecked(), "dtype": dtype})

    def show_writing(self, writing: bool) -> None:
        """Show whether the model is being written; then it can only be stopped."""
        for one in (self._choices, self.folder, self.browse, self.save):
            one.setEnabled(not writing)
        self.mistake.hide()
        self.bar.setVisible(writing)
        self.bar.set_fraction(None if writing else 0.0)
        self.cancel.setText(tr("Stop") if writing else tr("Cancel"))

    def show_proof(self, found: OnnxExport) -> None:
        """Show how the written files answer the validation rows; then the dialog can only be closed."""
        self.show_writing(False)
        for one in (self._choices, self.folder, self.browse):
            one.setEnabled(False)
        for hidden in (self.bar, self.mistake, self.save):
            hidden.setSizePolicy(QSizePolicy())
            hidden.hide()
        self.cancel.setText(tr("Close"))
        title = tr("How the files answer the {count} validation rows", count=formatting.group_digits(found.rows))
        layout = self.layout()
        assert isinstance(layout, QBoxLayout)
        layout.insertWidget(layout.count() - 1, label(title, "section"))
        layout.insertWidget(layout.count() - 1, _Proof(found))
        self.setMinimumWidth(PROOF_WIDTH)
        layout.activate()
        self.resize(PROOF_WIDTH, self.heightForWidth(PROOF_WIDTH))

    def show_mistake(self, sentence: str) -> None:
        """Show why it cannot be exported so."""
        self.show_writing(False)
        self.mistake.setText(sentence)
        self.mistake.show()


class _Proof(QWidget):
    """A table of the written files, and how each answers the validation rows."""

    def __init__(self, found: OnnxExport) -> None:
        super().__init__()
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(18)
        title = formatting.metric_title(found.metric) if found.metric else ""
        heads = (tr("File"), tr("Size"), tr("Rows per second"), title, tr("Answers changed"))
        for column, words in enumerate(heads):
            grid.addWidget(label(words, "faint"), 0, column)
        for one in found.models:
            row = grid.rowCount()
            cells = (
                one.file or tr("The run's model"),
                formatting.megabytes(one.megabytes),
                formatting.rate(one.rows_per_second),
                formatting.sure_number(one.metrics[found.metric], one.intervals.get(found.metric)) if title else "",
                figure(one.changed, ".1%") if one.file else "",
            )
            for column, words in enumerate(cells):
                grid.addWidget(label(words, selectable=True), row, column)
            if one.refused:
                words = label(tr("Not kept: {reason}", reason=one.refused), "mistake", wrap=True)
                grid.addWidget(words, row + 1, 0, 1, len(heads))


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

    def _export(self, query: str, arguments: dict[str, object]) -> None:
        self._query = self._client.ask(query, arguments, self._on_written, self._on_refused)

    def _on_written(self, answer: ExportedFile | OnnxExport) -> None:
        self._query = None
        if isinstance(answer, OnnxExport):
            if self.dialog is not None:
                self.dialog.show_proof(answer)
            model = Path(answer.folder) / "model.onnx"
            self.wrote.emit(tr("Exported the model to {path}.", path=answer.folder), str(model))
            return
        if self.dialog is not None:
            self.dialog.accept()
        self.wrote.emit(tr("Exported the model to {path}.", path=answer.path), str(Path(answer.path) / "config.json"))

    def _on_refused(self, mistake: ErrorReply) -> None:
        self._query = None
        if self.dialog is not None:
            self.dialog.show_mistake(
                formatting.sentence(mistake.message.removeprefix("--model: ").removeprefix("--onnx: "))
            )

    def _on_closed(self) -> None:
        if self._query is not None:
            self._query.cancel()
            self._query = None
        if self.dialog is not None:
            self.dialog.deleteLater()
            self.dialog = None
