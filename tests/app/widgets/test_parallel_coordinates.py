"""Lines over parallel axes: where they are, which one is meant, and that a click chooses it."""

from PySide6.QtCore import QPoint, QPointF, Qt

from app.core.runs.search_trials import Axis
from app.widgets.plots.parallel_coordinates import ParallelCoordinates

AXES = [
    Axis("Learning rate", (0.0, 1.0, 0.5), ((0.0, "1e-05"), (1.0, "0.001"))),
    Axis("Rank", (1.0, 0.0, None), ((0.0, "4"), (1.0, "8"))),
    Axis("Accuracy", (0.2, 0.9, 0.5), ((0.0, "0.5"), (1.0, "0.9"))),
]


def plot(qtbot) -> ParallelCoordinates:
    widget = ParallelCoordinates()
    qtbot.addWidget(widget)
    widget.resize(700, 300)
    widget.show_lines(AXES, ["Trial 1", "Trial 2", "Trial 3"], 1)
    return widget


def between(points: list[QPointF], share: float) -> QPointF:
    return points[0] + (points[1] - points[0]) * share


def test_line_crosses_each_axis_on_which_it_has_a_value(qtbot):
    widget = plot(qtbot)
    assert [len(widget.points_of(line)) for line in range(3)] == [3, 3, 2]
    left, right = widget.points_of(0)[0], widget.points_of(0)[-1]
    assert left.y() > right.y()  # 0 is at the bottom
    assert left.x() < right.x()


def test_nearest_line_is_meant(qtbot):
    widget = plot(qtbot)
    for line in (0, 1):
        assert widget.part_at(between(widget.points_of(line), 0.2)) == line
    assert widget.part_at(QPointF(5, 5)) is None


def test_click_chooses_a_trial(qtbot):
    widget = plot(qtbot)
    place = between(widget.points_of(1), 0.2)
    with qtbot.waitSignal(widget.line_chosen) as chosen:
        qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=QPoint(round(place.x()), round(place.y())))
    assert chosen.args == [1]


def test_it_is_painted_with_and_without_lines(qtbot):
    widget = plot(qtbot)
    with_lines = widget.grab().toImage()
    widget.show_lines((), (), None)
    assert widget.grab().toImage() != with_lines


def test_screen_reader_hears_the_trials(qtbot):
    assert plot(qtbot).accessibleDescription().startswith("3 trials; Trial 1")
