"""The list of all runs."""

from pathlib import Path

from app.core.run_library import HEAD_BYTES, RunLibrary
from backend.contract import events
from backend.contract.run_folder import ExitRecord, ProcessRecord, RunFolder, boot_id, host_id


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
