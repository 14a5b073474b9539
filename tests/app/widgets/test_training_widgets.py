"""The histogram of lengths by keys and mouse, and the progress of its measurement."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QWidget

from app.core.text.length_bins import length_bins
from app.widgets.plots.length_histogram import LengthHistogram
from app.widgets.progress import WaitingStack


@pytest.fixture
def histogram(qtbot, styled) -> LengthHistogram:
    made = LengthHistogram()
    qtbot.addWidget(made)
    made.resize(600, 300)
    made.show_bins(length_bins([4, 9, 40], [10, 5, 1], 16), 16, 48, lambda place: f"bar {place}")
    made.show()
    return made


def test_arrows_and_mouse_say_what_a_bar_is(qtbot, histogram: LengthHistogram):
    assert histogram.hover_text() == ""
    qtbot.keyClick(histogram, Qt.Key.Key_Right)
    qtbot.keyClick(histogram, Qt.Key.Key_Right)
    assert histogram.hover_text() == "bar 1"
    qtbot.mouseMove(histogram, QPoint(round(histogram.x_of(9.5)), 200))
    assert histogram.hover_text() != "bar 1"


def test_what_lies_beyond_the_limit_has_another_colour(histogram: LengthHistogram):
    picture = histogram.grab().toImage()
    ratio, y = picture.devicePixelRatio(), histogram.height() - 26

    def colour(tokens: float) -> str:
        return picture.pixelColor(round(histogram.x_of(tokens) * ratio), round(y * ratio)).name()

    assert colour(3.5) == colour(8.5)
    assert colour(39.5) not in (colour(3.5), colour(30.5))


def test_progress_is_told_by_stage(qtbot, styled):
    stack = WaitingStack(QWidget())
    qtbot.addWidget(stack)
    stack.show_progress(0, 0, "", "tokenising")
    stack.show_progress(1200, 2400, "rows")
    assert stack.words.text() == "Tokenizing… 1 200 of 2 400 rows"
    assert stack.bar.fraction() == 0.5
