"""Tab goes as people read, whatever order widgets were made in."""

import gc
from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.core.text.length_bins import length_bins
from app.widgets.accessibility import Role, TabOrder, speak_roles
from app.widgets.card import Card, KpiTile
from app.widgets.pill import Pill
from app.widgets.plots.confusion_matrix import ConfusionMatrix
from app.widgets.plots.label_bars import Bar, LabelBars
from app.widgets.plots.length_histogram import LengthHistogram
from app.widgets.plots.live_plot import LivePlot, SeriesStyle
from app.widgets.plots.paired_bars import Group, PairedBars
from app.widgets.plots.threshold_plot import ThresholdPlot
from app.widgets.progress import ThinProgressBar
from tests.app.reading_order import wrong_turns

PLACES = {
    "rows": {"a": QRect(0, 0, 90, 30), "b": QRect(100, 4, 90, 22), "c": QRect(0, 40, 90, 30), "d": QRect(100, 40, 90, 30)},
    "columns": {"a": QRect(0, 0, 90, 50), "b": QRect(0, 60, 90, 80), "c": QRect(100, 0, 90, 80), "d": QRect(100, 90, 90, 50)},
}  # fmt: skip


@pytest.mark.parametrize("layout", PLACES)
@pytest.mark.parametrize("made", ["abcd", "dcba", "cadb"])
def test_tab_goes_from_a_to_d(qtbot, layout: str, made: str):
    holder = TabOrder()
    qtbot.addWidget(holder)
    stops = {}
    for name in made:
        stops[name] = QPushButton(name, holder)
        stops[name].setGeometry(PLACES[layout][name])
    assert walked(qtbot, holder, stops["a"]) == "abcd"
    assert not list(wrong_turns([stops[name] for name in "abcd"]))


def test_what_is_made_later_takes_its_place(qtbot):
    holder = TabOrder()
    qtbot.addWidget(holder)
    column = QVBoxLayout(holder)
    column.addWidget(first := QPushButton("a"))
    form = QHBoxLayout()
    column.addLayout(form)
    column.addWidget(QPushButton("d"))
    walked(qtbot, holder, first)
    form.addWidget(QPushButton("b"))
    form.addWidget(QPushButton("c"))
    QApplication.processEvents()
    assert walked(qtbot, holder, first) == "abcd"


def walked(qtbot, holder: QWidget, first: QWidget) -> str:
    """The names of what Tab comes to, once around."""
    with qtbot.waitExposed(holder):
        holder.show()
    qtbot.waitUntil(lambda: holder.activateWindow() or holder.isActiveWindow())
    first.setFocus()
    names = ""
    while not names.startswith(QApplication.focusWidget().text()):
        names += QApplication.focusWidget().text()
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    return names


def test_a_wrong_order_is_found(qtbot):
    holder = QWidget()
    qtbot.addWidget(holder)
    row = QHBoxLayout(holder)
    stops = []
    for _ in range(2):
        card = Card("Card")
        stops += [card.add(QLineEdit()), card.add(QLineEdit())]
        row.addWidget(card)
    with qtbot.waitExposed(holder):
        holder.show()
    upper_left, lower_left, upper_right, lower_right = stops
    right = [upper_left, lower_left, upper_right, lower_right]
    assert not list(wrong_turns(right))
    assert list(wrong_turns([lower_left, upper_left])) == [(lower_left, upper_left)]
    assert list(wrong_turns([upper_right, upper_left])) == [(upper_right, upper_left)]
    zigzag = [upper_left, upper_right, lower_left, lower_right]
    assert (upper_right, lower_left) in list(wrong_turns(zigzag))


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
    made = PairedBars()
    made.setAccessibleName("Accuracy")
    made.show_groups(["first", "second"], [Group("Accuracy", [0.8, 0.9], ["0.8", "0.9"])])
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
    "matrix": (matrix, Role.Chart, "Confusion matrix", "yes predicted as no 2 times"),
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
