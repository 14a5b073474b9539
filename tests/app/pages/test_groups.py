"""Groups of runs in the window, made of recorded runs: on Runs, on Run, in Predictions and in Compare."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from app.core.runs.run_comparison import CurveKind
from app.core.runs.run_library import RunLibrary
from app.core.runs.run_state import RunState
from app.core.runs.series import Series
from app.pages.run.page import Page as RunPage
from app.pages.run.run_curves import mean_curve
from app.pages.runs.differences import Differences
from app.pages.runs.page import Page as RunsPage
from app.widgets.forms.schema_field import field_of, mixed_value
from backend.contract.rpc.predictions import ComparedRuns, DifferingRows, PairTest
from backend.contract.run.folder import RunFolder, run_folders
from backend.contract.run.group import RunGroup
from backend.contract.spec import TrainingSection


@pytest.fixture
def group(runs: Path) -> RunGroup:
    """Two finished seeds of three."""
    made = RunGroup(runs / "2026-11-28-1200-reviews")
    made.path.mkdir()
    made.write({"name": "reviews", "task": {"type": "text_classification"}, "training": {"seeds": [1, 2, 3]}}, [])
    finished = RunFolder(runs / FINISHED)
    for seed in (1, 2):
        shutil.copytree(finished.path, made.run(seed).path)
    return made


FINISHED = "sentiment-finished"


def test_the_library_knows_a_group_and_its_runs(runs: Path, group: RunGroup):
    library = RunLibrary(runs)
    library.refresh()
    found = library.find(group.path)
    assert found is not None
    assert [run.seed for run in library.members(found)] == [1, 2]
    assert (found.message, found.state, found.can_resume) == ("2 of 3 runs finished", "lost", True)
    first = library.members(found)[0]
    assert found.metrics == pytest.approx(first.metrics)  # both are copies of one run
    assert set(found.deviations.values()) == {0.0}


def test_a_damaged_group_leaves_its_runs_alone(runs: Path, group: RunGroup):
    group.file.write_text("{")
    library = RunLibrary(runs)
    library.refresh()
    assert library.groups == []
    assert all(run.group is None for run in library.runs)


@pytest.fixture
def listed(qtbot, context, group):
    context.library.refresh()
    made = RunsPage(context)
    qtbot.addWidget(made)
    made.resize(1068, 800)
    made.show()
    return made


def names(page: RunsPage) -> list[str]:
    return [run.name for run in page.table.runs]


def test_a_group_is_one_row_that_unfolds(qtbot, listed: RunsPage, group: RunGroup):
    before = names(listed)
    assert group.name in before
    assert group.run(1).name not in before
    row = before.index(group.name)
    area = listed.table.visualRect(listed.table.model().index(row, 0))
    sign = QPoint(area.left() + 18, area.center().y())
    qtbot.mouseClick(listed.table.viewport(), Qt.MouseButton.LeftButton, pos=sign)
    assert names(listed)[row : row + 3] == [group.name, group.run(1).name, group.run(2).name]
    qtbot.mouseClick(listed.table.viewport(), Qt.MouseButton.LeftButton, pos=sign)
    assert names(listed) == before


def test_arrow_keys_unfold_and_fold_the_selected_group(qtbot, listed: RunsPage, group: RunGroup):
    before = names(listed)
    listed.table.choose(group.path)
    qtbot.keyClick(listed.table, Qt.Key.Key_Right)
    assert len(names(listed)) == len(before) + 2
    qtbot.keyClick(listed.table, Qt.Key.Key_Left)
    assert names(listed) == before


def test_deleting_a_group_asks_about_its_runs(listed: RunsPage, group: RunGroup):
    listed.table.choose(group.path)
    listed._on_delete()
    question = listed.deletion.question
    assert question is not None
    assert "2 runs" in question.text()
    question.reject()


@pytest.fixture
def opened(qtbot, context, group):
    context.library.refresh()
    made = RunPage(context)
    qtbot.addWidget(made)
    made.resize(1068, 800)
    made.show()
    made.show_run(str(group.path))
    view = made.group.curves
    qtbot.waitUntil(lambda: not view.states.reading and view.plot is not None and len(view.plot.series["mean"]) > 0)
    return made


def test_the_page_of_a_group_has_its_mean_and_its_seeds(opened: RunPage, group: RunGroup):
    rows = opened.group.table.texts()
    assert [row[0] for row in rows] == ["Mean ± standard deviation", "Interval of the mean", "Seed 1", "Seed 2"]
    assert " ± " in rows[0][2]
    assert rows[2][2] == rows[3][2] == rows[0][2].split(" ")[0]
    plot = opened.group.curves.plot
    assert plot is not None
    assert set(plot.series) == {"mean", *(str(group.run(seed).path) for seed in (1, 2))}
    assert plot.series[str(group.run(1).path)].style.faint


def test_a_seeds_row_opens_its_run(opened: RunPage, group: RunGroup):
    opened.group.table.row_chosen.emit(3)
    assert opened.path == group.run(2).path
    assert opened.group.path is None


def curve_of(*many: tuple[list[float], list[float]]):
    states = []
    for xs, ys in many:
        state, series = RunState(), Series()
        for x, y in zip(xs, ys, strict=True):
            series.append(x, y)
        state.series["loss"] = series
        states.append(state)
    return mean_curve(CurveKind("loss"), states)


def test_the_mean_is_over_the_steps_that_all_seeds_have():
    xs, ys = curve_of(([1, 2, 3], [1, 2, 3]), ([1, 2], [3, 6]))
    assert np.array_equal(xs, [1, 2])
    assert np.array_equal(ys, [2, 4])


def test_one_seed_has_no_mean():
    assert len(curve_of(([1], [1]))[0]) == 0


def test_stopping_a_group_asks_only_runs_that_are_alive(context, group: RunGroup):
    assert context.jobs.request(group.path, "stop") == ""
    assert not any(run.open_request() for run in run_folders(group.path.parent))


def pair_test(a: str, b: str, p: float, metric: str = "accuracy") -> PairTest:
    return PairTest(
        metric=metric, test="bootstrap_seeds_rows", a=a, b=b, values=(0.5, 0.6), difference=0.1, interval=(-0.1, 0.3),
        p=p, p_holm=p, rows=100, detectable=0.1, seeds=(3, 1),
    )  # fmt: skip


@pytest.fixture
def differences(qtbot, client):
    made = Differences(client)
    qtbot.addWidget(made)
    made.resize(900, 700)
    made.show()
    return made


def test_of_three_runs_the_bars_share_a_scale_and_a_click_asks_for_rows(differences: Differences):
    names = ["a", "b", "c"]
    differences.show_waiting([Path(name) for name in names], names)
    tests = [
        pair_test("a", "b", 0.01),
        pair_test("a", "b", 0.5, "f1"),
        pair_test("a", "c", 0.5),
        pair_test("b", "c", 0.5),
    ]
    differences.show_tests(ComparedRuns(tests=tests, sentences=["so it is"]))
    assert [(bar.name, bar.is_sure, bar.scale) for bar in differences.bars.bars] == [
        ("a → b", True, 0.3), ("a → c", False, 0.3), ("b → c", False, 0.3),
    ]  # fmt: skip
    assert differences.table.texts()[0][-1] == "Bootstrap over seeds and rows"
    differences.table.row_chosen.emit(3)
    assert differences.about_rows.text() == "Looking for the rows on which b and c differ…"


def test_the_rows_have_both_answers_first(differences: Differences):
    differences.show_waiting([Path("a"), Path("b")], ["a", "b"])
    differences.show_tests(ComparedRuns(tests=[pair_test("a", "b", 0.5)]))
    row = ["a long text", "good", "bad", "good"]
    found = DifferingRows(columns=["text", "actual"], rows=[row], only_a=0, only_b=3, count=5, of=100)
    differences._on_rows(found)
    assert differences.rows.header_texts() == ["a", "b", "Actual", "text"]
    assert differences.rows.texts() == [["bad", "good", "good", "a long text"]]
    assert differences.about_rows.text() == (
        "a and b answer 5 of 100 rows differently. Only a has 0 of them right, only b 3. The first 1 are shown."
    )


@pytest.mark.parametrize(("text", "seeds"), [("1, 2,3", [1, 2, 3]), ("[4, 5]", [4, 5]), ("5", 5), ("", None)])
def test_seeds_are_typed_as_people_write_them(text: str, seeds):
    schema = TrainingSection.model_json_schema()["properties"]["seeds"]
    assert mixed_value(text, field_of("seeds", schema)) == seeds
