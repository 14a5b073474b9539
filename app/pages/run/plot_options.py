"""The options of the plots: x axis and smoothing, the rows of a step, curves for TensorBoard."""

import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QWidget

from app.core.i18n import tr
from app.core.preferences import Preferences
from app.core.runs.diagnosis import Diagnosis, diagnose
from app.core.runs.run_state import RunState
from app.core.runs.run_status import NO_CURVES, RunStatus
from app.services.backend_client import BackendClient
from app.widgets.card import label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconButton, IconLabel
from app.widgets.plots.live_plot import LivePlot
from app.widgets.plots.plot_axis import AXIS_TITLES
from app.widgets.plots.plot_series import SMOOTHING
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.protocol import ErrorReply, ExportedFile

SMOOTHINGS = {"none": 0.0, "light": 0.01, "medium": SMOOTHING, "strong": 0.1}
"""Name → the share of what is visible over which a smoothed point is averaged."""
SMOOTHING_TITLES = {"none": tr("None"), "light": tr("Light"), "medium": tr("Medium"), "strong": tr("Strong")}
SPOKEN = {"info": tr("Note"), "success": tr("Good"), "warning": tr("Warning"), "error": tr("Error")}
STYLES = {
    "info": ("info", "info"),
    "success": ("check", "success"),
    "warning": ("warning", "warning"),
    "error": ("error", "danger"),
}
CHOICE_WIDTH = 104
LEAST_SECONDS = 1.0
"""Time between two judgements: they change slowly, and a long curve is walked for each."""


class PlotOptions(QWidget):
    """Choices made here are remembered."""

    axis_chosen = Signal(str)
    smoothing_chosen = Signal(float)

    def __init__(self, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._judged = 0.0
        self._alive: bool | None = None
        self.icon, self.words = IconLabel(*STYLES["info"], 16), ElidedLabel(lines=2)
        self.words.setMinimumHeight(26)
        self.axis = self._choice(tr("X axis"), AXIS_TITLES, preferences.plot_axis)
        self.smoothing = self._choice(tr("Smoothing"), SMOOTHING_TITLES, preferences.plot_smoothing)
        self.smoothing.setToolTip(
            tr("Applies to loss, gradient norm and speed: how many neighboring points are averaged")
        )
        self.axis.currentIndexChanged.connect(self._on_axis)
        self.smoothing.currentIndexChanged.connect(self._on_smoothing)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.icon, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.words, 1)
        for title, box in ((tr("X axis"), self.axis), (tr("Smoothing"), self.smoothing)):
            row.addSpacing(6)
            row.addWidget(label(title, "muted"))
            row.addWidget(box)
        self.clear()

    def _choice(self, title: str, titles: dict[str, str], chosen: str) -> QuietComboBox:
        box = QuietComboBox()
        for name, words in titles.items():
            box.addItem(words, name)
        # A settings file of another version may name what is not here.
        box.setCurrentIndex(max(0, box.findData(chosen)))
        box.setAccessibleName(title)
        box.setFixedWidth(CHOICE_WIDTH)
        return box

    @property
    def share(self) -> float:
        """The chosen smoothing share."""
        return SMOOTHINGS[self.smoothing.currentData()]

    def _on_axis(self) -> None:
        self._preferences.set("plot_axis", self.axis.currentData())
        self.axis_chosen.emit(self.axis.currentData())

    def _on_smoothing(self) -> None:
        self._preferences.set("plot_smoothing", self.smoothing.currentData())
        self.smoothing_chosen.emit(self.share)

    def clear(self) -> None:
        """Clear for another run."""
        self._judged, self._alive = 0.0, None
        self.words.setText("")
        self.icon.hide()

    def show_state(self, state: RunState, outcome: RunStatus) -> None:
        """Judge the run, at limited intervals; at its end immediately."""
        alive = outcome.alive
        if alive is self._alive and time.monotonic() - self._judged < LEAST_SECONDS:
            return
        self._judged, self._alive = time.monotonic(), alive
        found = Diagnosis(NO_CURVES, "warning") if outcome.lacks_events else diagnose(state, alive)
        is_told = outcome.state == "finished" and outcome.fix is not None and bool(outcome.doubt)
        found = Diagnosis("", found.kind) if is_told else found  # above, beside the button that helps
        if found.text != self.words.text():
            self.words.setText(found.text)
            self.icon.set_icon(*STYLES[found.kind])
            self.icon.setAccessibleName(SPOKEN[found.kind])
        self.icon.setVisible(bool(found.text))


class SelectedStep(IconButton):
    """Appears in the plot's corner when a point is clicked."""

    rows_requested = Signal(int)

    def __init__(self, plot: LivePlot, step_at: Callable[[float], int], parent: QWidget | None = None) -> None:
        super().__init__("", "table", "quiet", parent=parent)
        self._plot, self._step_at, self.step = plot, step_at, 0
        self.setAccessibleName(tr("Show rows of the step"))
        self.setToolTip(tr("See what the model received in this step, token by token"))
        self.clicked.connect(lambda: self.rows_requested.emit(self.step))
        plot.picked.connect(self._on_picked)
        plot.corner.insertWidget(0, self)
        self.hide()

    def forget(self) -> None:
        """Reset for another run."""
        self.step = 0
        self._plot.set_pin(None)
        self.hide()

    def _on_picked(self, x: float) -> None:
        self.step = max(1, self._step_at(x))
        self.setText(tr("Show rows of step {step:,}", step=self.step))
        self.setAccessibleName(self.text())
        self._plot.set_pin(x)
        self.show()


class TensorBoardExport(QObject):
    """Writes to a subfolder with the run's name, because TensorBoard needs one folder per run."""

    message = Signal(str, str)

    def __init__(self, client: BackendClient, page: QWidget) -> None:
        super().__init__(page)
        self._client, self._page = client, page
        self.dialog: QFileDialog | None = None

    def choose(self, run: Path) -> None:
        """Ask for the destination folder."""
        dialog = self.dialog = QFileDialog(self._page, tr("Choose a folder for TensorBoard"), str(Path.home()))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(lambda folder: self.save(run, Path(folder)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def save(self, run: Path, folder: Path) -> None:
        """Write the curves of a run to a folder."""
        self._client.ask(
            "export_curves",
            {"run": str(run), "folder": str(folder / run.name)},
            lambda answer: self._on_written(folder, answer),
            self._on_mistake,
        )

    def _on_written(self, folder: Path, answer: ExportedFile) -> None:
        self.message.emit(
            "success", tr("Saved {path}. To view it: tensorboard --logdir {folder}", path=answer.path, folder=folder)
        )

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.message.emit("error", mistake.message)
