"""The list of all runs."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from app.core.runs.diagnosis import doubt
from app.core.runs.run_columns import COLUMNS
from app.core.runs.run_library import HEAD_BYTES, REFRESHES_UNTIL_INSIDE, RunLibrary, RunSummary, count_words, in_queue
from app.core.runs.run_list import RunListOptions, arrange
from app.core.runs.run_state import RunState
from backend.contract.run import events
from backend.contract.run.folder import DeviceRequest, ExitRecord, ProcessRecord, RunFolder, boot_id, host_id
from backend.contract.run.job import JobRecord
from backend.contract.run.lock import take_lock
from backend.contract.run.notes import RunNotes, write_notes


def made(root: Path, name: str, *many: events.Event) -> RunFolder:
    folder = RunFolder(root / name)
    folder.path.mkdir(parents=True)
    folder.spec.write_text("version: 1\n")
    folder.events.write_bytes(b"".join(map(events.encode, many)))
    folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 2, 1.0))
    return folder


def started(name: str) -> events.RunStarted:
    return events.RunStarted(time=1000.0, name=name, task="text_classification", model="bert-tiny")


def plan() -> events.PlanMade:
    return events.PlanMade(
        time=1001.0,
        total_steps=2000,
        steps_per_epoch=100,
        batch_size=8,
        micro_batch_size=8,
        accumulation=1,
        epochs=20,
        best_metric="accuracy",
    )


def steps(count: int) -> list[events.StepFinished]:
    return [
        events.StepFinished(
            time=1001.0 + n,
            step=n,
            epoch=n / 100,
            loss=0.5,
            learning_rate=1e-4,
            gradient_norm=1.0,
            rows=8,
            tokens=9,
            seconds=0.1,
        )
        for n in range(1, count + 1)
    ]


def test_runs_come_newest_first(tmp_path: Path):
    made(tmp_path, "2026-11-20-1000-a", started("a"))
    made(tmp_path, "2026-11-21-1000-b", started("b"))
    assert [run.title for run in RunLibrary(tmp_path).refresh()] == ["b", "a"]


def test_a_long_run_is_read_at_its_head_and_its_tail(tmp_path: Path):
    folder = made(
        tmp_path,
        "long",
        started("long"),
        events.DataLoaded(time=1000.5, split="train", rows=20, files=["/data/train.csv"]),
        plan(),
        *steps(2000),
        events.RunFinished(time=9000.0, state="finished", step=2000, best_step=1900, metrics={"accuracy": 0.91}),
    )
    folder.write_exit_record(ExitRecord(1, 0, 9000.0))
    assert folder.events.stat().st_size > 4 * HEAD_BYTES
    run = RunLibrary(tmp_path).refresh()[0]
    assert (run.state, run.title, run.model, run.data) == ("finished", "long", "bert-tiny", "train.csv")
    assert (run.metric, run.best, run.seconds) == ("accuracy", 0.91, 8000.0)
    assert not run.resumable


def test_a_run_that_died_is_lost_and_resumable(tmp_path: Path):
    made(tmp_path, "dead", started("dead"), plan(), *steps(3)).lock.touch()
    run = RunLibrary(tmp_path).refresh()[0]
    assert (run.state, run.step, run.total_steps) == ("lost", 3, 2000)
    assert run.resumable


def test_a_folder_that_is_no_run_is_left_out(tmp_path: Path):
    (tmp_path / "holiday-photos").mkdir()
    assert RunLibrary(tmp_path).refresh() == []


def test_a_run_whose_spec_is_missing_is_listed_with_the_way_out(tmp_path: Path):
    folder = made(tmp_path, "rte", started("rte"), plan())
    folder.spec.rename(folder.started_spec)
    run = RunLibrary(tmp_path).refresh()[0]
    assert (run.name, run.state, run.resumable) == ("rte", "lost", False)
    assert "spec.started.yaml" in run.message


def test_no_runs_folder_is_no_runs(tmp_path: Path):
    assert RunLibrary(tmp_path / "nowhere").refresh() == []


def test_new_events_are_seen_at_the_next_look(tmp_path: Path):
    folder = made(tmp_path, "one", started("one"), plan())
    library = RunLibrary(tmp_path)
    library.refresh()
    with folder.events.open("ab") as file:
        file.write(events.encode(steps(1)[0]))
    assert library.refresh()[0].step == 1


def test_a_half_written_line_waits(tmp_path: Path):
    folder = made(tmp_path, "one", started("one"), plan())
    with folder.events.open("ab") as file:
        file.write(events.encode(steps(1)[0])[:20])
    assert RunLibrary(tmp_path).refresh()[0].step == 0


def resumed_far_from_both_ends(tmp_path: Path) -> RunFolder:
    """A long run: its best evaluation and an hour's pause lie where neither head nor tail reaches."""
    every = steps(4000)
    best = events.EvaluationFinished(
        time=2990.0, step=1989, epoch=19, metrics={"accuracy": 0.93}, rows=9, seconds=1.0, is_best=True
    )
    paused = events.RunFinished(time=3001.0, state="paused", step=2000)
    again = events.RunResumed(time=6601.0, attempt=2, from_step=2000)
    later = [msgspec.structs.replace(step, time=step.time + 3600) for step in every[2000:]]
    return made(tmp_path, "long", started("long"), plan(), *every[:2000], best, paused, again, *later)


def test_a_pause_does_not_count_as_duration(tmp_path: Path):
    resumed_far_from_both_ends(tmp_path)
    library = RunLibrary(tmp_path)
    library.refresh()
    library.refresh()
    run = library.runs[0]
    assert run.seconds == 4001.0  # 1,000 s to 8,601 s, less the hour between the two lives
    assert (run.best, run.step) == (0.93, 4000)


def test_a_long_run_is_listed_at_once_and_exact_a_look_later(tmp_path: Path):
    resumed_far_from_both_ends(tmp_path)
    library = RunLibrary(tmp_path)
    assert (library.refresh()[0].best, library.refresh()[0].best) == (None, 0.93)


def test_a_note_and_tags_are_kept_in_the_run_folder(tmp_path: Path):
    folder = made(tmp_path, "one", started("one"), plan())
    library = RunLibrary(tmp_path)
    library.refresh()
    library.annotate(folder.path, RunNotes("better than before", ("paper",)))
    assert library.runs[0].tags == ("paper",)
    anew = RunLibrary(tmp_path).refresh()[0]
    assert (anew.note, anew.tags) == ("better than before", ("paper",))


def test_a_note_that_was_written_in_a_terminal_is_seen_at_the_next_look(tmp_path: Path):
    folder = made(tmp_path, "one", started("one"), plan())
    library = RunLibrary(tmp_path)
    library.refresh()
    write_notes(folder, RunNotes("downloaded file"))
    assert library.refresh()[0].note == "downloaded file"


@pytest.fixture
def settled(tmp_path: Path) -> tuple[RunLibrary, RunFolder]:
    """A library that has seen a run which ended an hour ago."""
    ended = events.RunFinished(time=1003.0, state="stopped", step=2)
    folder = made(tmp_path, "old", started("old"), plan(), *steps(2), ended)
    folder.lock.touch()
    folder.write_exit_record(ExitRecord(1, 0, 1004.0))
    library = RunLibrary(tmp_path)
    leave_for_an_hour(folder)
    assert library.refresh()[0].state == "stopped"
    return library, folder


def leave_for_an_hour(folder: RunFolder) -> None:
    an_hour_ago = time.time() - 3600
    os.utime(folder.path, (an_hour_ago, an_hour_ago))


def test_the_files_of_an_ended_run_are_looked_at_now_and_then_only(settled: tuple[RunLibrary, RunFolder]):
    library, folder = settled
    with folder.events.open("ab") as file:  # as an editor that saves in place, which the folder does not show
        file.write(events.encode(events.RunFinished(time=1003.0, state="failed", step=2)))
    states = [library.refresh()[0].state for _ in range(REFRESHES_UNTIL_INSIDE)]
    assert states[0] == "stopped"
    assert states[-1] == "failed"


def test_a_note_about_an_ended_run_is_seen_at_the_next_look(settled: tuple[RunLibrary, RunFolder]):
    library, folder = settled
    write_notes(folder, RunNotes("downloaded file", ("paper",)))
    assert library.refresh()[0].tags == ("paper",)
    leave_for_an_hour(folder)
    library.refresh()
    write_notes(folder, RunNotes("again"))
    assert library.refresh()[0].note == "again"


def test_an_ended_run_that_another_process_resumes_is_alive_at_the_next_look(settled: tuple[RunLibrary, RunFolder]):
    library, folder = settled
    lock = take_lock(folder.lock)
    folder.write_process_record(ProcessRecord(2, host_id(), boot_id(), 1, 2, time.time()))
    assert library.refresh()[0].alive
    leave_for_an_hour(folder)
    with folder.events.open("ab") as file:
        file.write(events.encode(events.RunResumed(time=2000.0, attempt=2, from_step=2)))
        file.write(events.encode(steps(3)[-1]))
    assert library.refresh()[0].step == 3, "the events of a live run are read however old its folder is"
    os.close(lock)
    assert library.refresh()[0].state == "lost"


def test_a_resumed_run_that_is_queued_waits_at_the_next_look(settled: tuple[RunLibrary, RunFolder]):
    library, folder = settled
    lock = take_lock(folder.lock)
    folder.write_process_record(ProcessRecord(2, host_id(), boot_id(), 1, 2, time.time()))
    folder.join_queue()
    assert library.refresh()[0].waits
    os.close(lock)


def test_renamed_and_deleted_runs_are_seen_at_the_next_look(settled: tuple[RunLibrary, RunFolder]):
    library, folder = settled
    renamed = folder.path.rename(folder.path.with_name("new"))
    assert [run.path for run in library.refresh()] == [renamed]
    leave_for_an_hour(RunFolder(renamed))
    library.refresh()
    (renamed / "spec.yaml").unlink()
    assert library.refresh() == []


def test_a_link_that_leads_nowhere_hides_no_run(settled: tuple[RunLibrary, RunFolder]):
    library, folder = settled
    (folder.path.parent / "loop").symlink_to("loop")
    assert [run.path for run in library.refresh()] == [folder.path]


@pytest.mark.parametrize("name", ["events.jsonl", "process.json", "exit.json", "queued", "notes.json", "spec.yaml"])
def test_a_file_nested_without_end_hides_no_run(settled: tuple[RunLibrary, RunFolder], name: str):
    library, folder = settled
    hostile = made(folder.path.parent, "hostile", started("hostile"), plan())
    (hostile.path / name).write_text('{"event":"Warned","joined":' + "[" * 100_000 + "\n", encoding="utf-8")
    assert [run.name for run in library.refresh()] == ["old", "hostile"]


def test_the_list_stays_the_same_object_by_object_while_nothing_changes(settled: tuple[RunLibrary, RunFolder]):
    library, _ = settled
    assert library.refresh()[0] is library.refresh()[0]


def course(*losses: float, first: int = 1) -> list[events.StepFinished]:
    return [
        msgspec.structs.replace(step, loss=loss, step=first + place)
        for place, (step, loss) in enumerate(zip(steps(len(losses)), losses, strict=True))
    ]


def falling_then(last: float, count: int = 3000) -> list[float]:
    return [1.0 - 0.8 * n / count for n in range(count)] + [last] * 300


END = events.RunFinished(time=9000.0, state="finished", step=3300)


@pytest.mark.parametrize(("last", "doubted"), [(0.9, True), (0.2, False)])
def test_a_long_run_whose_loss_diverged_is_doubted_for_the_reason_that_its_page_gives(
    tmp_path: Path, last: float, doubted: bool
):
    folder = made(tmp_path, "long", started("long"), plan(), *course(*falling_then(last)), END)
    folder.write_exit_record(ExitRecord(1, 0, 9000.0))
    library, state = RunLibrary(tmp_path), RunState()
    library.refresh()  # its two ends
    run = library.refresh()[0]
    state.apply_all(events.decode_lines(folder.events.read_bytes())[0])
    assert run.doubt == doubt(state)
    assert run.doubt.startswith("Training is diverging: the loss has risen from 0.2") is doubted


def test_a_diverged_run_that_is_resumed_and_mends_is_doubted_no_more(tmp_path: Path):
    folder = made(tmp_path, "mended", started("mended"), plan(), *course(*falling_then(0.9, 300)), END)
    folder.write_exit_record(ExitRecord(1, 0, 9000.0))
    library = RunLibrary(tmp_path)
    assert library.refresh()[0].doubt
    later = [
        events.RunResumed(time=9100.0, attempt=2, from_step=300),
        *course(*[0.2] * 300, first=301),
        msgspec.structs.replace(END, time=9900.0),
    ]
    with folder.events.open("ab") as file:
        file.write(b"".join(map(events.encode, later)))
    assert library.refresh()[0].doubt == ""


def test_a_look_that_is_given_up_forgets_no_doubt(tmp_path: Path):
    folder = made(tmp_path, "broken", started("broken"), plan(), *course(*falling_then(0.9, 300)), END)
    folder.write_exit_record(ExitRecord(1, 0, 9000.0))
    library = RunLibrary(tmp_path)
    pieces = sum(1 for _ in RunLibrary(tmp_path).read_changes())
    for given_up_after in range(pieces):
        for _, _ in zip(range(given_up_after), library.read_changes(), strict=False):
            pass
    assert library.refresh()[0].doubt


SPEC = """name: {name}
task: {{type: text_regression}}
model: {{name_or_path: bert-tiny}}
data: {{train: [far/a.csv, far/b.csv]}}
hardware: {{engine: jax}}
"""
Carried = Callable[..., RunFolder]


@pytest.fixture
def carried(tmp_path: Path) -> Iterator[Carried]:
    """Makes a run that a process carries, going on or waiting since a moment."""
    held: list[int] = []

    def make(name: str, queued: float | None = None) -> RunFolder:
        folder = made(tmp_path, name, *([started(name)] if queued is None else []))
        folder.spec.write_text(SPEC.format(name=name))
        held.append(take_lock(folder.lock))
        if queued is not None:
            folder.queued.write_text(json.dumps({"joined": queued}))
        return folder

    yield make
    for descriptor in held:
        os.close(descriptor)


def messages(runs: list[RunSummary]) -> dict[str, str]:
    return {run.name: run.message for run in runs if run.waits}


def test_runs_that_wait_say_for_what_and_in_which_place(tmp_path: Path, carried: Carried):
    carried("going")
    carried("later", 20.0)
    carried("sooner", 10.0)
    library = RunLibrary(tmp_path)
    assert messages(library.refresh()) == {
        "sooner": "Starts after “going” finishes; 1 of 2 in the queue",
        "later": "Starts after “going” finishes; 2 of 2 in the queue",
    }
    carried("beside")
    assert messages(library.refresh())["later"] == "Starts after 2 other runs finish; 2 of 2 in the queue"
    assert count_words(library.runs) == ["2 running", "2 queued"]


def test_a_run_whose_job_is_pending_takes_no_place_in_the_queue_here(tmp_path: Path, carried: Carried):
    there = carried("there")
    there.remote.write_text(json.dumps({"machine": "cluster", "run": "/far/there"}))
    there.write_job_record(JobRecord("12", "pending", "Priority", 1_800_000_000.0))
    carried("here", 1.0)
    library = RunLibrary(tmp_path)
    waits = messages(library.refresh())
    assert waits["there"].startswith(
        "Waits in Slurm (job 12): other jobs have a higher priority; expected to start at "
    )
    assert [run.name for run in in_queue(library.runs)] == ["here"]
    there.write_job_record(JobRecord("12", "running"))
    assert "there" not in messages(library.refresh())


def test_a_run_that_waits_for_a_device_names_only_who_uses_it(tmp_path: Path, carried: Carried):
    carried("here").claim_devices(["cuda:0"])
    carried("elsewhere").claim_devices(["cuda:1"])
    carried("later", 10.0).join_queue(request=DeviceRequest(1, ("cuda:0",)))
    assert messages(RunLibrary(tmp_path).refresh()) == {"later": "Starts after “here” finishes"}


def test_the_next_one_waits_for_nothing_and_the_one_behind_for_it(tmp_path: Path, carried: Carried):
    carried("a", 2.0)
    carried("b", 1.0)
    assert messages(RunLibrary(tmp_path).refresh()) == {
        "b": "Starting soon; 1 of 2 in the queue",
        "a": "Starts after “b” finishes; 2 of 2 in the queue",
    }


def test_a_run_that_has_said_nothing_yet_is_told_by_its_spec(tmp_path: Path, carried: Carried):
    carried("regression", 1.0)
    [run] = RunLibrary(tmp_path).refresh()
    told = (run.title, run.task, run.model, run.engine, run.data)
    assert told == ("regression", "text_regression", "bert-tiny", "jax", "a.csv, b.csv")


def test_runs_that_wait_are_listed_above_those_that_have_begun(tmp_path: Path, carried: Carried):
    carried("going")
    carried("waiting", 5000.0)
    made(tmp_path, "over", started("over"))
    found = arrange(RunLibrary(tmp_path).refresh(), RunListOptions())
    assert [run.name for run in found if isinstance(run, RunSummary)] == ["waiting", "over", "going"]
    grouped = arrange(RunLibrary(tmp_path).refresh(), RunListOptions(group="state"))
    assert [line.title for line in grouped if not isinstance(line, RunSummary)] == ["Queued", "Starting", "Lost"]


def test_two_windows_keep_each_others_note_and_tags(tmp_path: Path):
    folder = made(tmp_path, "one", started("one"), plan())
    libraries = [RunLibrary(tmp_path), RunLibrary(tmp_path)]
    for library in libraries:
        library.refresh()
    libraries[0].annotate(folder.path, RunNotes("better than before", ()))
    libraries[1].annotate(folder.path, RunNotes("", ("paper",)))
    anew = RunLibrary(tmp_path).refresh()[0]
    assert (anew.note, anew.tags) == ("better than before", ("paper",))


def test_the_best_in_the_list_is_that_of_the_metric_where_the_loss_decides(tmp_path: Path):
    at = [
        events.EvaluationFinished(
            time=1002.0,
            step=step,
            epoch=0.1,
            rows=9,
            seconds=1.0,
            metrics={"loss": loss, "accuracy": value},
            is_best=best,
        )
        for step, loss, value, best in ((1, 0.4, 0.85, True), (2, 0.5, 0.91, False), (3, 0.6, 0.86, False))
    ]
    last = events.RunFinished(time=1003.0, state="finished", step=3, metrics={"loss": 0.6, "accuracy": 0.86})
    undecided = msgspec.structs.replace(plan(), best_metric=None)
    made(tmp_path, "undecided", started("undecided"), undecided, *at, last)
    run = RunLibrary(tmp_path).refresh()[0]
    assert (run.metric, run.best, run.metrics["accuracy"]) == ("accuracy", 0.91, 0.86)


def test_the_best_of_a_search_is_that_of_its_best_trial(tmp_path: Path):
    """It evaluates nothing itself; the metric by which it has searched comes first at its end."""
    metrics: dict[str, float | None] = {"f1": 0.8, "accuracy": 0.7}
    made(tmp_path, "search", started("search"), events.RunFinished(time=9.0, state="finished", step=3, metrics=metrics))
    run = RunLibrary(tmp_path).refresh()[0]
    assert (run.metric, run.best, COLUMNS["best"].text(run)) == ("f1", 0.8, "F1 0.8000")


@pytest.mark.parametrize(
    ("values", "best", "words"), [((0.4, 0.5), None, "at chance"), ((0.6, 0.5), 0.6, "Accuracy 0.6000")]
)
def test_a_run_at_chance_has_no_best_in_the_list(
    values: tuple[float, ...], best: float | None, words: str, tmp_path: Path
):
    evaluations = [
        events.EvaluationFinished(
            time=1002.0, step=step, epoch=0.1, rows=9, seconds=1.0, metrics={"accuracy": value}, is_best=step == 1
        )
        for step, value in enumerate(values, start=1)
    ]
    last = events.RunFinished(time=1003.0, state="finished", step=2, metrics={"accuracy": max(values)})
    made(
        tmp_path, "run", started("run"), msgspec.structs.replace(plan(), trivial={"accuracy": 0.5}), *evaluations, last
    )
    run = RunLibrary(tmp_path).refresh()[0]
    assert (run.best, COLUMNS["best"].text(run)) == (best, words)


def test_losses_whose_sum_overflows_hide_no_run(settled: tuple[RunLibrary, RunFolder]):
    library, folder = settled
    end = events.RunFinished(time=1003.0, state="finished", step=40)
    made(folder.path.parent, "hostile", started("hostile"), plan(), *course(*[1e308] * 40), end)
    assert [run.name for run in library.refresh()] == ["old", "hostile"]
