"""The comparison of chosen runs, with recorded ones."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.panels.runs_cards.compare_view import CompareView
from app.panels.runs_cards.overlay_plot import PATH


@pytest.fixture
def view(qtbot, context):
    made = CompareView(context.library)
    qtbot.addWidget(made)
    made.resize(1068, 760)
    made.show()
    yield made
    made.states.stop()


@pytest.fixture
def compared(qtbot, view, context, runs: Path):
    """All recorded runs, read."""
    context.library.refresh()
    chosen = [run for run in context.library.runs if run.name != "old-run"]
    view.show_runs(chosen)
    # A layer of curves is ready when every point was handed over.
    qtbot.waitUntil(
        lambda: not view.states.reading and view.curves.plot is not None and not view.curves._timer.isActive()
    )
    return view


def lengths(view: CompareView) -> dict[str, int]:
    assert view.curves.plot is not None
    return {Path(key).name: len(series) for key, series in view.curves.plot.series.items()}


def test_every_chosen_run_has_its_whole_curve_in_one_plot(compared):
    assert lengths(compared) == {
        "sentiment-finished": 1000,
        "sentiment-lost": 430,
        "sentiment-resumed": 742,
        "sentiment-failed": 312,
    }


def test_runs_of_the_same_title_are_told_apart_by_their_folders(compared):
    texts = [compared.curves.legend.item(row).text() for row in range(compared.curves.legend.count())]
    assert sum("sentiment-finished" in text for text in texts) == 1


def test_another_metric_is_drawn_where_runs_have_it(qtbot, compared):
    box = compared.curves.choice
    box.setCurrentText("Accuracy")
    qtbot.waitUntil(lambda: lengths(compared)["sentiment-finished"] == 8)


def test_a_curve_is_hidden_and_stays_so_with_other_smoothing(compared):
    curves = compared.curves
    item = curves.legend.item(0)
    item.setCheckState(Qt.CheckState.Unchecked)
    curves.smoothing.setCurrentText("Strong")
    assert curves.plot.series[item.data(PATH)].is_hidden
    assert not curves.plot.series[curves.legend.item(1).data(PATH)].is_hidden


def test_only_the_settings_that_differ_are_shown_until_all_are_asked_for(qtbot, compared):
    qtbot.waitUntil(lambda: len(compared.states.specs) == 4 and compared.same.text() != "Reading the settings…")
    few = compared.settings.texts()
    compared.everything.setChecked(True)
    keys = [row[0] for row in compared.settings.texts()]
    assert len(few) < len(keys)
    assert "training.learning_rate" in keys


def test_the_final_metrics_are_a_table_that_is_saved_as_csv_and_markdown(qtbot, compared, tmp_path: Path):
    rows = {row[0]: row for row in compared.metrics.texts()}
    place = compared.metrics.header_texts().index("accuracy")
    assert rows["sentiment-finished"][place] == "0.8716"
    compared.save(str(tmp_path / "runs.csv"))
    compared.save(str(tmp_path / "runs.md"))
    assert (tmp_path / "runs.csv").read_text().startswith("run,state,task")
    assert (tmp_path / "runs.md").read_text().startswith("| run | state | task")
    compared.copy.click()
    assert QGuiApplication.clipboard().text() == (tmp_path / "runs.md").read_text()


def test_leaving_the_comparison_stops_watching(qtbot, compared):
    with qtbot.waitSignal(compared.closed):
        compared.back.click()
    assert compared.states._watchers == []
