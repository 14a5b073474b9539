"""How a run stands, from its events, its lock and its records."""

import os
import time
from pathlib import Path

import pytest

from app.core.runs.run_obstacles import result_obstacles
from app.core.runs.run_state import RunState
from app.core.runs.run_status import RunStatus, derive, look_at, results_of
from backend.contract.run import events
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder, boot_id, host_id
from backend.contract.run.lock import take_lock


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    made.path.mkdir()
    made.spec.write_text("version: 1\n")
    return made


def carried(folder: RunFolder) -> None:
    folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 2, time.time()))
    folder.lock.touch()


def started() -> RunState:
    state = RunState()
    state.apply(events.RunStarted(time=1, name="n", task="t", model="m"))
    return state


def test_a_run_whose_lock_is_free_and_that_left_no_exit_is_lost(folder: RunFolder):
    carried(folder)
    outcome = look_at(folder, started())
    assert outcome.state == "lost"
    assert outcome.resumable
    assert "Resume" in outcome.hint


def test_a_model_without_its_weights_is_neither_tried_nor_exported(folder: RunFolder):
    """As its search leaves a trial that has lost."""
    state, weights = started(), folder.model / "model.safetensors"
    state.apply(events.ModelExported(time=2, folder="model", step=3))
    folder.model.mkdir()
    weights.touch()
    assert results_of(folder, state, RunStatus("finished")).can_try
    weights.unlink()
    obstacles = result_obstacles(results_of(folder, state, RunStatus("finished")))
    assert obstacles["try"] == obstacles["export"]
    assert "weights of this run were removed" in obstacles["try"]
    folder.checkpoint(2).mkdir(parents=True)
    assert results_of(folder, state, RunStatus("finished")).can_try


def test_a_run_whose_lock_is_held_is_alive(folder: RunFolder):
    carried(folder)
    descriptor = take_lock(folder.lock)
    try:
        assert look_at(folder, started()).alive
    finally:
        os.close(descriptor)


def test_a_process_that_was_killed_is_explained_in_words():
    outcome = derive(started(), "ended", ExitRecord(1, -9, 2.0))
    assert outcome.state == "failed"
    assert "out of memory" in outcome.message
    assert outcome.hint == "Resume to restart it from scratch."


def test_a_process_that_was_killed_while_it_trained_is_mended_by_fewer_rows():
    state = started()
    state.apply(
        events.PlanMade(
            time=2, total_steps=9, steps_per_epoch=9, batch_size=8, micro_batch_size=8, accumulation=1, epochs=1
        )
    )
    state.apply(events.StageStarted(time=3, stage="training"))
    assert derive(state, "ended", ExitRecord(1, -9, 2.0, "killed")).fix == RunFix({"hardware.micro_batch_size": 4})
    assert derive(state, "ended", ExitRecord(1, -9, 2.0, "killed", killed_by="memory")).fix is not None
    assert derive(state, "ended", ExitRecord(1, -9, 2.0, "killed", killed_by="signal")).fix is None
    assert derive(state, "ended", ExitRecord(1, -15, 2.0)).fix is None
    state.apply(events.StageStarted(time=4, stage="evaluating"))
    assert derive(state, "ended", ExitRecord(1, -9, 5.0, "killed")).fix is None


@pytest.mark.parametrize(("micro_batch_size", "resumed"), [(1, False), (8, True)])
def test_a_killed_process_is_offered_nothing_where_fewer_rows_may_not_help(micro_batch_size: int, resumed: bool):
    state = started()
    state.apply(
        events.PlanMade(
            time=2, total_steps=9, steps_per_epoch=9, batch_size=8, micro_batch_size=micro_batch_size, accumulation=1, epochs=1
        )
    )  # fmt: skip
    state.apply(events.StageStarted(time=3, stage="training"))
    if resumed:  # and killed before it had a plan of its own
        state.apply(events.RunResumed(time=3, attempt=2, from_step=0))
    assert derive(state, "ended", ExitRecord(1, -9, 4.0)).fix is None


def test_another_signal_is_named():
    assert "SIGTERM" in derive(started(), "ended", ExitRecord(1, -15, 2.0)).message


def test_the_supervisors_own_words_come_first():
    assert derive(started(), "ended", ExitRecord(1, 1, 2.0, "the disk is full")).message == "The disk is full."


def test_what_the_run_said_itself_counts():
    state = started()
    state.apply(events.RunFinished(time=3, state="failed", step=4, message="Out of memory", hint="Use fewer rows"))
    outcome = derive(state, "ended", ExitRecord(1, 1, 2.0))
    assert (outcome.state, outcome.message, outcome.hint) == ("failed", "Out of memory", "Use fewer rows")


@pytest.mark.parametrize("saved", [False, True])
def test_a_loss_without_value_is_gone_on_from_only_where_there_is_a_checkpoint(saved: bool):
    state = started()
    if saved:
        state.apply(events.CheckpointSaved(time=2, step=5, folder="step-5"))
    state.apply(events.RunFinished(time=3, state="failed", step=9, code="nan_loss"))
    assert derive(state, "ended", None).resumable is saved


def test_a_run_whose_events_are_gone_is_lost_and_not_failed(folder: RunFolder):
    carried(folder)
    folder.write_exit_record(ExitRecord(1, 0, 2.0))

    outcome = look_at(folder, RunState())

    assert (outcome.state, outcome.message) == ("lost", "The run's events.jsonl is missing.")


def test_a_finished_run_whose_events_are_gone_is_finished_and_lacks_its_curves(folder: RunFolder):
    carried(folder)
    folder.write_exit_record(ExitRecord(1, 0, 2.0))
    folder.model.mkdir()
    assert look_at(folder, RunState()).state == "lost", "a run that was stopped leaves a model too"
    folder.predictions().touch()

    outcome = look_at(folder, RunState())

    assert (outcome.state, outcome.resumable) == ("finished", False)
    assert outcome.message == "No curves: events.jsonl was deleted."


def test_a_folder_that_was_just_written_is_starting(folder: RunFolder):
    assert look_at(folder, RunState()).state == "starting"


def test_a_folder_that_nobody_started_is_lost_after_a_while(folder: RunFolder):
    assert look_at(folder, RunState(), now=time.time() + 120).state == "lost"


@pytest.fixture
def held(folder: RunFolder):
    """A process carries the run: its lock is held by this one."""
    carried(folder)
    descriptor = take_lock(folder.lock)
    yield folder
    os.close(descriptor)


def paused() -> RunState:
    state = started()
    state.apply(events.RunFinished(time=2.0, state="paused", step=5))
    return state


@pytest.mark.parametrize("before", [RunState(), started(), paused()])
def test_a_run_that_waits_its_turn_is_queued_whatever_it_was_before(held: RunFolder, before: RunState):
    held.join_queue()
    outcome = look_at(held, before)
    assert (outcome.title, outcome.alive, outcome.waits, outcome.resumable) == ("Queued", True, True, False)


def test_a_run_whose_turn_has_come_is_starting_though_its_last_life_has_ended(held: RunFolder):
    held.write_process_record(ProcessRecord(2, host_id(), boot_id(), 1, 2, time.time()))
    assert look_at(held, paused()).state == "starting"


@pytest.mark.parametrize("before", [RunState(), paused()])
def test_a_run_that_was_killed_while_it_waited_is_lost_and_resumable(folder: RunFolder, before: RunState):
    carried(folder)
    folder.join_queue()
    outcome = look_at(folder, before)
    assert (outcome.state, outcome.resumable) == ("lost", True)
    assert "while it was in the queue" in outcome.message


@pytest.mark.parametrize("saved", [False, True])
def test_an_interrupted_run_is_over_says_why_and_can_be_resumed(saved: bool):
    state = started()
    if saved:
        state.apply(events.CheckpointSaved(time=2, step=5, folder="step-5"))
    state.apply(events.RunFinished(time=3, state="interrupted", step=5, message="it was told to stop"))
    outcome = derive(state, "ended", ExitRecord(1, 0, 3.0))
    assert (outcome.title, outcome.kind, outcome.alive, outcome.resumable) == ("Interrupted", "warning", False, True)
    assert outcome.message == "it was told to stop"
    assert outcome.hint == (
        "Resume to continue from the last checkpoint." if saved else "Resume to restart it from scratch."
    )


def test_a_run_that_was_interrupted_before_it_could_listen_says_so():
    record = ExitRecord(1, -15, 2.0, "it was told to stop (SIGTERM)", "interrupted")
    outcome = derive(started(), "ended", record)
    assert (outcome.state, outcome.resumable) == ("interrupted", True)
    assert "SIGTERM" in outcome.message


def test_a_run_that_was_interrupted_while_it_waited_waits_again_when_it_is_resumed(folder: RunFolder):
    carried(folder)
    folder.join_queue()
    folder.write_exit_record(ExitRecord(1, 0, time.time(), state="interrupted"))
    outcome = look_at(folder, RunState())
    assert (outcome.state, outcome.resumable, outcome.hint) == (
        "interrupted",
        True,
        "Resume to put it back in the queue.",
    )


def test_a_run_that_was_stopped_while_it_waited_is_stopped_and_no_failure(held: RunFolder):
    held.join_queue()
    held.write_exit_record(ExitRecord(1, 0, time.time(), state="stopped"))
    assert look_at(held, RunState()).state == "stopped"  # its supervisor still has its last moments
    held.leave_queue()
    outcome = look_at(held, RunState())
    assert (outcome.state, outcome.resumable) == ("stopped", True)
    assert "before it started" in outcome.message


def test_a_run_that_ended_in_a_state_nobody_knows_is_over():
    state = started()
    state.apply(events.RunFinished(time=3, state="postponed", step=4))
    assert not derive(state, "ended", ExitRecord(1, 0, 3.0)).alive


@pytest.mark.parametrize(("record", "state"), [(ExitRecord(2, 1, 20.0, "torch is gone"), "failed"), (None, "lost")])
def test_a_resumed_run_that_dies_before_it_says_anything_is_not_paused_any_more(
    folder: RunFolder, record: ExitRecord | None, state: str
):
    said = started()
    said.apply(events.CheckpointSaved(time=2, step=5, folder="step-5"))
    said.apply(events.RunFinished(time=3, state="paused", step=5))
    folder.lock.touch()
    folder.write_process_record(ProcessRecord(2, host_id(), boot_id(), 1, 2, 10.0))
    if record is not None:
        folder.write_exit_record(record)

    outcome = look_at(folder, said)

    assert (outcome.state, outcome.hint) == (state, "Resume to continue from the last checkpoint.")
    assert ("Torch is gone" in outcome.message) == (state == "failed")


def test_a_resumed_run_that_says_why_it_fails_before_it_begins_is_believed(folder: RunFolder):
    said = started()
    said.apply(events.RunFinished(time=3, state="paused", step=5))
    said.apply(events.RunFinished(time=11, state="failed", step=0, message="The data is gone"))
    folder.lock.touch()
    folder.write_process_record(ProcessRecord(2, host_id(), boot_id(), 1, 2, 10.0))
    folder.write_exit_record(ExitRecord(2, 1, 12.0))
    assert look_at(folder, said).message == "The data is gone"
