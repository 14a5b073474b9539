"""Bars in groups tell their values."""

import pytest
from PySide6.QtCore import QPointF

from app.widgets.plots.bar_plot import HINT, BarPlot, Bars


@pytest.fixture
def plot(qtbot, styled) -> BarPlot:
    made = BarPlot("Tokens")
    qtbot.addWidget(made)
    made.resize(400, 300)
    made.show()
    made.show_bars(["All", "en"], [Bars("a", [1.5, 2.0], "plot_1"), Bars("b", [2.5, 3.0], "plot_2")], "tokens per word")
    return made


def test_a_bar_tells_its_value(plot: BarPlot):
    place = plot._view.mapViewToScene(QPointF(1.2, 0.5))
    plot._on_mouse_moved(place)
    assert plot.caption() == "en: b 3.000 tokens per word"


def test_beside_the_bars_nothing_is_told(plot: BarPlot):
    plot._on_mouse_moved(plot._view.mapViewToScene(QPointF(0.5, 0.5)))
    assert plot.caption() == HINT


def test_a_screen_reader_hears_every_value(plot: BarPlot):
    assert plot.accessibleDescription() == "All: a 1.5, b 2.5; en: a 2, b 3"


def test_nothing_may_be_shown(plot: BarPlot):
    plot.show_bars([], [])
    plot._on_mouse_moved(plot._view.mapViewToScene(QPointF(0, 0)))
    assert plot.caption() == HINT
