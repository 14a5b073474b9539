"""Coloured tokens that flow like text."""

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QHelpEvent

from app import theme
from app.core.text.shown_tokens import tokens_of_texts
from app.widgets.text.token_view import LINE, MARGIN, TokenColors, TokenView


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
    assert sum(view.line_counts()) > 10
    assert max(view.box_of(i).right() for i in range(500)) <= view.viewport().width()


def test_a_line_break_in_a_token_breaks_the_line(view: TokenView):
    view.set_tokens(["one", "\n", "two"])
    assert view.box_of(2).top() > view.box_of(1).top()
    assert view.box_of(0).top() == view.box_of(1).top()


def test_a_token_that_goes_on_after_its_line_break_stands_on_the_next_line(view: TokenView):
    view.set_tokens(["one", "\ntwo", "three"])
    assert view.box_of(1).top() > view.box_of(0).top()
    assert view.box_of(2).top() == view.box_of(1).top()


def test_a_line_break_that_belongs_to_no_token_breaks_the_line(view: TokenView):
    view.set_tokens(["one", "two"], gaps=["", "\n\n"])
    assert sum(view.line_counts()) == 3


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
    before = sum(view.line_counts())
    view.resize(250, 300)
    assert sum(view.line_counts()) > before
    assert view.token_at(QPointF(middle(view, 399))) == 399


def test_a_token_wider_than_the_view_goes_on_on_the_next_line(view: TokenView):
    view.set_tokens(["a", "x" * 500, "b"])
    assert sum(view.line_counts()) == 2
    assert view.box_of(1).right() <= view.viewport().width()
    assert view.box_of(2).top() > view.box_of(0).top()


def test_in_the_middle_of_many_tokens_all_can_be_reached(qtbot, view: TokenView):
    view.set_tokens([f"token {number}" for number in range(20_000)])
    view.select(10_000, 10_001)
    assert view.viewport().rect().contains(middle(view, 10_000))
    view.setFocus()
    for _ in range(30):
        qtbot.keyClick(view, Qt.Key.Key_PageUp)
        assert view.viewport().rect().contains(middle(view, view.current()))
    assert 0 < view.current() < 10_000


def test_a_screen_reader_gets_the_tokens(view: TokenView):
    view.set_tokens(["Hel", "lo"])
    assert view.accessibleDescription() == "Hel | lo"


def test_tokens_that_form_one_character_stand_side_by_side_as_one(view: TokenView):
    view.set_tokens(["x", "e", "\u0301", "y"])
    assert view._text.firsts == [0, 1, 3]
    assert view.box_of(1).right() == pytest.approx(view.box_of(2).left())
    assert view.box_of(0).right() < view.box_of(1).left()


@pytest.mark.parametrize(
    ("text", "place", "within"),
    [
        ("e\u0301", 1, True),
        ("ab", 1, False),
        ("👩\u200d👧", 1, True),
        ("👩\u200d👧", 2, True),
        ("🇱🇰🇯🇵", 1, True),
        ("🇱🇰🇯🇵", 2, False),
        ("සිං", 1, True),
        ("සිං", 2, True),
        ("東京", 1, False),
        ("👍🏽", 1, True),
    ],
)
def test_tokens_that_cut_what_people_see_as_one_character_are_drawn_as_one(view: TokenView, text, place, within):
    view.set_tokens([text[:place], text[place:]])
    assert (view.box_of(1).left() == pytest.approx(view.box_of(0).right())) is within


def test_a_family_of_emoji_in_many_tokens_is_never_broken_over_lines(view: TokenView):
    family = ["👩", "\u200d", "👩", "\u200d", "👧"]
    view.set_tokens(["word"] * 11 + family)
    view.resize(300, 300)
    assert len({view.box_of(index).top() for index in range(11, 16)}) == 1


def test_every_part_of_a_group_can_be_clicked(qtbot, view: TokenView):
    view.set_tokens(["සි"[0], "සි"[1]])
    for index in (0, 1):
        with qtbot.waitSignal(view.token_selected) as signal:
            qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=middle(view, index))
        assert signal.args == [index]


def test_a_line_from_right_to_left_begins_at_the_right(view: TokenView):
    view.set_tokens(["שלום", " עולם"])
    assert view.box_of(0).left() > view.box_of(1).left()
    assert view.box_of(0).right() == pytest.approx(view.viewport().width() - 4, abs=1)


def test_left_leads_on_in_a_line_from_right_to_left(qtbot, view: TokenView):
    view.set_tokens(["שלום", " עולם"])
    view.select(0, 1)
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert view.current() == 1


def test_keys_walk_through_the_tokens(qtbot, view: TokenView):
    view.set_tokens([f"t{number:03}" for number in range(200)])
    view.select(0, 1)
    tops = [view.box_of(index).top() for index in range(200)]
    starts = [index for index in range(200) if index == 0 or tops[index] > tops[index - 1]]
    for key, current in (
        (Qt.Key.Key_Right, 1),
        (Qt.Key.Key_Down, starts[1] + 1),
        (Qt.Key.Key_Home, starts[1]),
        (Qt.Key.Key_End, starts[2] - 1),
        (Qt.Key.Key_Right, starts[2]),
        (Qt.Key.Key_Left, starts[2] - 1),
        (Qt.Key.Key_Up, starts[1] - 1),
    ):
        qtbot.keyClick(view, key)
        assert view.current() == current
    qtbot.keyClick(view, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert view.current() == 199


def test_shift_extends_what_is_selected(qtbot, view: TokenView):
    view.set_tokens(list("abcdef"))
    view.select(1, 2)
    with qtbot.waitSignal(view.selection_changed) as signal:
        qtbot.keyClick(view, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert signal.args == [1, 3]
    assert view.selected_text() == "bc"


def test_words_that_no_token_covers_are_drawn_in_between(view: TokenView):
    view.set_tokens(["a", "b"], gaps=["", " dropped "])
    assert view.box_of(1).left() - view.box_of(0).right() > 50


@pytest.mark.parametrize("first", ["word", "שלום"])
def test_what_follows_the_last_token_is_drawn_on_a_line_of_its_own_where_it_must(view: TokenView, first: str):
    view.show_tokens(tokens_of_texts([f"{first} "] * 12), "left out")
    assert (view.count(), sum(view.line_counts())) == (12, 2)
    assert view.box_of(11).top() == view.box_of(0).top()
    image, area = view.grab().toImage(), range(MARGIN + LINE, MARGIN + 2 * LINE)
    assert len({image.pixel(x, y) for x in range(image.width()) for y in area}) > 1


def test_the_tooltip_is_asked_for_of_the_token_under_the_mouse(view: TokenView):
    view.set_tokens(["a", "b"])
    asked = []
    view.hint = lambda index: asked.append(index) or "hint"
    place = middle(view, 1)
    view.viewportEvent(QHelpEvent(QEvent.Type.ToolTip, place, view.viewport().mapToGlobal(place)))
    assert asked == [1]


def test_boundaries_are_marked_by_more_than_colour(view: TokenView):
    """The foot of a box is darker than its ground, at least 2:1, in both themes."""
    for look in ("light", "dark"):
        theme.apply(QGuiApplication.instance(), look)
        colors = TokenColors()
        for ground, foot in zip(colors.grounds, colors.feet, strict=True):
            assert contrast(ground, foot) > 2
            assert contrast(ground, colors.ink) > 4.5
    theme.apply(QGuiApplication.instance(), "light")


def contrast(one: QColor, other: QColor) -> float:
    """As WCAG 2 counts it."""

    def part(value: float) -> float:
        return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4

    lights = sorted(
        0.2126 * part(color.redF()) + 0.7152 * part(color.greenF()) + 0.0722 * part(color.blueF())
        for color in (one, other)
    )
    return (lights[1] + 0.05) / (lights[0] + 0.05)
