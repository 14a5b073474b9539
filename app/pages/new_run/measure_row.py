"""Owns the button that measures a run's time, and how far that is."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from app import theme
from app.core.draft import run_duration
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.progress_bar import ThinProgressBar
from backend.contract.rpc.queries import Progress

WHAT = tr(
    "Train a few steps with the real model and data, and say how long all of it will take. Nothing is kept of them."
)


class MeasureButton(QObject):
    """Measures; while it is measured it stops. The row says how far it is and hides otherwise."""

    start_asked = Signal()
    stop_asked = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.busy = False
        self._reason = ""
        self.button = QPushButton(tr("Measure time"))
        theme.role(self.button, "small")
        self.button.clicked.connect(lambda: (self.stop_asked if self.busy else self.start_asked).emit())
        self.row = QWidget()
        self.words, self.bar = label("", "muted"), ThinProgressBar()
        line = QHBoxLayout(self.row)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(8)
        line.addWidget(self.words)
        line.addWidget(self.bar, 1)
        self.row.hide()
        self.show_reason(tr("Choose what to train first."))

    def show_reason(self, reason: str) -> None:
        """Why nothing can be measured; empty where it can."""
        self._reason = reason
        self.button.setEnabled(self.busy or not reason)
        self.button.setToolTip(tr("End the measurement; nothing is left of it.") if self.busy else reason or WHAT)

    def show_progress(self, progress: Progress | None) -> None:
        """How far it is; None where nothing is measured (any more)."""
        self.busy = progress is not None
        self.button.setText(tr("Stop measuring") if self.busy else tr("Measure time"))
        self.show_reason(self._reason)
        self.row.setVisible(self.busy)
        if progress is None:
            return
        self.words.setText(f"{run_duration.STAGES.get(progress.part, progress.part)}…")
        self.bar.set_fraction(_fraction(progress))


def _fraction(progress: Progress) -> float | None:
    """None while nothing is known."""
    if not progress.total:
        return None
    inner = min(1.0, progress.part_done / progress.part_total) if progress.part_total else 0.0
    return min(1.0, (progress.done + inner) / progress.total)
