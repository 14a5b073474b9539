"""Owns taking the curves of a run to TensorBoard: a folder is chosen, and the helper writes an event file into it."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.core.i18n import tr
from app.services.backend_client import BackendClient
from backend.contract.rpc.queries import Exported, Mistake


class EventFile(QObject):
    """TensorBoard wants a folder for each run: the file goes into one with the run's name within the chosen folder."""

    message = Signal(str, str)

    def __init__(self, client: BackendClient, page: QWidget) -> None:
        super().__init__(page)
        self._client, self._page = client, page
        self.dialog: QFileDialog | None = None

    def choose(self, run: Path) -> None:
        """Ask where it is to be written."""
        dialog = self.dialog = QFileDialog(self._page, tr("Choose a folder for TensorBoard"), str(Path.home()))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(lambda folder: self.save(run, Path(folder)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def save(self, run: Path, folder: Path) -> None:
        """Write the curves of a run below a folder."""
        self._client.ask(
            "export_curves",
            {"run": str(run), "folder": str(folder / run.name)},
            lambda answer: self._on_written(folder, answer),
            self._on_mistake,
        )

    def _on_written(self, folder: Path, answer: Exported) -> None:
        self.message.emit(
            "success", tr("Wrote {path}. See it with: tensorboard --logdir {folder}", path=answer.path, folder=folder)
        )

    def _on_mistake(self, mistake: Mistake) -> None:
        self.message.emit("error", mistake.message)
