"""The widgets that show one predicted row: marks stand where they belong, whatever the script."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QToolTip, QVBoxLayout, QWidget

from app.widgets.page_layout import PageArea
from app.widgets.plots.confusion_matrix import HEAD, ConfusionMatrix
from app.widgets.plots.label_bars import SHOWN, LabelBars, bars_of
from app.widgets.plots.number_scale import NumberScale
from app.widgets.plots.reliability_diagram import ReliabilityDiagram
from app.widgets.plots.scatter_plot import ScatterPlot
from app.widgets.row_views.text_views import FillList
from app.widgets.text.marked_text import MarkedText, TextRun
from app.widgets.text.text_editor import MAX_LINES, TypedText
from backend.contract.rpc.predictions import NumberPoint, ReliabilityBin


def shown(qtbot, widget, width: int = 400, height: int = 300):
    qtbot.addWidget(widget)
    widget.resize(width, height)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


@pytest.mark.parametrize("sentence", [("He met ", "Ada"), ("פגש את ", "עדה"), ("彼は", "エイダ"), ("🙂🙂 met ", "𝒜da")])
def test_a_mark_covers_its_letters(qtbot, styled, sentence: tuple[str, str]):
    text = shown(qtbot, MarkedText("Text"))
    text.show_pieces([TextRun(sentence[0]), TextRun(sentence[1], "token_0", tag="PER"), TextRun(".")])
    [mark] = text._marks
    [box] = text._boxes(mark)
    alone = text.fontMetrics().horizontalAdvance(sentence[1])
    assert alone * 0.7 < box.width() < alone + 60
    assert text.marked() == [sentence[1]]


def test_a_mark_over_two_lines_has_two_boxes(qtbot, styled):
    text = shown(qtbot, MarkedText("Text"), width=120)
    text.show_pieces([TextRun("one two three four five six seven", "token_0")])
    boxes = list(text._boxes(text._marks[0]))
    assert len(boxes) > 1
    assert all(box.left() + 3 >= 0 and box.right() <= 124 for box in boxes)


def test_pieces_that_follow_each_other_have_one_outline(qtbot, styled):
    text = shown(qtbot, MarkedText("Text"))
    text.show_pieces([TextRun("their ", outline="success"), TextRun("spirit", "danger_soft", "success"), TextRun(" x")])
    assert text.outlined() == ["their spirit"]


def test_tags_are_not_copied(qtbot, styled):
    text = shown(qtbot, MarkedText("Text"))
    text.show_pieces([TextRun("𝒜da", "token_0", tag="PER"), TextRun(" met Bob")])
    text.selectAll()
    qtbot.keyClick(text, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "𝒜da met Bob"


def test_marks_are_found_by_mouse_and_keys(qtbot, styled):
    text = shown(qtbot, MarkedText("Text"))
    text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByKeyboard)
    text.show_pieces([TextRun("one", "token_0", tag="A"), TextRun(" "), TextRun("two", outline="border")])
    second = next(text._boxes(text._marks[1])).center().toPoint()
    with qtbot.waitSignal(text.mark_hovered) as hovered:
        qtbot.mouseMove(text.viewport(), second)
    assert hovered.args == [1]
    with qtbot.waitSignal(text.mark_hovered) as hovered:
        qtbot.keyClick(text, Qt.Key.Key_Home)
    assert hovered.args == [0]


def test_a_text_is_as_high_as_its_lines(qtbot, styled):
    text = shown(qtbot, MarkedText("Text"), width=200)
    text.show_text("word " * 200)
    high = text.height()
    text.show_text("word")
    assert high > 10 * text.height()
    assert text.verticalScrollBar().maximum() == 0


def test_a_long_context_begins_at_its_first_mark(qtbot, styled):
    text = shown(qtbot, MarkedText("Text", fills=True))
    text.show_pieces([TextRun("word " * 2000), TextRun("answer", "info_soft"), TextRun(" word" * 500)])
    qtbot.waitUntil(lambda: text.verticalScrollBar().value() > 0)
    [box] = text._boxes(text._marks[0])
    assert 0 <= box.top() - text.verticalScrollBar().value() < text.viewport().height()


def test_the_likeliest_label_stands_first_and_mistakes_are_marked():
    bars = bars_of({"a": 0.2, "b": 0.7, "c": 0.1}, "b", "a")
    assert [(bar.label, bar.mark) for bar in bars] == [("b", "wrong"), ("a", "actual"), ("c", "")]


def test_of_forty_labels_the_actual_one_is_shown_at_once(qtbot, styled):
    bars = shown(qtbot, LabelBars())
    bars.show_bars(bars_of({f"label {n}": 1 / (n + 2) for n in range(40)}, "label 0", "label 39"))
    assert len(bars.visible_bars()) == SHOWN + 1
    assert bars.visible_bars()[-1].mark == "actual"
    bars._more.click()
    assert len(bars.visible_bars()) == 40
    bars.grab()


def test_numbers_outside_the_range_widen_it(qtbot, styled):
    scale = shown(qtbot, NumberScale())
    scale.show_numbers(7.0, 1.0, (0.0, 5.0))
    assert scale.x_of(0.0) < scale.x_of(1.0) < scale.x_of(5.0) < scale.x_of(7.0) < scale.width()
    assert scale.error() == 6.0


def test_one_number_alone_stands_in_the_middle(qtbot, styled):
    scale = shown(qtbot, NumberScale())
    scale.show_numbers(3.0, None)
    assert scale.x_of(3.0) == pytest.approx(scale.width() / 2)


def test_fills_of_another_row_replace_the_first(qtbot, styled):
    fills = shown(qtbot, FillList())
    fills.show_fills([[("capital", 0.7), ("city", 0.1)], [("big", 0.5)]])
    fills.show_fills([[("heart", 0.4)]])
    assert fills.candidates() == [["heart"]]


@pytest.fixture
def matrix(qtbot, styled) -> ConfusionMatrix:
    made = shown(qtbot, ConfusionMatrix())
    made.show_counts(["no", "yes"], [[5, 1], [2, 7]])
    return made


def test_a_cell_is_said_in_words(matrix: ConfusionMatrix):
    assert matrix.words_of((1, 0)) == "2 rows: actual yes, predicted no (22.2% of this actual label)"
    for cell in ((1, 0), (HEAD, 1), (0, HEAD)):
        assert matrix.part_at(QPointF(matrix.box_of(*cell).center())) == cell
    assert matrix.part_at(QPointF(4, 4)) is None


def bars() -> ReliabilityDiagram:
    made = ReliabilityDiagram()
    made.show_bins([ReliabilityBin(low=0.5, high=1.0, count=8, confidence=0.9, accuracy=0.75)])
    return made


def dots() -> ScatterPlot:
    made = ScatterPlot()
    made.show_points([NumberPoint(row=11, actual=5.0, predicted=4.2)], 0.0, 5.0)
    return made


def cells() -> ConfusionMatrix:
    made = ConfusionMatrix()
    made.show_counts(["no", "yes"], [[5, 1], [2, 7]])
    return made


@pytest.mark.parametrize(
    ("make", "place", "words"),
    [
        (
            bars,
            lambda plot: plot.box_of(0).center(),
            "8 rows with confidence 0.5 to 1.0: 75.0% correct, 90.0% expected",
        ),
        (dots, lambda plot: plot.place_of(0), "Row 12: predicted 4.2, actual 5"),
        (
            cells,
            lambda plot: plot.box_of(0, 1).center(),
            "1 row: actual no, predicted yes (16.7% of this actual label)",
        ),
    ],
)
def test_a_plot_tells_in_words_what_is_under_the_mouse(qtbot, styled, make, place, words: str):
    plot = shown(qtbot, make())
    qtbot.mouseMove(plot, place(plot).toPoint())
    qtbot.waitUntil(lambda: QToolTip.text() == words)
    assert plot.cursor().shape() == Qt.CursorShape.PointingHandCursor
    qtbot.mouseMove(plot, QPoint(2, 2))
    qtbot.waitUntil(lambda: plot.cursor().shape() == Qt.CursorShape.ArrowCursor)


def test_the_chosen_cell_again_takes_the_choice_back(qtbot, matrix: ConfusionMatrix):
    told: list[tuple[str, str]] = []
    matrix.pair_chosen.connect(lambda *pair: told.append(pair))
    for _ in range(2):
        qtbot.mouseClick(matrix, Qt.MouseButton.LeftButton, pos=matrix.box_of(0, 1).center().toPoint())
    assert told == [("no", "yes"), ("", "")]


def test_keys_choose_a_cell(qtbot, matrix: ConfusionMatrix):
    with qtbot.waitSignal(matrix.pair_chosen) as signal:
        qtbot.keyClick(matrix, Qt.Key.Key_Down)
        qtbot.keyClick(matrix, Qt.Key.Key_Return)
    assert signal.args == ["yes", "no"]


def test_forty_labels_find_room(qtbot, styled):
    matrix = shown(qtbot, ConfusionMatrix())
    labels = [f"a rather long label {n}" for n in range(40)]
    matrix.show_counts(labels, [[1] * 40 for _ in labels])
    matrix.resize(matrix.minimumSizeHint())
    assert matrix.box_of(39, 39).right() <= matrix.width()
    matrix.grab()


class Counted(list[str]):
    """Labels that know how often somebody went through all of them."""

    walks = 0

    def __iter__(self) -> Iterator[str]:
        self.walks += 1
        return super().__iter__()


def test_painting_a_hundred_labels_measures_them_once(qtbot, styled):
    labels = Counted(f"a rather long label {n}" for n in range(100))
    matrix = shown(qtbot, ConfusionMatrix())
    matrix.show_counts(labels, [[1] * 100 for _ in range(100)])
    matrix.resize(matrix.minimumSizeHint())
    matrix.grab()
    assert labels.walks < 10  # once for every cell froze the window for minutes


def test_a_typed_text_grows_to_a_limit(qtbot, styled):
    field = shown(qtbot, TypedText("Text"))
    small = field.height()
    field.setPlainText("\n".join("line" for _ in range(50)))
    assert small < field.height() < (MAX_LINES + 3) * field.fontMetrics().lineSpacing()


def test_a_matrix_and_a_scroll_bar_come_to_rest_at_every_height(qtbot, styled):
    """One that told another height after each resizing went round in circles with the bar until the stack was full."""
    matrix, holder = ConfusionMatrix(), QWidget()
    matrix.show_counts(["cat", "dog", "cow"], [[5, 1, 0], [2, 7, 1], [0, 0, 4]])
    column = QVBoxLayout(holder)
    column.addWidget(matrix)
    column.addStretch(1)
    area = shown(qtbot, PageArea(holder), width=330)
    heights = []
    for height in range(200, 400, 3):
        area.resize(330, height)
        QApplication.processEvents()
        heights.append(matrix.height())
        assert area.verticalScrollBar().isVisible() is (holder.height() > area.viewport().height())
    assert set(heights) == {matrix.heightForWidth(matrix.width())}


def test_bars_mark_each_of_several_labels():
    bars = bars_of({"a": 0.9, "b": 0.7, "c": 0.1, "a b": 0.2}, "a | b", "a | c")
    assert {bar.label: bar.mark for bar in bars} == {"a": "right", "b": "wrong", "c": "actual", "a b": ""}
