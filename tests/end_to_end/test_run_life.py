"""A run's life from the command line: stop, pause, checkpoint, resume, and what disturbs it from outside."""

import json
import os
import resource as limits
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from end_to_end.burnish_process import Burnish, events_of, wait_for

from backend.contract.run.events import CheckpointSaved, PlanMade, RequestAnswered, RunFinished, StepFinished, Warned
from backend.contract.run.folder import RunFolder, run_folders
from backend.training.checkpoints import Checkpoints
from tests import in_process

STEPS = 80
LONG = {"max_steps": 3000, "batch_size": 8, "learning_rate": 1e-4, "checkpoint_every": "never"}
SHORT = {"max_steps": 6, "batch_size": 8, "learning_rate": 3e-4, "checkpoint_every": 2}


def last_event(folder: RunFolder) -> RunFinished:
    event = events_of(folder)[-1]
    assert isinstance(event, RunFinished)
    return event


def started(burnish: Burnish, **training: Any) -> tuple[Any, RunFolder]:
    """A long run that has taken its first steps, and the command that follows it."""
    process = burnish.start("train", str(burnish.spec(training={**LONG, **training}, evaluation={"every": "never"})))
    folder = wait_for(lambda: next(iter(run_folders(burnish.runs)), None), process)
    wait_for(lambda: any(isinstance(event, StepFinished) for event in events_of(folder)), process)
    return process, folder


@pytest.mark.parametrize(("request_", "code", "state"), [("stop", 0, "stopped"), ("interrupt", 75, "interrupted")])
def test_a_request_ends_the_training_with_a_checkpoint(burnish: Burnish, request_: str, code: int, state: str):
    spec = burnish.spec(training=LONG, evaluation={"every": "never"})
    with in_process.at_the_first_step(burnish.runs, lambda folder: folder.request(request_)):
        done = burnish("train", str(spec))
    folder = burnish.run_folder()
    assert done.returncode == code, done.stderr
    assert last_event(folder).state == state
    assert (record := folder.exit_record()) is not None
    assert record.returncode == code
    assert Checkpoints(folder).latest() == last_event(folder).step
    assert (folder.model / "model.safetensors").is_file() == (request_ == "stop")
    assert folder.open_request() is None


@pytest.mark.slow
def test_stop_keeps_a_checkpoint_and_a_model_and_ends_well(burnish: Burnish):
    process, folder = started(burnish)
    assert burnish("stop", folder.name).returncode == 0
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert last_event(folder).state == "stopped"
    assert Checkpoints(folder).latest() == last_event(folder).step
    assert (folder.model / "model.safetensors").is_file()
    assert folder.open_request() is None


def test_a_checkpoint_is_saved_on_request_and_a_pause_is_resumed_until_the_run_is_finished(burnish: Burnish):
    saved: list[int | None] = []

    def ask(folder: RunFolder) -> None:
        folder.request("checkpoint")
        while not any(isinstance(event, RequestAnswered | RunFinished) for event in events_of(folder)):
            time.sleep(0.005)
        saved.extend(event.step for event in events_of(folder) if isinstance(event, CheckpointSaved))
        saved.append(Checkpoints(folder).latest())
        folder.request("pause")

    spec = burnish.spec(training={**LONG, "max_steps": STEPS}, evaluation={"every": "never"})
    with in_process.at_the_first_step(burnish.runs, ask):
        done = burnish("train", str(spec))
    folder = burnish.run_folder()
    assert done.returncode == 0, done.stderr
    assert len(set(saved)) == 1
    assert saved[0] is not None
    paused_at = last_event(folder).step
    assert last_event(folder).state == "paused"
    done = burnish("resume", folder.name, "--json")
    assert done.returncode == 0, done.stderr
    steps = [event.step for event in events_of(folder) if isinstance(event, StepFinished)]
    assert steps == list(range(1, STEPS + 1))
    assert 0 < paused_at < STEPS
    assert last_event(folder).state == "finished"
    refused = burnish("resume", folder.name)
    assert refused.returncode == 2
    assert "finished" in refused.stderr


def processes_of(process: Any, folder: RunFolder) -> dict[str, int]:
    record = folder.process_record()
    assert record
    return {"command": process.pid, "supervisor": record.supervisor_pid, "engine": record.engine_pid}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(
    ("number", "told"),
    [
        ("SIGTERM", "command supervisor engine"),
        ("SIGUSR1", "supervisor"),
        ("SIGTERM", "engine"),
        ("SIGTERM", "command"),
    ],
)
def test_a_run_that_is_told_to_end_from_outside_saves_a_checkpoint_and_goes_on_at_a_resume(
    burnish: Burnish, number: str, told: str
):
    process, folder = started(burnish, max_steps=250)
    for name in told.split():
        os.kill(processes_of(process, folder)[name], getattr(signal, number))
    process.communicate(timeout=60)

    assert process.returncode == 75
    ended = last_event(folder)
    assert (ended.state, Checkpoints(folder).latest()) == ("interrupted", ended.step)
    assert json.loads(burnish("runs", "--json").stdout)[0]["state"] == "interrupted"
    assert burnish("resume", folder.name).returncode == 0
    assert [event.step for event in events_of(folder) if isinstance(event, StepFinished)] == list(range(1, 251))


@pytest.mark.slow
def test_of_two_resumes_at_once_exactly_one_wins(burnish: Burnish):
    process, folder = started(burnish, max_steps=2000)
    burnish("pause", folder.name)
    process.communicate(timeout=60)
    both = [burnish.start("resume", folder.name) for _ in range(2)]
    loser = wait_for(
        lambda: next((one for one in both if one.poll() == 2), None), both[0] if both[1].poll() else both[1]
    )
    _, sentence = loser.communicate()
    assert "already running" in sentence
    burnish("stop", folder.name)
    winner = next(one for one in both if one is not loser)
    winner.communicate(timeout=60)
    assert winner.returncode == 0


def paused(burnish: Burnish) -> RunFolder:
    process, folder = started(burnish, max_steps=200)
    burnish("pause", folder.name)
    process.communicate(timeout=60)
    return folder


@pytest.mark.slow
def test_a_folder_from_another_computer_is_lost_once_it_has_not_grown_and_can_be_resumed(burnish: Burnish):
    folder = paused(burnish)
    record = json.loads(folder.process.read_text())
    folder.process.write_text(json.dumps({**record, "host": "elsewhere", "boot": "another"}))
    folder.exit.unlink()
    lines = folder.events.read_bytes().splitlines(keepends=True)
    folder.events.write_bytes(b"".join(line for line in lines if b'"RunFinished"' not in line))
    os.utime(folder.events, (0, 0))
    [run] = json.loads(burnish("runs", "--json").stdout)
    assert run["state"] == "lost"
    assert burnish("resume", folder.name).returncode == 0


@pytest.mark.slow
def test_a_run_goes_on_though_its_events_were_deleted_and_with_the_rows_of_its_first_plan(burnish: Burnish):
    folder = paused(burnish)
    step = last_event(folder).step
    folder.events.unlink()
    plan = json.loads(folder.plan.read_text())
    folder.plan.write_text(json.dumps({**plan, "micro_batch_size": 3}))  # as if less memory had been free

    resumed = burnish("resume", folder.name)

    assert resumed.returncode == 0, resumed.stderr
    assert f"steps 1–{step} and their evaluations are missing" in resumed.stderr + resumed.stdout
    events = events_of(folder)
    assert [event.step for event in events if isinstance(event, StepFinished)] == list(range(step + 1, 201))
    assert [event.micro_batch_size for event in events if isinstance(event, PlanMade)] == [3]
    assert json.loads(burnish("runs", "--json").stdout)[0]["state"] == "finished"


@pytest.mark.slow
def test_other_library_versions_at_resume_are_said(burnish: Burnish):
    folder = paused(burnish)
    text = folder.events.read_text()
    first, rest = text.split("\n", 1)
    values = json.loads(first)
    values["versions"]["torch"] = "1.0.0"
    folder.events.write_text(json.dumps(values) + "\n" + rest)
    assert burnish("resume", folder.name).returncode == 0
    [warning] = [event for event in events_of(folder) if isinstance(event, Warned) and event.code == "other_versions"]
    assert "torch 1.0.0" in warning.message
    assert "bit-for-bit" in warning.message


@pytest.mark.slow
def test_a_resume_on_other_rows_is_refused_and_the_run_stays_resumable(burnish: Burnish):
    folder = paused(burnish)
    train = burnish.home / "train.csv"
    content = train.read_bytes()
    train.write_bytes(content + b"one more row,positive,imdb\n")
    refused = burnish("resume", folder.name)
    assert refused.returncode == 1
    assert "train.csv" in refused.stderr.strip().splitlines()[-1]
    assert last_event(folder).code == "data_changed"
    train.write_bytes(content)
    assert burnish("resume", folder.name).returncode == 0


@pytest.mark.slow
def test_a_full_disk_keeps_the_old_checkpoint_and_says_so(burnish: Burnish):
    # A limit on the size of written files stands in for the full disk: writing the 50 MB checkpoint fails half-way.
    done = burnish.process(
        "train",
        str(burnish.spec(training=SHORT)),
        preexec_fn=lambda: limits.setrlimit(limits.RLIMIT_FSIZE, (10_000_000, 10_000_000)),
    )
    folder = burnish.run_folder()
    assert done.returncode == 1, done.stderr
    assert last_event(folder).code == "disk_full"
    assert "disk" in done.stderr.strip().splitlines()[-1]
    assert not folder.checkpoints.exists() or list(folder.checkpoints.iterdir()) == []


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_checkpoint(burnish: Burnish):
    # Decoupled decay of 10 × 1 multiplies every weight by -9 a step, until they leave float32's range.
    training = {"max_steps": 400, "batch_size": 8, "learning_rate": 10.0, "weight_decay": 1.0, "schedule": "constant"}
    done = burnish(
        "train", str(burnish.spec(training={**training, "checkpoint_every": 5}, evaluation={"every": "never"}))
    )
    folder = burnish.run_folder()
    assert done.returncode == 1, done.stderr
    finished = last_event(folder)
    bad = [event.step for event in events_of(folder) if isinstance(event, StepFinished) and event.loss is None]
    assert finished.code == "nan_loss"
    assert finished.step == bad[0]
    assert f"step {bad[0]}" in finished.message
    assert "learning_rate" in finished.hint
    assert Checkpoints(folder).latest() == (bad[0] - 1) // 5 * 5


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is enforced on Linux alone")
def test_memory_that_runs_out_is_stated_with_the_setting_that_helps(burnish: Burnish):
    rows = "text,label\n" + "".join(f"{'word ' * 600},{'yes' if number % 2 else 'no'}\n" for number in range(3000))
    (burnish.home / "train.csv").write_text(rows)
    spec = burnish.spec(
        task={"max_length": 512},
        data={"validation": None},
        training={**SHORT, "batch_size": 3000},
        evaluation={"every": "never"},
        hardware={"micro_batch_size": 3000},
    )
    limit = 9_000_000_000
    done = burnish.process("train", str(spec), preexec_fn=lambda: limits.setrlimit(limits.RLIMIT_AS, (limit, limit)))
    assert done.returncode == 1, done.stderr
    finished = last_event(burnish.run_folder())
    assert finished.code == "out_of_memory"
    assert "hardware.micro_batch_size" in finished.hint


@pytest.mark.slow
def test_a_batch_larger_than_the_data_uses_all_rows_and_says_so(burnish: Burnish):
    assert burnish("train", str(burnish.spec(training={**SHORT, "batch_size": 500}))).returncode == 0
    events = events_of(burnish.run_folder())
    assert {event.rows for event in events if isinstance(event, StepFinished)} == {64}
    assert any(isinstance(event, Warned) and event.code == "batch_larger_than_data" for event in events)


def test_an_existing_run_folder_is_not_overwritten(burnish: Burnish, tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note.txt").write_text("keep me")
    done = burnish("train", str(burnish.spec()), "--run-folder", str(tmp_path / "mine"))
    assert done.returncode == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["note.txt"]
