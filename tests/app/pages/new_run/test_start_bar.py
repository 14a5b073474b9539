"""The bar of New run shows its sentence whole, also in a narrow window with a run that could be queued behind another."""

import pytest
from PySide6.QtWidgets import QApplication

from app import theme
from app.pages.new_run.section_state import OPEN, SectionState
from app.pages.new_run.start_bar import StartBar

SENTENCES = (
    "Choose a column for label, or switch to causal language modeling.",
    "Wählen Sie eine Spalte für „Label“ oder die Aufgabe „Kausale Sprachmodellierung“.",
)
WIDE, NARROW = 1020, 740
"""Of the bar in a window of 1280 and of 960 pixels."""


@pytest.fixture
def bar(qtbot, qapp):
    theme.apply(qapp, "light")
    made = StartBar()
    qtbot.addWidget(made)
    made.show()
    made.show_others("Starts automatically after the other run finishes")
    return made


def show(bar: StartBar, sentence: str, width: int) -> None:
    bar.resize(width, bar.height())
    bar.show_obstacle("data", SectionState(OPEN, sentence))
    QApplication.processEvents()


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("sentence", SENTENCES, ids=["en", "de"])
def test_the_reason_is_whole_beside_the_queue(bar: StartBar, sentence: str, width: int):
    show(bar, sentence, width)
    assert " ".join(bar.reason.lines()) == sentence
    assert bar.reason.height() <= bar.height()


def test_the_figures_are_back_when_there_is_room_for_them(bar: StartBar):
    show(bar, SENTENCES[0], NARROW)
    assert not bar.time.isVisible()
    show(bar, "Choose a model.", NARROW)
    assert bar.time.isVisible()
    assert bar.memory.isVisible()


def test_the_button_to_measure_is_in_the_menu_alone_before_a_figure_is_left_out(bar: StartBar):
    show(bar, SENTENCES[0] + " " + SENTENCES[0], WIDE)
    assert not bar.measure.isVisible()
    assert bar.measure_action in bar.more.menu().actions()
    show(bar, "", WIDE)
    assert bar.measure.isVisible()


@pytest.mark.parametrize(
    "words", ["about 13 to 40 min", "about 2.5 to 5.5 h", "etwa 13 bis 40 min", "etwa 2,5 bis 5,5 h"]
)
def test_the_time_is_whole(bar: StartBar, words: str):
    show(bar, "Choose a model.", WIDE)
    bar.time.show_value(words)
    value = bar.time.value
    assert value.fontMetrics().horizontalAdvance(words) <= value.width()
