"""Coloured tokens that flow like text."""

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication

from app.widgets.token_view import TokenView


@pytest.fixture
def view(qtbot, styled):
    made = TokenView()
    qtbot.addWidget(made)
    made.resize(600, 300)
    with qtbot.waitExposed(made):
        made.show()
    return made


def middle(view: TokenView, index: int) -> QPoint:
    return view.box_of(index).center().toPoint()


def test_tokens_flow_and_no_line_is_wider_than_the_view(view: TokenView):
    view.set_tokens(["token"] * 500)
    assert view.line_count() > 10
    assert max(view.box_of(i).right() for i in range(500)) <= view.viewport().width()


def test_a_line_break_in_a_token_breaks_the_line(view: TokenView):
    view.set_tokens(["one", "\n", "two"])
    assert view.box_of(2).top() > view.box_of(1).top()
    assert view.box_of(0).top() == view.box_of(1).top()


def test_a_line_break_that_belongs_to_no_token_breaks_the_line(view: TokenView):
    view.set_tokens(["one", "two"], gaps=["", "\n\n"])
    assert view.line_count() == 3


def test_hit_testing_finds_every_token_after_scrolling(view: TokenView):
    view.set_tokens([f"t{i}" for i in range(3000)], gaps=["", *[" "] * 2999])
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())
    assert view.token_at(QPointF(middle(view, 2999))) == 2999
    assert view.token_at(QPointF(view.viewport().width() - 1, view.viewport().height() - 1)) in (-1, 2999)


def test_hovering_and_clicking_name_the_token(qtbot, view: TokenView):
    view.set_tokens(["a", "b", "c"])
    with qtbot.waitSignal(view.token_selected) as signal:
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=middle(view, 1))
    assert signal.args == [1]
    qtbot.mouseMove(view.viewport(), middle(view, 2))
    with qtbot.waitSignal(view.token_hovered) as signal:
        view.viewportEvent(QEvent(QEvent.Type.Leave))
    assert signal.args == [-1]


def test_copying_gives_the_text_with_what_lies_between_tokens(qtbot, view: TokenView):
    view.set_tokens(["Hello", ",", "world"], gaps=["", "", " "])
    qtbot.keyClick(view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "Hello, world"


def test_white_space_can_be_seen_or_not(view: TokenView):
    view.set_tokens([" a", "\n"])
    assert [view.shown_text(0), view.shown_text(1)] == ["·a", "⏎"]
    view.set_whitespace_visible(False)
    assert [view.shown_text(0), view.shown_text(1)] == [" a", " "]


def test_narrowing_keeps_every_token_reachable(view: TokenView):
    view.set_tokens(["word"] * 400)
    before = view.line_count()
    view.resize(250, 300)
    assert view.line_count() > before
    assert view.layout_.starts[-1] == 400


def test_a_token_wider_than_the_view_has_its_own_line(view: TokenView):
    view.set_tokens(["a", "x" * 500, "b"])
    assert view.line_count() == 3


def test_of_a_hundred_thousand_tokens_only_the_visible_are_drawn(view: TokenView):
    view.set_tokens([f"token {number}" for number in range(100_000)])
    view.grab()
    assert view.count() == 100_000
    assert 0 < len(view._paint.drawn) < 500


def test_a_screen_reader_gets_the_tokens(view: TokenView):
    view.set_tokens(["Hel", "lo"])
    assert view.accessibleDescription() == "Hel | lo"
