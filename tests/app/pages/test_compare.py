"""The comparison of chosen runs, with recorded ones."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app import theme
from app.core import formatting
from app.core.runs.run_library import RunLibrary, RunSummary
from app.pages.runs.compare_view import CompareView
from app.pages.runs.overlay_plot import PATH, VALUE
from app.services.backend_client import BackendClient
from tests.app.gone import gone
from tests.app.pages.recorded_runs import copy_recorded
from tests.app.pages.shared_helper import SharedHelperClient


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> RunLibrary:
    """The recorded runs, which no test changes."""
    made = RunLibrary(copy_recorded(tmp_path_factory.mktemp("kept") / "runs"))
    made.refresh()
    return made


@pytest.fixture(scope="module")
def shared_view(qapp: QApplication, library: RunLibrary, helper: BackendClient) -> Iterator[CompareView]:
    """All recorded runs, for the tests that only look at them."""
    theme.apply(qapp, "light")
    made = CompareView(library, helper)
    made.resize(1068, 760)
    made.show()
    made.show_runs(named(library))
    yield made
    made.close_view()
    gone(made)


@pytest.fixture
def compared(qtbot, shared_view: CompareView) -> CompareView:
    """The same, as they are at first."""
    curves = shared_view.curves
    curves.choice.setCurrentIndex(0)
    curves.axis.setCurrentIndex(curves.axis.findData("step"))
    curves.smoothing.setCurrentText("Medium")
    shared_view.everything.setChecked(False)
    wait_for_curves(qtbot, shared_view)
    for row in range(curves.legend.count()):
        curves.legend.item(row).setCheckState(Qt.CheckState.Checked)
    return shared_view


@pytest.fixture
def changing(runs: Path) -> RunLibrary:
    """Runs that a test may change."""
    made = RunLibrary(runs)
    made.refresh()
    return made


@pytest.fixture
def view(qtbot, changing: RunLibrary, client: SharedHelperClient):
    made = CompareView(changing, client)
    qtbot.addWidget(made)
    made.resize(1068, 760)
    made.show()
    yield made
    made.close_view()


def named(library: RunLibrary) -> list[RunSummary]:
    return [run for run in library.runs if run.name != "old-run"]


def wait_for_curves(qtbot, view: CompareView) -> None:
    """A layer of curves is ready when every point was handed over."""
    qtbot.waitUntil(
        lambda: not view.states.reading and view.curves.plot is not None and not view.curves._timer.isActive()
    )


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
    qtbot.waitUntil(lambda: len(compared.states.specs) == 4 and compared.same.text() != "Loading settings…")
    few = compared.settings.texts()
    compared.everything.setChecked(True)
    rows = {row[0]: row[1:] for row in compared.settings.texts()}
    assert len(few) < len(rows)
    assert "training." not in " ".join(rows)  # settings have the titles that New run gives them
    assert {cell for cell in rows["Epochs"] if cell.endswith(".0")} == set()


def test_the_final_metrics_are_a_table_that_is_saved_as_csv_and_markdown(qtbot, compared, tmp_path: Path):
    rows = {row[0]: row for row in compared.metrics.texts()}
    place = compared.metrics.header_texts().index("Accuracy")
    assert rows["sentiment-finished"][place] == "0.8716"
    assert rows["sentiment-finished"][1:3] == ["Finished", "Text classification"]
    compared.save(str(tmp_path / "runs.csv"))
    compared.save(str(tmp_path / "runs.md"))
    assert (tmp_path / "runs.csv").read_text().startswith("run,state,task")
    assert (tmp_path / "runs.md").read_text().startswith("| run | state | task")
    compared.copy.click()
    assert QGuiApplication.clipboard().text() == (tmp_path / "runs.md").read_text()


def test_leaving_the_comparison_stops_watching(qtbot, view, changing):
    view.show_runs(changing.runs)
    assert view.states._watchers
    with qtbot.waitSignal(view.closed):
        view.back.click()
    assert view.states._watchers == {}


def test_the_line_below_the_title_tells_how_many_runs_are_still_read(qtbot, view, changing):
    view.show_runs(changing.runs)
    assert "loading 5 of them…" in view.header.subtitle.text()
    qtbot.waitUntil(lambda: "loading" not in view.header.subtitle.text())
    assert not view.states.reading


def test_curves_stand_over_the_axis_that_is_chosen(qtbot, compared):
    curves = compared.curves
    curves.axis.setCurrentIndex(curves.axis.findData("time"))
    qtbot.waitUntil(lambda: not curves._timer.isActive())
    drawn = curves.plot.series[next(key for key in curves.plot.series if key.endswith("sentiment-resumed"))]
    state = next(state for path, state in compared.states.states.items() if path.name == "sentiment-resumed")
    assert len(drawn) == 742
    assert drawn.points.xs[-1] == state.clock.at("time", state.series["loss"].xs)[-1]
    assert len(drawn.breaks) == len(state.resumes) > 0


def test_the_list_tells_where_each_line_is_at_the_crosshair(qtbot, compared):
    curves = compared.curves
    curves.plot.redraw()
    item = curves.legend.item(0)
    series = curves.plot.series[item.data(PATH)]
    curves.plot.crosshair._move(120)
    assert item.data(VALUE) == formatting.number(series.mean_at(120)) != formatting.number(series.value_at(120)[1])
    assert curves.plot.crosshair.readout.text() == "step 120"


def test_a_picture_of_the_compared_curves_is_saved_and_said(qtbot, compared, tmp_path: Path):
    with qtbot.waitSignal(compared.message) as said:
        compared.curves.plot.saving.save(tmp_path / "curves.svg")
    assert said.args[0] == "success"
    drawn = re.findall(">([^<]*)</text>", (tmp_path / "curves.svg").read_text())
    assert "sentiment-failed" in "".join(drawn).replace("\n", "")  # a name may go on in the next line


def test_a_name_keeps_its_room_when_another_curve_is_chosen(qtbot, compared):
    compared.curves.choice.setCurrentText("Accuracy")
    qtbot.waitUntil(lambda: not compared.curves._timer.isActive())
    assert compared.curves.legend.width() >= 200
    assert all(compared.curves.legend.item(row).data(VALUE) for row in range(3))


def test_a_run_that_was_deleted_stays_in_the_comparison_and_says_so(view, changing, runs: Path):
    view.show_runs(named(changing))
    shutil.rmtree(runs / "sentiment-failed")
    changing.refresh()
    view.follow()
    assert view.header.subtitle.text().count("(deleted)") == 1
    states = [
        row["state"] for row in (dict(zip(view._metrics().header, row, strict=True)) for row in view._metrics().rows)
    ]
    assert sorted(states) == ["deleted", "finished", "lost", "paused"]


def test_differences_say_why_nothing_was_tested(qtbot, compared: CompareView) -> None:
    compared.show_side("Differences")
    qtbot.waitUntil(lambda: "has no predictions of validation rows" in compared.result.text())
    assert compared.differences.model().rowCount() == 0


def test_differences_say_whether_two_runs_differ_by_more_than_chance(
    qtbot, view: CompareView, changing: RunLibrary, client: SharedHelperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ask = [], client.ask
    monkeypatch.setattr(client, "ask", lambda query, *rest, **more: asked.append(query) or ask(query, *rest, **more))
    chosen = named(changing)[:2]
    for run, right in zip(chosen, (0.6, 0.9), strict=True):
        write_predictions(run.path, right)
    view.show_runs(chosen)
    assert "compare_runs" not in asked  # which takes seconds with many rows, and nobody looks at it yet
    view.show_side("Differences")
    qtbot.waitUntil(lambda: "differ by more than chance:" in view.result.text())
    model = view.differences.model()
    rows = [[model.index(row, column).data() for column in range(6)] for row in range(model.rowCount())]
    accuracy = next(row for row in rows if row[0] == "Accuracy")
    assert accuracy[1:3] == ["0.6000", "0.9000"]
    assert accuracy[3].startswith("+0.3 (+0.2")
    assert accuracy[5] == "McNemar's exact test"


def test_a_name_with_parentheses_stands_in_the_table_as_it_is(view: CompareView, changing: RunLibrary) -> None:
    chosen = named(changing)[:2]
    titles = ["sst2 (copy)", "sst2 (x to y)"]
    view.show_runs([replace(run, title=title) for run, title in zip(chosen, titles, strict=True)])
    model = view.metrics.model()
    assert sorted(model.index(row, 0).data() for row in range(2)) == titles


def write_predictions(folder: Path, share: float) -> None:
    """Predictions of 200 rows, of which this share is right, as a finished run leaves them."""
    note = {"task": {"type": "text_classification"}, "facts": {"labels": ["a", "b"], "max_length": 8}, "columns": {}}
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "burnish.json").write_text(json.dumps(note))
    actual = ["a", "b"] * 100
    predicted = [label if row < 200 * share else "ab"[label == "a"] for row, label in enumerate(actual)]
    texts = [f"text {row}" for row in range(200)]
    table = pa.table({"text": texts, "prediction": predicted, "actual": actual})
    parquet.write_table(table, folder / "predictions.parquet")
