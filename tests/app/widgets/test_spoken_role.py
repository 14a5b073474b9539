"""What a screen reader is told of widgets that paint themselves: what they are, and the values that others see."""

import gc
from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QWidget

from app.core.text.length_bins import length_bins
from app.widgets.kpi import KpiTile
from app.widgets.pill import Pill
from app.widgets.plots.bar_plot import BarPlot, Bars
from app.widgets.plots.confusion_matrix import ConfusionMatrix
from app.widgets.plots.label_bars import Bar, LabelBars
from app.widgets.plots.length_histogram import LengthHistogram
from app.widgets.plots.live_plot import LivePlot, SeriesStyle
from app.widgets.plots.threshold_plot import ThresholdPlot
from app.widgets.progress import ThinProgressBar
from app.widgets.spoken_role import Role, speak_roles


def progress() -> QWidget:
    bar = ThinProgressBar()
    bar.set_fraction(0.2)
    bar.set_fraction(0.42)
    return bar


def tile() -> QWidget:
    made = KpiTile("Training loss", "0.48", "recent mean 0.5")
    made.set_value("0.47", "recent mean 0.49")
    return made


def matrix() -> QWidget:
    made = ConfusionMatrix()
    made.show_counts(["no", "yes"], [[5, 1], [2, 7]])
    return made


def bars() -> QWidget:
    made = BarPlot("Accuracy")
    made.show_bars(["first", "second"], [Bars("accuracy", [0.8, 0.9], "plot_1")])
    return made


def histogram() -> QWidget:
    made = LengthHistogram()
    made.show_bins(length_bins([3, 4, 70], [1, 1, 1], 100), 64, None, lambda place: f"bar {place}")
    return made


def threshold() -> QWidget:
    made = ThresholdPlot()
    made.show_curves({"Precision": [(0.0, 0.5), (0.7, 0.9)]})
    made.show_threshold(0.71)
    return made


def plot() -> QWidget:
    """The card, of which the part with the focus is told."""
    made = LivePlot("Loss", [SeriesStyle("loss", "training", "smoothed", "plot_1")])
    made.append("loss", [1, 2], [0.9, 0.8])
    made.append("loss", [3], [0.7])
    made._write_legend()
    return made


def labels() -> QWidget:
    made = LabelBars()
    made.show_bars([Bar("good", 0.75, "right"), Bar("bad", 0.25)])
    return made


PAINTED: dict[str, tuple[Callable[[], QWidget], Role, str, str]] = {
    "progress": (progress, Role.ProgressBar, "Progress", "42%"),
    "tile": (tile, Role.Indicator, "Training loss: 0.47", "recent mean 0.49"),
    "matrix": (matrix, Role.Chart, "Confusion matrix", "yes taken for no 2 times"),
    "bars": (bars, Role.Chart, "Accuracy", "0.9"),
    "histogram": (histogram, Role.Chart, "Lengths", "limit 64; bar 0"),
    "threshold": (threshold, Role.Chart, "Precision, recall", "Precision 0.900"),
    "plot": (plot, Role.Chart, "Loss", "training 0.7 at 3"),
    "labels": (labels, Role.Chart, "Probabilities", "good 75.0%"),
    "pill": (lambda: Pill("Finished", "success"), Role.Indicator, "Finished", ""),
}


@pytest.mark.parametrize("name", PAINTED)
def test_what_is_painted_is_told(qtbot, styled, name: str):
    speak_roles()
    make, role, title, value = PAINTED[name]
    widget = make()
    qtbot.addWidget(widget.window())
    told = [part for part in (widget, *widget.findChildren(QWidget)) if hasattr(part, "spoken_role")]
    spoken = QAccessible.queryAccessibleInterface(told[0])
    assert spoken.role() == role
    assert spoken.text(QAccessible.Text.Name).startswith(title)
    assert value in spoken.text(QAccessible.Text.Value)
    assert value in spoken.text(QAccessible.Text.Description)


def test_what_is_told_dies_with_its_widget(qtbot, styled):
    speak_roles()
    window = QWidget()
    qtbot.addWidget(window)
    for number in range(200):
        bar = ThinProgressBar(window)
        bar.set_fraction(number / 200)
        assert QAccessible.queryAccessibleInterface(bar).role() == Role.ProgressBar
        bar.deleteLater()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()
    assert QAccessible.queryAccessibleInterface(window).childCount() == 0
