"""A small plot per setting: where the dots are, which one is meant, and that a click chooses its trial."""

from PySide6.QtCore import QPointF, Qt

from app.core.runs.search_trials import Axis
from app.widgets.plots.setting_plots import SettingPlots

AXES = [
    Axis("Learning rate", (0.0, 1.0, 0.5), ((0.0, "1e-05"), (1.0, "0.001"))),
    Axis("Rank", (1.0, 0.0, None), ((0.0, "4"), (1.0, "8"))),
    Axis("Accuracy", (0.2, 0.9, 0.5), ((0.0, "0.5"), (1.0, "0.9"))),
]


def plots(qtbot) -> SettingPlots:
    widget = SettingPlots()
    qtbot.addWidget(widget)
    widget.resize(700, 260)
    widget.show_dots(AXES, ["Trial 1", "Trial 2", "Trial 3"], 1)
    return widget


def test_better_trials_are_higher_and_those_without_a_value_are_left_out(qtbot):
    widget = plots(qtbot)
    first, second = widget.place_of(0, 0), widget.place_of(0, 1)
    assert first is not None
    assert second is not None
    assert second.y() < first.y()
    assert first.x() < second.x()
    assert widget.place_of(1, 2) is None


def test_click_on_a_dot_chooses_its_trial(qtbot):
    widget = plots(qtbot)
    place = widget.place_of(1, 0)
    assert place is not None
    with qtbot.waitSignal(widget.dot_chosen) as chosen:
        qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=place.toPoint())
    assert chosen.args == [0]
    assert widget.part_at(QPointF(2, 2)) is None


def test_plots_stand_below_each_other_where_it_is_narrow(qtbot):
    widget = plots(qtbot)
    assert widget.area_of(0).top() == widget.area_of(1).top()
    widget.resize(260, 260)
    assert widget.area_of(0).bottom() < widget.area_of(1).top()
    assert not widget.grab().isNull()
