"""The histogram of lengths and the tokens with labels, by keys and mouse."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication

from app.core.text.length_bins import length_bins
from app.widgets.plots.length_histogram import LengthHistogram
from app.widgets.progress import WaitingStack
from app.widgets.text.labelled_tokens import CAPTION, LabelledToken, LabelledTokens


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


@pytest.fixture
def view(qtbot, styled) -> LabelledTokens:
    made = LabelledTokens()
    qtbot.addWidget(made)
    made.resize(300, 100)
    made.show()
    return made


def words(count: int) -> list[LabelledToken]:
    return [LabelledToken(f" word{number}", "token", "O") for number in range(count)]


def test_height_follows_the_lines(view: LabelledTokens):
    view.show_tokens(words(3))
    low = view.height()
    view.show_tokens(words(30))
    assert view.height() > 3 * low
    tall = view.height()
    view.resize(900, 100)
    assert view.height() < tall


def test_borders_have_room_for_their_words(view: LabelledTokens):
    view.show_tokens(words(2))
    plain = view.height()
    view.show_tokens(words(2), [(0, "a.csv:1"), (1, "a.csv:2")])
    assert view.height() == plain + CAPTION


def test_tokens_are_found_by_mouse_and_keys(qtbot, view: LabelledTokens):
    view.show_tokens(words(20))
    with qtbot.waitSignal(view.token_hovered) as hovered:
        qtbot.mouseMove(view, view.box_of(7).center().toPoint())
    assert hovered.args == [7]
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=view.box_of(3).center().toPoint())
    with qtbot.waitSignal(view.token_hovered):
        qtbot.keyClick(view, Qt.Key.Key_Right)
    assert view._chosen == 4
    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().startswith(" word0 word1")


def test_every_token_lies_within_the_width(view: LabelledTokens):
    view.show_tokens(words(200))
    assert all(view.box_of(number).right() <= view.width() for number in range(200))


def test_progress_is_told_by_stage(qtbot, styled):
    stack = WaitingStack(LabelledTokens())
    qtbot.addWidget(stack)
    stack.show_progress(0, 0, "", "tokenising")
    stack.show_progress(1200, 2400, "rows")
    assert stack.words.text() == "Tokenizing… 1 200 of 2 400 rows"
    assert stack.bar.fraction() == 0.5
