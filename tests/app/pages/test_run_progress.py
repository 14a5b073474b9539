"""The tiles of the Run page, from the state of a run alone."""

import time

import msgspec
import pytest
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from app.core.runs.run_state import RunState
from app.core.runs.run_status import RunStatus
from app.pages.run.progress import ProgressTiles, RunProgress
from app.pages.run.run_buttons import RunButtons
from backend.contract.run import events


@pytest.fixture
def tiles(qtbot, styled) -> ProgressTiles:
    made = ProgressTiles()
    qtbot.addWidget(made)
    made.resize(1000, made.sizeHint().height())
    made.clear()
    made.show()
    return made


def started() -> RunState:
    state = RunState()
    state.apply(events.RunStarted(time=1, name="n", task="t", model="m", device="cpu"))
    return state


def take_step(state: RunState) -> None:
    state.apply(
        events.StepFinished(
            time=time.time(),
            step=1,
            epoch=0.1,
            loss=0.7,
            learning_rate=1e-4,
            gradient_norm=1.0,
            rows=8,
            tokens=80,
            seconds=0.1,
        )
    )


def measure(state: RunState, seconds_ago: float) -> None:
    state.apply(events.MemoryMeasured(time=time.time() - seconds_ago, step=1, memory_mb=412))


def test_a_memory_reading_says_its_age_once_it_is_old(tiles: ProgressTiles):
    state, tile = started(), tiles.tiles["memory"]
    take_step(state)
    measure(state, 200)
    tiles.show_state(state, RunStatus("running"))
    assert tile.value() == "412 MB"
    assert tile.accessibleDescription() == "3 minutes ago · cpu"
    tiles.show_state(state, RunStatus("finished"))
    assert tile.accessibleDescription() == "cpu"
    measure(state, 0)
    tiles.show_state(state, RunStatus("running"))
    assert tile.accessibleDescription() == "cpu"


def test_memory_of_several_processes_says_how_many(tiles: ProgressTiles):
    state = started()
    take_step(state)
    state.apply(events.MemoryMeasured(time=time.time(), step=1, memory_mb=900, processes=2))
    tiles.show_state(state, RunStatus("running"))
    assert tiles.tiles["memory"].accessibleDescription() == "cpu · 2 processes"


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (RunStatus("queued"), "Loss, speed and memory appear here after the first step."),
        (RunStatus("starting"), "Loss, speed and memory appear here after the first step."),
        (RunStatus("failed"), "The run ended before its first step."),
        (RunStatus("finished", lacks_events=True), "No curves: events.jsonl was deleted."),
    ],
)
def test_before_the_first_step_a_sentence_stands_where_the_tiles_come(tiles: ProgressTiles, outcome, words: str):
    tiles.show_state(started(), outcome)
    assert tiles.nothing.isVisible()
    assert tiles.nothing.text() == words
    assert not any(tile.isVisible() for tile in tiles.tiles.values())


def test_the_first_step_brings_the_tiles_and_moves_nothing(qtbot, tiles: ProgressTiles):
    page = QWidget()
    qtbot.addWidget(page)
    column, below = QVBoxLayout(page), QWidget()
    column.addWidget(tiles)
    column.addWidget(below, 1)
    page.resize(1000, 600)
    page.show()
    state = started()
    tiles.show_state(state, RunStatus("running"))
    before = below.geometry()
    take_step(state)
    measure(state, 0)
    tiles.show_state(state, RunStatus("running"))
    QApplication.processEvents()
    assert all(tile.isVisible() for tile in tiles.tiles.values())
    assert below.geometry() == before


def test_tiles_have_the_room_of_two_rows_when_the_window_became_narrow_before_the_first_step(
    qtbot, tiles: ProgressTiles
):
    page = QWidget()
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    column.addWidget(tiles)
    column.addWidget(QWidget(), 1)
    page.resize(1700, 600)
    page.show()
    state = started()
    tiles.show_state(state, RunStatus("running"))
    QApplication.processEvents()
    page.resize(1000, 600)
    QApplication.processEvents()
    take_step(state)
    tiles.show_state(state, RunStatus("running"))
    QApplication.processEvents()
    assert tiles.height() == tiles.sizeHint().height() > 2 * tiles.tiles["loss"].minimumSizeHint().height()


def test_one_row_of_tiles_keeps_no_window_wide(qtbot, tiles: ProgressTiles):
    state = started()
    take_step(state)
    tiles.show_state(state, RunStatus("running"))
    tiles.resize(1660, tiles.height())
    qtbot.waitUntil(lambda: tiles.tiles["loss"].y() == tiles.tiles["eta"].y())
    assert tiles.minimumSizeHint().width() < 690


def test_row_of_a_living_run_fits_the_smallest_window(qtbot, styled):
    row, state = RunProgress(), started()
    qtbot.addWidget(row)
    state.apply(plan_of(10_000))
    take_step(state)
    row.resize(690, row.height())
    row.show()
    row.show_state(state, RunStatus("running"), is_caught_up=True)
    row.requests.show_usable(RunStatus("running"))
    checkpoint = row.requests.buttons["checkpoint"]
    assert row.minimumSizeHint().width() <= 690
    assert (checkpoint.text(), checkpoint.toolTip(), checkpoint.accessibleName()) == ("", *["Checkpoint now"] * 2)
    assert not row.time_left.isVisible()
    row.resize(1000, row.height())
    assert checkpoint.text() == "Checkpoint now"
    assert row.time_left.isVisible()


def test_button_of_a_queued_run_says_why_it_waits_in_every_width(qtbot, styled):
    row, queued = RunProgress(), RunStatus("queued")
    qtbot.addWidget(row)
    row.requests.show_usable(queued)
    row.requests.set_narrow(True)
    assert row.requests.buttons["checkpoint"].toolTip() == "The run is still queued."
    row.requests.set_narrow(False)
    assert row.requests.buttons["checkpoint"].toolTip() == "The run is still queued."
    assert row.requests.buttons["stop"].toolTip() == "Remove the run from the queue"


def test_screen_reader_hears_what_a_button_is_doing(qtbot, styled):
    row = RunProgress()
    qtbot.addWidget(row)
    row.requests.waiting["stop"] = 0
    row.requests.show_usable(RunStatus("running"))
    assert row.requests.buttons["stop"].accessibleName() == "Stopping…"


def plan_of(total_steps: int) -> events.PlanMade:
    return events.PlanMade(
        time=1, total_steps=total_steps, steps_per_epoch=10, batch_size=8, micro_batch_size=8, accumulation=1, epochs=12
    )


def test_the_first_numbers_take_the_room_that_was_kept_for_them(tiles: ProgressTiles):
    state = started()
    tiles.show_state(state, RunStatus("running"))
    before = tiles.sizeHint().height()
    take_step(state)
    tiles.show_state(state, RunStatus("running"))
    assert tiles.sizeHint().height() == before


def test_a_run_that_is_judged_by_its_loss_shows_another_metric_beside_it(tiles: ProgressTiles):
    state, tile = started(), tiles.tiles["metric"]
    take_step(state)
    known = {"loss": False, "perplexity": False}
    state.apply(msgspec.structs.replace(plan_of(9), best_metric="loss", metrics=known))
    metrics: dict[str, float | None] = {
        "loss": 4.3563,
        "a.txt/loss": 4.3563,
        "a.txt/perplexity": 77.9,
        "perplexity": 77.9,
        "accuracy": 0.4,
    }
    state.apply(events.EvaluationFinished(time=2, step=1, epoch=0.1, metrics=metrics, rows=9, seconds=1.0))
    tiles.show_state(state, RunStatus("running"))
    assert tile.accessibleName() == "Perplexity: 77.9000"


def test_resume_leaves_the_title_of_a_narrow_page_its_room(qtbot, styled):
    controls = RunButtons()
    qtbot.addWidget(controls)
    resume = controls.buttons["resume"]
    wide = resume.minimumWidth()
    controls.set_narrow(True)
    assert resume.minimumWidth() == 0
    controls.set_narrow(False)
    assert resume.minimumWidth() == wide > 0


def test_a_mean_of_metrics_at_chance_has_no_best(tiles: ProgressTiles):
    state, tile = started(), tiles.tiles["metric"]
    take_step(state)
    known, trivial = {"combined": True, "pearson": True}, {"pearson": 0.0}
    state.apply(msgspec.structs.replace(plan_of(9), best_metric="combined", metrics=known, trivial=trivial))
    metrics: dict[str, float | None] = {"combined": -0.8, "pearson": -0.77, "loss": 1.0}
    state.apply(events.EvaluationFinished(time=2, step=1, epoch=0.1, metrics=metrics, rows=9, seconds=1.0))
    tiles.show_state(state, RunStatus("running"))
    assert tile.accessibleName() == "Combined: -0.8000"
    assert "best" not in tile.accessibleDescription()
    assert "no better than without a model" in tile.accessibleDescription()


def test_a_finished_run_shows_its_model_with_its_interval(tiles: ProgressTiles):
    state, tile = started(), tiles.tiles["metric"]
    take_step(state)
    plan = msgspec.structs.replace(plan_of(9), best_metric="accuracy", metrics={"accuracy": True})
    state.apply(msgspec.structs.replace(plan, trivial={"accuracy": 0.86}))
    metrics: dict[str, float | None] = {"accuracy": 0.8828}  # of all rows, and better of a part of them
    evaluated = events.EvaluationFinished(
        time=2, step=1, epoch=0.1, metrics={"accuracy": 0.95}, rows=9, seconds=1.0, is_best=True
    )
    state.apply(evaluated)
    written = events.PredictionsWritten(
        time=3, split="validation", csv="a.csv", parquet="a.parquet", rows=9, seconds=1.0, metrics=metrics,
        intervals={"accuracy": (0.8551, 0.9062)},
    )  # fmt: skip
    state.apply(written)
    tiles.show_state(state, RunStatus("running"))
    assert tile.accessibleDescription().startswith("best 0.9500 · step 1")
    state.apply(events.RunFinished(time=4, state="finished", step=1, metrics=metrics))
    tiles.show_state(state, RunStatus("finished"))
    assert tile.accessibleDescription().startswith("model 0.8828 (0.855 to 0.906)")
    assert tile.accessibleName() == "Accuracy · 0.8600 without a model: 0.9500"
    assert tile.toolTip().endswith("It may be no better than a rule without a model (0.8600).")
