"""Bars of differences with their intervals."""

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor

from app import theme
from app.widgets.plots.interval_bars import MOST, IntervalBar, IntervalBars


@pytest.fixture
def bars(qtbot, qapp):
    theme.apply(qapp, "light")
    made = IntervalBars()
    qtbot.addWidget(made)
    made.resize(600, 200)
    return made


def test_bars_say_what_they_show(bars: IntervalBars):
    bars.show_bars([IntervalBar("Accuracy", "+0.1 (0 to +0.2)", 0.1, 0.0, 0.2), IntervalBar("F1", "0", 0.0, -1.0, 1.0)])
    assert bars.accessibleDescription() == "Accuracy: +0.1 (0 to +0.2); F1: 0"
    assert bars.sizeHint().height() == 2 * theme.pixels(26)


def test_no_more_bars_are_drawn_than_fit(bars: IntervalBars):
    bars.show_bars([IntervalBar(str(number), "", 0.0, -1.0, 1.0) for number in range(20)])
    assert len(bars.bars) == MOST


def blue(bars: IntervalBars) -> list[int]:
    """Where the middle of the first line is in the accent's colour."""
    image = bars.grab().toImage()
    y = theme.pixels(26) // 2
    points = (QPoint(x, y) for x in range(image.width()))
    return [one.x() for one in points if QColor(image.pixel(one)).saturation() > 25]


def test_a_sure_bar_lies_on_its_side_of_zero(bars: IntervalBars):
    bars.show_bars([IntervalBar("", "", 0.3, 0.2, 0.4, is_sure=True)])
    right = blue(bars)
    bars.show_bars([IntervalBar("", "", -0.3, -0.4, -0.2, is_sure=True)])
    left = blue(bars)
    assert right
    assert left
    assert max(left) < min(right)


def test_bars_of_one_scale_can_be_compared(bars: IntervalBars):
    bars.show_bars([IntervalBar("", "", 0.3, 0.2, 0.4, True, 0.4)])
    large = blue(bars)
    bars.show_bars([IntervalBar("", "", 0.15, 0.1, 0.2, True, 0.4)])
    assert len(blue(bars)) < len(large)
