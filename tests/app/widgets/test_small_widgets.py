"""The small widgets and the theme: what they tell a screen reader, and that both themes reach them."""

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QLabel, QPushButton, QSpinBox, QStyle, QStyleOptionSpinBox, QVBoxLayout, QWidget

from app import theme
from app.theme.palette import DARK, LIGHT
from app.widgets.accessibility import FocusRing
from app.widgets.banner import Banner
from app.widgets.boxes import ButtonRow
from app.widgets.card import KpiTile
from app.widgets.empty_state import EmptyState
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.forms.path_field import PathField, PathLine
from app.widgets.icon_label import IconLabel, IconToolButton
from app.widgets.page_layout import PageArea
from app.widgets.pill import KINDS, Pill
from app.widgets.progress import ThinProgressBar
from app.widgets.question import Question
from app.widgets.tables.text_table import TextTable
from app.widgets.text.elided_label import ElidedLabel
from app.widgets.toast import MOST, Toast, ToastAction, ToastOverlay
from backend.contract.resources import resource


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_both_themes_have_the_same_names():
    assert LIGHT.keys() == DARK.keys()


@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("ink", "ground"),
    [
        ("text", "card"), ("text", "window"), ("text", "selection"), ("muted", "card"), ("muted", "sidebar"),
        ("faint", "card"), ("accent_text", "accent_soft"), ("on_accent", "accent"), ("success", "card"),
        ("danger", "card"), ("warning", "card"), ("text", "warning_soft"), ("text", "danger_soft"),
        ("tooltip_text", "tooltip"), *[("token_text", f"token_{i}") for i in range(6)],
    ],
)  # fmt: skip
def test_words_can_be_read(tokens: dict[str, str], ink: str, ground: str):
    assert contrast(tokens[ink], tokens[ground]) >= (4.5 if ink != "on_accent" else 4.0)


def test_every_icon_can_be_drawn(styled):
    icons = sorted(resource("icons").glob("*.svg"))
    assert len(icons) >= 25
    for path in icons:
        picture = theme.pixmap(path.stem, "accent", 24).toImage()
        assert any(picture.pixelColor(x, y).alpha() for x in range(24) for y in range(24)), path.stem


def test_a_spin_box_shows_its_number(qtbot, styled):
    # Qt 6.11 gave the line edit of a styled spin box no room at all.
    box = QSpinBox(minimum=0, maximum=64, value=8)
    qtbot.addWidget(box)
    box.resize(120, 32)
    option = QStyleOptionSpinBox()
    option.initFrom(box)
    area = box.style().subControlRect(
        QStyle.ComplexControl.CC_SpinBox, option, QStyle.SubControl.SC_SpinBoxEditField, box
    )
    assert area.width() > 60


def test_a_switch_of_theme_reaches_widgets_that_are_there(qtbot, styled):
    pill = Pill("Training", "accent")
    qtbot.addWidget(pill)
    pill.resize(pill.sizeHint())
    colors = []
    for choice in ("dark", "light"):
        theme.apply(styled, choice)
        colors.append(pill.grab().toImage().pixelColor(8, 11).name())
    assert colors == [DARK["accent_soft"], LIGHT["accent_soft"]]


class Follower(QWidget):
    """Counts how often it is told of a look."""

    def __init__(self) -> None:
        super().__init__()
        self.told = 0
        theme.follow(self)

    def apply_theme(self) -> None:
        self.told += 1


def test_the_look_that_is_there_already_styles_nothing_anew(qtbot, styled):
    follower = Follower()
    qtbot.addWidget(follower)
    theme.apply(styled, "light", theme.text_size())
    assert follower.told == 0
    theme.apply(styled, "dark")
    theme.apply(styled, "light")
    assert follower.told == 2


def test_a_tile_tells_caption_and_value(qtbot, styled):
    tile = KpiTile("Training loss")
    qtbot.addWidget(tile)
    tile.set_value("0.4811", "at step 743")
    assert QAccessible.queryAccessibleInterface(tile).text(QAccessible.Text.Name) == "Training loss: 0.4811"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_pill_can_be_painted(qtbot, styled, kind: str):
    pill = Pill("State", kind)
    qtbot.addWidget(pill)
    pill.resize(pill.sizeHint())
    assert not pill.grab().isNull()


def test_a_page_as_a_whole_has_no_ring(qtbot, styled):
    window = QWidget()
    qtbot.addWidget(window)
    ring = FocusRing(window)
    column = QVBoxLayout(window)
    area, table = PageArea(QWidget()), TextTable("Metrics")
    for widget in (area, table):
        widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        column.addWidget(widget)
    window.show()
    ring._on_focus_changed(None, area)
    assert ring.isHidden()
    ring._on_focus_changed(area, table)
    assert ring.parent() is table


def test_a_toast_carries_one_button_and_is_gone_after_it(qtbot, styled):
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(600, 400)
    overlay = ToastOverlay(window)
    opened: list[str] = []
    overlay.show_message("success", "Wrote it.", ToastAction("Open folder", "folder", lambda: opened.append("folder")))
    toast = overlay.findChildren(Toast)[0]
    assert toast.button is not None
    toast.button.click()
    assert opened == ["folder"]
    assert overlay.messages() == []


@pytest.fixture
def window(qtbot, styled) -> QWidget:
    """One of 900 × 600 that is not shown yet."""
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(900, 600)
    return window


def test_toasts_stack_and_the_same_words_are_not_repeated(window: QWidget):
    window.show()
    overlay = ToastOverlay(window)
    for text in ("one", "two", "one", "three", "four", "five"):
        overlay.show_message("info", text)
    assert overlay.messages() == ["one", "three", "four", "five"]
    assert len(overlay.messages()) == MOST
    assert window.rect().contains(overlay.geometry())


def test_toasts_stay_above_a_bar_while_it_is_visible(window: QWidget):
    bar = QWidget(window)
    bar.setGeometry(0, 540, 900, 50)
    window.show()
    overlay = ToastOverlay(window)
    overlay.stay_above(bar)
    overlay.show_message("info", "Copied it.")
    assert overlay.geometry().bottom() < bar.geometry().top()
    bar.hide()
    assert overlay.geometry().bottom() > 540
    bar.show()
    assert overlay.geometry().bottom() < bar.geometry().top()
    higher = QWidget(window)
    higher.setGeometry(0, 480, 900, 50)
    overlay.stay_above(higher)
    higher.show()
    assert overlay.geometry().bottom() < higher.geometry().top()
    higher.hide()
    assert bar.geometry().top() > overlay.geometry().bottom() > 480


def test_toasts_follow_a_bar_that_is_moved_with_what_contains_it(window: QWidget):
    card = QWidget(window)
    card.setGeometry(0, 100, 900, 200)
    bar = QWidget(card)
    bar.setGeometry(500, 150, 400, 50)
    overlay = ToastOverlay(window)
    overlay.stay_above(bar)
    window.show()
    overlay.show_message("info", "Copied it.")
    assert overlay.geometry().top() > 300, "the corner is free"
    card.move(0, 380)
    assert overlay.geometry().bottom() < bar.mapTo(window, bar.rect().topLeft()).y()


def test_a_toast_that_is_closed_goes_and_the_last_takes_the_overlay_along(qtbot, styled):
    window = QWidget()
    qtbot.addWidget(window)
    window.show()
    overlay = ToastOverlay(window)
    for text in ("one", "two"):
        overlay.show_message("info", text)
    for left in (["two"], []):
        overlay.findChildren(IconToolButton)[0].click()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        assert overlay.messages() == left
    assert overlay.isHidden()


def test_icon_of_a_banner_is_beside_its_line(qtbot, styled):
    banner = Banner()
    qtbot.addWidget(banner)
    banner.buttons.addWidget(QPushButton("Retry"))
    banner.resize(600, 60)
    banner.show_message("error", "The file is empty.")
    banner.show()
    [icon] = banner.findChildren(IconLabel)
    [sentence] = [one for one in banner.findChildren(QLabel) if one.text() == "The file is empty."]
    assert abs(icon.geometry().center().y() - sentence.geometry().center().y()) <= 2


def test_a_banner_is_hidden_until_it_has_something_to_say(qtbot, styled):
    banner = Banner()
    qtbot.addWidget(banner)
    assert banner.isHidden()
    banner.show_message("error", "The file is empty; choose another one.")
    assert not banner.isHidden()
    banner.clear()
    assert banner.isHidden()


def test_a_shortened_label_tells_the_whole(qtbot, styled):
    made = ElidedLabel("a very long path " * 20)
    qtbot.addWidget(made)
    made.resize(100, 20)
    assert made.toolTip() == "a very long path " * 20


def test_a_label_cut_to_a_few_letters_is_left_to_its_tooltip(qtbot):
    made = ElidedLabel("a common name", least_letters=8)
    qtbot.addWidget(made)
    made.resize(40, made.sizeHint().height())
    empty = made.grab().toImage()
    made.setText("")
    assert made.grab().toImage() == empty
    made.setText("a common name")
    made.resize(300, made.height())
    assert made.grab().toImage() != empty.scaled(300, made.height())
    assert made.toolTip() == "a common name"


def test_a_label_of_two_lines_shows_twice_the_words(qtbot, styled):
    words = "Evaluation loss has increased for two evaluations; the best was step 300."
    one, two = ElidedLabel(words), ElidedLabel(words, lines=2)
    pictures = []
    for made in (one, two):
        qtbot.addWidget(made)
        made.resize(300, 40)
        image = made.grab().toImage()
        ground = image.pixel(0, 0)
        pictures.append(sum(image.pixel(x, y) != ground for x in range(300) for y in range(40)))
    assert pictures[1] > 1.3 * pictures[0]


@pytest.mark.parametrize("words", ["reviews_of_restaurants_in_the_whole_country_cleaned.csv", "x" * 255])
def test_a_question_cuts_no_name_however_long(qtbot, styled, words: str):
    page = QWidget()
    qtbot.addWidget(page)
    question = Question(page, "Delete run", f"Move “{words}” to the trash?", f"It lies in /home/you/{words}.")
    question.open()
    for line in question.findChildren(QLabel):
        room = QRect(0, 0, line.width(), 0)
        taken = line.fontMetrics().boundingRect(room, int(Qt.TextFlag.TextWordWrap), line.text())
        assert (taken.width() <= line.width(), taken.height() <= line.height()) == (True, True), line.text()
    question.done(0)


def test_an_empty_state_gives_its_sentence_the_room_it_needs(qtbot, styled):
    empty = EmptyState("target", "Nothing", "A sentence that is long enough to be wrapped into lines. " * 3, "Go")
    qtbot.addWidget(empty)
    assert empty._sentence.height() >= 3 * empty._sentence.fontMetrics().height()
    with qtbot.waitSignal(empty.action_clicked):
        empty._button.click()


def test_progress_is_bounded_and_told(qtbot, styled):
    bar = ThinProgressBar()
    qtbot.addWidget(bar)
    bar.set_fraction(1.7)
    assert bar.fraction() == 1.0
    bar.set_fraction(0.25)
    assert bar.accessibleDescription() == "25%"


def test_a_long_path_shows_its_end(qtbot, styled):
    pictures = []
    for start in ("/home/one/", "/mnt/quite/other/"):
        line = PathLine(start + "folder/" * 30 + "train.csv")
        qtbot.addWidget(line)
        line.resize(220, 32)
        pictures.append(line.grab().toImage())
    assert pictures[0] == pictures[1]


def test_several_paths_do_not_look_like_the_last_one(qtbot, styled):
    field = PathField("Training data", "")
    qtbot.addWidget(field)
    paths = [f"/home/one/novels/chapter{number}.txt" for number in range(4)]
    field.set_value(paths)
    assert field.line.shortened(150).startswith("4 files: chapter0")
    field.set_value(paths[3])
    assert field.line.shortened(150).endswith("chapter3.txt")


def test_a_name_too_long_for_its_box_keeps_both_ends(qtbot, styled):
    long = "text_classification · a-folder-whose-name-tells-every-setting-lr-3e-5-seed-42"
    pictures = []
    for text in (long, f"{long[:-1]}7", long.replace("every", "some")):
        box = QuietComboBox()
        qtbot.addWidget(box)
        box.addItem(text)
        box.setFixedWidth(260)
        pictures.append(box.grab().toImage())
    assert pictures[0] != pictures[1]
    assert pictures[0] == pictures[2]


def test_buttons_take_as_many_lines_as_they_need(qtbot):
    buttons = [QPushButton(words) for words in ("Switch to masked language modeling", "Back", "Undo")]
    panel, row = QWidget(), ButtonRow(*buttons)
    qtbot.addWidget(panel)
    row.setParent(panel)
    row.resize(row.sizeHint())
    panel.show()
    assert {button.y() for button in buttons} == {0}, "side by side"
    row.resize(row.minimumSizeHint().width(), 200)
    assert 0 == buttons[0].y() < buttons[1].y() == buttons[2].y()
    assert row.heightForWidth(row.width()) == 2 * buttons[0].sizeHint().height()
    assert all(row.rect().contains(button.geometry()) for button in buttons)
    buttons[0].hide()
    qtbot.waitUntil(lambda: buttons[1].y() == 0)


def test_buttons_that_got_their_words_while_hidden_show_them_whole(qtbot):
    buttons = [QPushButton("Back"), QPushButton("Undo")]
    panel, row = QWidget(), ButtonRow(*buttons)
    qtbot.addWidget(panel)
    row.setParent(panel)
    row.resize(600, 40)
    panel.show()
    row.hide()
    buttons[0].setText("Switch to masked language modeling")
    row.show()
    assert buttons[0].width() >= buttons[0].sizeHint().width()


def test_text_of_two_lines_is_cut_to_two(qtbot, styled):
    narrow = ElidedLabel("könnte „first“ oder „second“ sein", "faint", lines=2)
    qtbot.addWidget(narrow)
    narrow.resize(64, narrow.sizeHint().height() + 40)
    picture = narrow.grab().toImage()
    paper = picture.pixel(0, 0)
    inked = [y for y in range(picture.height()) if any(picture.pixel(x, y) != paper for x in range(picture.width()))]
    assert inked[-1] - inked[0] <= narrow.sizeHint().height() * picture.devicePixelRatio()
