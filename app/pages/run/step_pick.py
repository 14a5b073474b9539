"""Owns the offer to look at the rows of a step that was clicked in the plot of the loss."""

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.core.i18n import tr
from app.widgets.icon_label import IconButton
from app.widgets.plots.live_plot import LivePlot


class StepPick(IconButton):
    """Stands in the corner of the plot once a point was clicked."""

    rows_asked = Signal(int)

    def __init__(self, plot: LivePlot, step_at: Callable[[float], int], parent: QWidget | None = None) -> None:
        super().__init__("", "table", "quiet", parent=parent)
        self._plot, self._step_at, self.step = plot, step_at, 0
        self.setAccessibleName(tr("Show the rows of the step"))
        self.setToolTip(tr("See what the model got in this step, token by token"))
        self.clicked.connect(lambda: self.rows_asked.emit(self.step))
        plot.picked.connect(self._on_picked)
        plot.corner.insertWidget(0, self)
        self.hide()

    def forget(self) -> None:
        """Another run is shown."""
        self.step = 0
        self._plot.set_pin(None)
        self.hide()

    def _on_picked(self, x: float) -> None:
        self.step = max(1, self._step_at(x))
        self.setText(tr("Show the rows of step {step:,}", step=self.step))
        self.setAccessibleName(self.text())
        self._plot.set_pin(x)
        self.show()
