import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QImage

from app import theme
from app.widgets.live_plot import LivePlot, SeriesStyle, short_number
from app.widgets.plot_series import MOST_RAW, MOST_SMOOTH
from app.widgets.running_mean import RunningMean


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
    assert len(xs) <= MOST_RAW
    assert ys.max() == 9.0
    assert len(plot.series["loss"]._strong.getData()[0]) <= MOST_SMOOTH


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
    plot._on_mouse_moved(plot._view.mapViewToScene(QPointF(50, 1.5)))
    assert "step 50" in plot._legend.text()
    assert "1.5" in plot._legend.text()


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
    assert [item.value() for item in plot._mark_items] == [40]
    plot.clear()
    assert plot._mark_items == []


def test_a_screen_reader_hears_the_newest_value(plot: LivePlot):
    plot.append("loss", [1, 2], [0.5, 0.25])
    plot.redraw()
    assert plot.accessibleDescription() == "training 0.25 at 2"


@pytest.mark.parametrize(("value", "text"), [(0.48114, "0.4811"), (1.01e-4, "1.01e-04"), (11627.3, "11,627"), (0, "0")])
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


def test_the_words_of_marks_stand_below_each_other(plot: LivePlot):
    plot.set_marks([(80, "resumed", "muted"), (90, "resumed", "muted"), (100, "best", "success")])
    heights = [item.label.orthoPos for item in plot._mark_items]
    assert len(set(heights)) == 3


def test_the_first_curve_lies_above_the_others(qtbot, styled):
    made = LivePlot("Metrics", [SeriesStyle("a", "a", "markers"), SeriesStyle("b", "b", "markers")])
    qtbot.addWidget(made)
    items = made._plot.items
    assert items.index(made.series["a"]._strong) > items.index(made.series["b"]._strong)


def click(qtbot, plot: LivePlot, x: float, y: float) -> None:
    place = plot._widget.mapFromScene(plot._view.mapViewToScene(QPointF(x, y)))
    qtbot.mouseClick(plot._widget.viewport(), Qt.MouseButton.LeftButton, pos=place)


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
