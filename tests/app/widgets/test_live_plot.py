from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QMouseEvent
from PySide6.QtWidgets import QApplication

from app import theme
from app.widgets.plots.live_plot import LivePlot, SeriesStyle, redraw_turns, short_number
from app.widgets.plots.plot_axis import PlotAxis
from app.widgets.plots.plot_series import MAX_RAW, MAX_SMOOTH, RunningMean


@pytest.fixture
def plot(qtbot, styled):
    made = LivePlot("Loss", [SeriesStyle("loss", "training", "smoothed"), SeriesStyle("eval", "evaluation", "markers")])
    qtbot.addWidget(made)
    made.resize(700, 400)
    with qtbot.waitExposed(made):
        made.show()
    return made


def drawn(plot: LivePlot, key: str) -> tuple[np.ndarray, np.ndarray]:
    return plot.series[key]._line.getData()


def test_the_whole_curve_is_always_in_view(qtbot, plot: LivePlot):
    plot.append("loss", np.arange(1000), np.linspace(3, 1, 1000))
    plot.redraw()
    plot.append("loss", np.arange(1000, 5000), np.linspace(1, 0.2, 4000))
    plot.redraw()
    (left, right), (low, high) = plot._view.viewRange()
    assert left <= 0 < 4999 <= right
    assert low <= 0.2 < 3 <= high


def test_two_hundred_thousand_steps_are_few_points_and_keep_their_extremes(plot: LivePlot):
    losses = np.random.default_rng(0).normal(1, 0.1, 200_000)
    losses[123_456] = 9.0
    plot.append("loss", np.arange(200_000), losses)
    plot.redraw()
    xs, ys = drawn(plot, "loss")
    assert len(xs) <= MAX_RAW
    assert ys.max() == 9.0
    assert len(plot.series["loss"]._strong.getData()[0]) <= MAX_SMOOTH


def test_a_resumed_run_drops_the_steps_that_are_void(plot: LivePlot):
    plot.append("loss", np.arange(100), np.ones(100))
    plot.truncate_after(49)
    plot.append("loss", np.arange(50, 60), np.zeros(10))
    plot.redraw()
    xs, ys = drawn(plot, "loss")
    assert list(xs) == list(range(60))
    assert ys.sum() == 50


def test_points_that_came_while_hidden_are_drawn_when_shown(qtbot, plot: LivePlot):
    plot.hide()
    plot.append("loss", [0, 1, 2], [3, 2, 1])
    plot.show()
    qtbot.waitUntil(lambda: len(drawn(plot, "loss")[0]) == 3)


def test_logarithmic_scale_leaves_out_what_has_no_logarithm(plot: LivePlot):
    plot.append("loss", [0, 1, 2], [100, 0, 1])
    plot.set_logarithmic(True)
    plot.redraw()
    ys = drawn(plot, "loss")[1]
    assert ys[0] == 2
    assert np.isnan(ys[1])
    assert ys[2] == 0


def test_a_loss_that_is_no_number_makes_a_gap(plot: LivePlot):
    plot.append("loss", [0, 1, 2], [1, float("nan"), 1])
    plot.redraw()
    assert np.isnan(drawn(plot, "loss")[1][1])


def test_the_crosshair_tells_the_values(plot: LivePlot):
    plot.append("loss", np.arange(101), np.linspace(2, 1, 101))
    plot.redraw()
    hover(plot, 50, 1.5)
    assert plot.crosshair.readout.text() == "step 50 · training 1.5 · mean 1.5"
    assert plot.crosshair.readout.isVisible()


def hover(plot: LivePlot, x: float, y: float) -> None:
    plot.crosshair.on_mouse_moved(plot._view.mapViewToScene(QPointF(x, y)))


def test_other_plots_follow_the_crosshair(qtbot, styled, plot: LivePlot):
    other = LivePlot("Metrics", [SeriesStyle("f1", "F1", "markers")])
    qtbot.addWidget(other)
    plot.hovered.connect(other.show_hover)
    with qtbot.waitExposed(other):
        other.show()
    for each, key in ((plot, "loss"), (other, "f1")):
        each.append(key, [0, 50, 100], [0.1, 0.2, 0.3])
        each.redraw()
    hover(plot, 50, 0.2)
    assert "F1 0.2" in other.crosshair.readout.text()
    plot.crosshair.on_mouse_moved(QPointF(-10, -10))
    assert not other.crosshair.readout.isVisible()


def test_the_crosshair_says_what_marks_are_there(plot: LivePlot):
    plot.append("loss", np.arange(101), np.linspace(2, 1, 101))
    plot.set_marks([(50, "best", "success")])
    plot.set_ticks([50, 100], "checkpoint")
    plot.redraw()
    hover(plot, 50, 1.5)
    assert plot.crosshair.readout.title == "step 50 · best · checkpoint"
    assert "checkpoint" in plot._legend.text()


def test_keys_do_what_the_mouse_does(qtbot, plot: LivePlot):
    plot.append("loss", np.arange(101), np.ones(101))
    plot.redraw()
    whole = plot._view.viewRange()[0]
    qtbot.keyClick(plot._widget, Qt.Key.Key_Right)
    assert plot.crosshair.x > 50
    qtbot.keyClick(plot._widget, Qt.Key.Key_Plus)
    left, right = plot._view.viewRange()[0]
    assert whole[0] < left < right < whole[1]
    qtbot.keyClick(plot._widget, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert plot._view.viewRange()[0][0] > left
    qtbot.keyClick(plot._widget, Qt.Key.Key_Home)
    plot.redraw()
    assert plot._view.viewRange()[0] == whole


def drag(qtbot, plot: LivePlot, modifier=Qt.KeyboardModifier.NoModifier) -> None:
    port = plot._widget.viewport()
    begin, end = (plot._view.sceneBoundingRect().center().toPoint() + QPoint(dx, dx // 2) for dx in (-80, 80))
    qtbot.mousePress(port, Qt.MouseButton.LeftButton, modifier, begin)
    for share in (0.3, 0.6, 1.0):
        place = QPointF(begin + (end - begin) * share)
        moved = QMouseEvent(
            QEvent.Type.MouseMove, place, QPointF(port.mapToGlobal(place.toPoint())),
            Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton, modifier,
        )  # fmt: skip
        QApplication.sendEvent(port, moved)
    qtbot.mouseRelease(port, Qt.MouseButton.LeftButton, modifier, end)


def test_dragging_zooms_into_a_box_and_a_double_click_comes_back(qtbot, plot: LivePlot):
    plot.append("loss", np.arange(1001), np.linspace(2, 1, 1001))
    plot.redraw()
    whole = plot._view.viewRange()
    drag(qtbot, plot)
    (left, right), (low, high) = plot._view.viewRange()
    assert right - left < 0.6 * (whole[0][1] - whole[0][0])
    assert high - low < 0.8 * (whole[1][1] - whole[1][0])
    qtbot.mouseDClick(plot._widget.viewport(), Qt.MouseButton.LeftButton)
    plot.redraw()
    assert plot._view.viewRange() == whole


def test_dragging_with_shift_moves_what_is_shown(qtbot, plot: LivePlot):
    plot.append("loss", np.arange(1001), np.linspace(2, 1, 1001))
    plot.redraw()
    (left, right), _ = plot._view.viewRange()
    drag(qtbot, plot, Qt.KeyboardModifier.ShiftModifier)
    (new_left, new_right), _ = plot._view.viewRange()
    assert new_left < left
    assert new_right - new_left == pytest.approx(right - left)


def test_without_smoothing_the_points_themselves_are_drawn(plot: LivePlot):
    plot.append("loss", np.arange(100), np.tile([1.0, 2.0], 50))
    plot.set_smoothing(0)
    plot.redraw()
    assert not plot.series["loss"]._strong.isVisible()
    assert plot.series["loss"].mean_at(50) is None
    plot.set_smoothing(0.1)
    plot.redraw()
    light = plot.series["loss"]._strong.getData()[1]
    assert plot.series["loss"]._strong.isVisible()
    assert np.ptp(light[20:80]) < 0.2
    assert plot.series["loss"].mean_at(50) == pytest.approx(1.5, abs=0.1)


def test_a_line_is_broken_where_the_run_was_down(plot: LivePlot):
    plot.append("loss", [0, 10, 20, 500, 510], [3, 2, 2, 2, 1])
    plot.append("eval", [10, 510], [2, 1])
    plot.set_breaks([20])
    plot.redraw()
    xs, ys = drawn(plot, "loss")
    assert list(xs) == [0, 10, 20, 500, 500, 510]
    assert np.isnan(ys[3])
    assert np.isnan(plot.series["eval"]._strong.getData()[1][1])


@pytest.mark.parametrize(
    ("kind", "spacing", "values", "words"),
    [
        ("duration", 30, [0, 30, 90], ["0 s", "30 s", "1:30"]),
        ("duration", 1800, [0, 1800, 5400], ["0 min", "30 min", "1 h 30"]),
        ("duration", 43_200, [43_200, 216_000], ["12 h", "2 d 12 h"]),
        ("count", 500_000, [0, 500_000, 1_500_000], ["0", "0.5 M", "1.5 M"]),
        ("count", 200, [200, 400], ["200", "400"]),
        ("number", 1000, [1000, 20_000], ["1\u202f000", "20\u202f000"]),
    ],
)
def test_ticks_read_as_people_write_them(qtbot, styled, kind: str, spacing: float, values: list, words: list):
    axis = PlotAxis("bottom")
    axis.set_kind(kind)
    assert axis.tickStrings(values, 1.0, spacing) == words


def test_ticks_of_time_stand_at_whole_units(qtbot, styled):
    axis = PlotAxis("bottom")
    axis.set_kind("duration")
    assert axis.tickSpacing(0, 7200, 450) == [(1800, 0)]
    assert axis.tickSpacing(0, 100, 450) == [(30, 0)]


@pytest.mark.parametrize("suffix", ["png", "svg", "csv"])
def test_a_plot_is_saved_in_the_form_of_its_name(qtbot, plot: LivePlot, tmp_path: Path, suffix: str):
    plot.append("loss", [1, 2, 3], [0.5, float("nan"), 0.25])
    plot.append("eval", [2], [0.75])
    plot.redraw()
    file = tmp_path / f"loss.{suffix}"
    with qtbot.waitSignal(plot.message) as said:
        plot.saving.save(file)
    assert said.args[0] == "success"
    if suffix == "csv":
        assert file.read_text() == "step,training,evaluation\n1,0.5,\n2,,0.75\n3,0.25,\n"
    elif suffix == "svg":
        text = file.read_text()
        assert "<svg" in text
        assert "Loss" in text
        assert text.count("<path") + text.count("<polyline") > 10
    else:
        picture = QImage(str(file))
        assert picture.width() == 2 * plot.saving._picture().size().width()
        colors = {picture.pixelColor(x, picture.height() // 2).name() for x in range(picture.width())}
        assert len(colors) > 2


@pytest.mark.parametrize("suffix", ["png", "svg", "csv"])
def test_a_place_that_cannot_be_written_is_named(qtbot, plot: LivePlot, tmp_path: Path, suffix: str):
    plot.append("loss", [1, 2], [0.5, 0.25])
    with qtbot.waitSignal(plot.message) as said:
        plot.saving.save(tmp_path / "nowhere" / f"loss.{suffix}")
    assert said.args[0] == "error"
    assert "create it first" in said.args[1]


def test_zoom_stays_while_points_arrive_until_everything_is_asked_for(plot: LivePlot):
    plot.append("loss", np.arange(1000), np.ones(1000))
    plot.redraw()
    plot._view.setRange(xRange=(100, 200), yRange=(0, 2), padding=0)
    plot._on_zoomed()
    plot.append("loss", np.arange(1000, 2000), np.ones(1000))
    plot.redraw()
    assert plot._view.viewRange()[0] == [100, 200]
    plot.show_all()
    plot.redraw()
    assert plot._view.viewRange()[0][1] >= 1999


def test_the_background_is_the_cards(plot: LivePlot, styled):
    for choice in ("dark", "light"):
        theme.apply(styled, choice)
        picture: QImage = plot.grab().toImage()
        inside = {picture.pixelColor(x, y).name() for x in range(200, 300) for y in (180, 187, 193)}  # between ticks
        assert theme.hex_color("card") in inside
        assert theme.hex_color("window") not in inside


def test_marks_are_lines_at_their_steps(plot: LivePlot):
    plot.set_marks([(40, "best", "success")])
    assert [item.value() for item in plot.marks.items] == [40]
    plot.clear()
    assert plot.marks.items == []


def test_a_screen_reader_hears_the_newest_value(plot: LivePlot):
    plot.append("loss", [1, 2], [0.5, 0.25])
    plot.redraw()
    assert plot.accessibleDescription() == "training 0.25 at 2"


@pytest.mark.parametrize(
    ("value", "text"), [(0.48114, "0.4811"), (1.01e-4, "1.01e-04"), (11627.3, "11\u202f627"), (0, "0")]
)
def test_numbers_are_short(value: float, text: str):
    assert short_number(value) == text


def test_running_mean_is_the_mean_of_the_neighbours():
    values = np.random.default_rng(1).normal(size=500)
    mean = RunningMean()
    for chunk in np.array_split(values, 7):
        mean.append(chunk)
    assert mean.at(np.array([0, 250, 499]), 11) == pytest.approx(
        [values[:6].mean(), values[245:256].mean(), values[494:].mean()]
    )


def test_running_mean_leaves_out_what_is_no_number():
    mean = RunningMean()
    mean.append(np.array([1.0, np.nan, 3.0]))
    assert list(mean.at(np.array([1]), 3)) == [2.0]


def test_a_plot_without_points_says_so(plot: LivePlot):
    assert plot._nothing.isVisible()
    assert not plot._widget.isVisible()
    plot.append("loss", [1, 2], [0.5, 0.4])
    assert plot._widget.isVisible()
    assert not plot._nothing.isVisible()


def test_words_that_would_stand_on_others_like_them_are_left_out(plot: LivePlot):
    plot.append("loss", np.arange(100), np.ones(100))
    near = [(float(x), "resumed", "muted") for x in (10, 12, 14, 16, 18, 20)]
    plot.set_marks([*near, (80, "resumed", "muted"), (14, "best", "success")])
    plot.redraw()
    shown = [
        (line[0], line[1])
        for line, item in zip(plot.marks.lines, plot.marks.items, strict=True)
        if item.label.isVisible()
    ]
    assert shown == [(20, "resumed"), (80, "resumed"), (14, "best")]


def test_the_words_of_marks_stand_below_each_other_and_above_the_curves(plot: LivePlot):
    plot.append("loss", np.arange(101), np.ones(101) * 2)
    plot.append("loss", [101, 102], [2.0, 1.0])
    plot.set_marks([(95, "resumed", "muted"), (100, "best", "success")])
    for _ in range(3):  # how many rows of words there are is known after the first drawing
        plot.redraw()
    (_, _), (low, high) = plot._view.viewRange()
    heights = [low + item.label.orthoPos * (high - low) for item in plot.marks.items]
    assert heights[0] < heights[1]
    height = plot.marks.items[0].label.boundingRect().height() * plot._view.viewPixelSize()[1]
    assert heights[0] - height > 2.0


def test_words_of_marks_are_left_out_of_a_plot_too_low_for_them(qtbot, plot: LivePlot):
    plot.append("loss", np.arange(100), np.ones(100))
    plot.set_marks([(50, "best", "success")])
    label = plot.marks.items[0].label
    for height, is_shown in ((420, True), (110, False), (420, True)):
        plot.setFixedHeight(height)
        plot.redraw()
        qtbot.waitUntil(lambda: label.isVisible() == is_shown)  # noqa: B023


def test_words_of_marks_leave_a_plot_that_becomes_too_low_although_its_range_stays(qtbot, plot: LivePlot):
    plot.append("loss", np.arange(101), np.linspace(0.05, 0.95, 101))
    plot.set_marks([(50, "best", "success")])
    label = plot.marks.items[0].label
    for _ in range(3):
        plot.redraw()
    qtbot.waitUntil(lambda: label.isVisible() and not redraw_turns()._waiting)
    plot.resize(700, 150)
    qtbot.waitUntil(lambda: not label.isVisible())


def test_words_of_marks_that_the_edge_would_cut_are_left_out(qtbot, plot: LivePlot):
    plot.append("loss", np.arange(101), np.linspace(1, 2, 101))
    plot.set_marks([(40, "lowest evaluation loss", "success")])
    label = plot.marks.items[0].label
    for width, is_shown in ((500, True), (200, False), (500, True)):
        plot.resize(width, 400)
        qtbot.waitUntil(lambda: label.isVisible() == is_shown)  # noqa: B023


@pytest.mark.parametrize("value", [0.04973, 0.33401, 692.61])
def test_an_axis_has_numbers_where_the_curve_hardly_varies(monkeypatch, plot: LivePlot, value: float):
    plot.append("loss", np.arange(100), np.ones(100) * value)
    plot.redraw()
    painted: list[str] = []
    axis = plot._axes["left"]
    monkeypatch.setattr(axis, "drawPicture", lambda _, line, ticks, texts: painted.extend(text for *_, text in texts))
    axis.picture = None
    plot.grab()
    assert len(painted) >= 2  # pyqtgraph leaves out those that are wider than the axis


def test_the_first_curve_lies_above_the_others(qtbot, styled):
    made = LivePlot("Metrics", [SeriesStyle("a", "a", "markers"), SeriesStyle("b", "b", "markers")])
    qtbot.addWidget(made)
    items = made._plot.items
    assert items.index(made.series["a"]._strong) > items.index(made.series["b"]._strong)


def click(qtbot, plot: LivePlot, x: float, y: float) -> None:
    place = plot._widget.mapFromScene(plot._view.mapViewToScene(QPointF(x, y)))
    qtbot.mouseClick(plot._widget.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_a_diverged_loss_turns_logarithmic_with_few_ticks_and_back(plot: LivePlot):
    plot.append("loss", np.arange(100), np.concatenate([np.ones(99), [1e30]]))
    plot.redraw()
    plot.set_logarithmic(True)
    axis = plot._plot.getAxis("left")
    assert sum(len(values) for _, values in axis.tickValues(*plot._view.viewRange()[1], 300)) < 60
    plot.set_logarithmic(False)
    assert plot._view.viewRange()[1][1] >= 1e30


def test_the_zoom_stays_at_its_values_when_the_scale_changes(plot: LivePlot):
    plot.append("loss", np.arange(100), np.linspace(5, 0.1, 100))
    plot.redraw()
    plot._view.setRange(xRange=(10, 20), yRange=(0.5, 2), padding=0)
    plot._view.sigRangeChangedManually.emit([True, True])
    plot.set_logarithmic(True)
    plot.redraw()
    assert np.allclose(plot._view.viewRange()[1], np.log10([0.5, 2]))
    plot.set_logarithmic(False)
    assert np.allclose(plot._view.viewRange()[1], [0.5, 2])


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0.31, 0.38, ["0.32", "0.34", "0.36"]),
        (0.05, 3.0, ["0.1", "1"]),
        (1e-4, 1e30, ["1", "10⁶", "10²⁴"]),
    ],
)
def test_a_logarithmic_axis_has_readable_ticks_however_wide_it_is(qtbot, low: float, high: float, shown: list[str]):
    axis = PlotAxis("left")
    axis.setLogMode(False, True)
    _, values = axis.tickValues(np.log10(low), np.log10(high), 300)[0]
    assert set(shown) <= set(axis.tickStrings(values, 1.0, 1.0))


def test_a_huge_number_on_an_axis_is_short(qtbot):
    assert PlotAxis("left").tickStrings([0.0, 2.5e29], 1.0, 5e28) == ["0", "2.5e29"]


def test_the_crosshair_stands_at_whole_steps(plot: LivePlot):
    plot.set_x("step", "whole")
    plot.append("loss", np.arange(100), np.ones(100))
    plot.redraw()
    plot.show_hover(12.4)
    assert plot.crosshair.readout.title == "step 12"


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_click_on_a_spike_finds_its_step_among_many(qtbot, plot: LivePlot, logarithmic: bool):
    losses = np.ones(20_000)
    losses[12_345] = 9.0
    plot.set_logarithmic(logarithmic)
    plot.append("loss", np.arange(20_000), losses)
    plot.redraw()
    with qtbot.waitSignal(plot.picked) as picked:
        click(qtbot, plot, 12_345, np.log10(9.0) if logarithmic else 9.0)
    assert picked.args == [12_345]


def test_a_click_far_from_any_point_takes_the_nearest_step(qtbot, plot: LivePlot):
    plot.append("loss", [10.0, 20.0, 1000.0], [1.0, 2.0, 3.0])
    plot.redraw()
    with qtbot.waitSignal(plot.picked) as picked:
        click(qtbot, plot, 700, 1.5)
    assert picked.args == [1000]


def test_what_was_picked_is_marked_until_it_is_forgotten(plot: LivePlot):
    plot.set_pin(12.0)
    assert plot._pin.isVisible()
    plot.set_pin(None)
    assert not plot._pin.isVisible()


def test_a_legend_without_room_beside_the_heading_stands_whole_below_it(qtbot, plot: LivePlot):
    plot.append("loss", [0, 1], [2.0, 1.0])
    plot.append("eval", [0, 1], [2.0, 1.5])
    plot.set_ticks([1], "checkpoint")
    plot.redraw()
    assert plot.corner.indexOf(plot._legend) >= 0
    plot.resize(260, 400)
    qtbot.waitUntil(lambda: plot.body.indexOf(plot._legend) >= 0)
    qtbot.waitUntil(lambda: plot._legend.height() >= plot._legend.heightForWidth(plot._legend.width()))
    plot.resize(700, 400)
    qtbot.waitUntil(lambda: plot.corner.indexOf(plot._legend) >= 0)


def test_words_that_come_to_a_narrow_plot_stand_below_the_heading_at_once(qtbot, plot: LivePlot):
    plot.resize(260, 400)
    plot.append("loss", [0, 1], [2.0, 1.0])
    plot.append("eval", [0, 1], [2.0, 1.5])
    plot.redraw()
    assert plot.body.indexOf(plot._legend) >= 0


def test_a_run_of_one_step_is_a_dot_in_the_middle_of_a_whole_axis(plot: LivePlot):
    plot.set_x("step", "whole")
    plot.append("loss", [1], [0.5])
    plot.redraw()
    (left, right), (low, high) = plot._view.viewRange()
    assert plot.series["loss"]._dots.isVisible()
    assert ((left + right) / 2, (low + high) / 2) == pytest.approx((1, 0.5))
    assert plot._axes["bottom"].tickSpacing(left, right, 600) == [(1, 0)]
    plot.append("loss", [2], [0.4])
    plot.redraw()
    assert not plot.series["loss"]._dots.isVisible()


def test_a_mark_beyond_the_view_does_not_reach_into_it(plot: LivePlot):
    plot.append("loss", np.arange(150, 400), np.ones(250))
    plot.set_marks([(108, "resumed", "muted"), (300, "best", "success")])
    plot.redraw()
    for _ in range(2):
        assert [item.isVisible() for item in plot.marks.items] == [False, True]
        plot.apply_theme()


def test_a_line_called_by_a_name_with_braces_shows_it_as_it_stands(plot: LivePlot):
    words = 'best {f1} of {value.__class__} <img src="file:///trap.png">'
    plot.append("loss", np.arange(10), np.ones(10))
    plot.set_marks([(5.0, words, "accent")])
    plot.redraw()
    assert plot.marks.items[0].label.textItem.toPlainText() == words


def test_values_that_no_range_holds_are_not_shown(plot: LivePlot):
    plot.append("loss", np.arange(2), np.array([-1e308, 1e308]))
    before = plot._view.viewRange()
    plot.redraw()
    assert plot._view.viewRange() == before
