"""Tests `burnish runs`, `note` and `compare` with recorded runs, and what a run's line says of it."""

import csv
import io
import json
import shutil
import time
from pathlib import Path

import pytest

from backend.__main__ import main
from backend.commands.runs import MISSING, NO_CURVES, summary
from backend.contract.run import events
from backend.contract.run.event_summary import CHUNK_BYTES
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder, boot_id, host_id
from backend.contract.run.lock import hold_lock

RECORDED = Path(__file__).parents[2] / "data" / "recorded"


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch) -> Path:
    shutil.copytree(RECORDED, tmp_path / "runs")
    monkeypatch.setenv("BURNISH_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def names(printed: str) -> list[str]:
    return [line.split()[0] for line in printed.splitlines() if line.startswith(("sentiment", "old"))]


def test_a_note_and_tags_are_written_and_found(recorded, capsys):
    assert main(["note", "sentiment-lost", "the laptop slept", "--tag", "laptop", "--tag", "#again"]) == 0
    assert main(["note", "sentiment-lost", "--untag", "again"]) == 0
    capsys.readouterr()
    main(["runs", "--search", "#laptop", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [(run["name"], run["note"], run["tags"]) for run in found] == [
        ("sentiment-lost", "the laptop slept", ["laptop"])
    ]


def test_the_largest_metric_comes_first_and_none_last(recorded, capsys):
    main(["runs", "--sort", "accuracy", "--json"])
    values = [run["metrics"].get("accuracy") for run in json.loads(capsys.readouterr().out)]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=True)
    assert values[: len(known)] == known


def test_a_column_that_nobody_has_is_refused_with_those_there_are(recorded, capsys):
    assert main(["runs", "--sort", "bleu"]) == 2
    assert "started, name" in capsys.readouterr().err


def test_runs_are_gathered_under_headings(recorded, capsys):
    main(["runs", "--group", "state"])
    printed = capsys.readouterr().out
    assert "finished (2)" in printed.splitlines()
    assert len(names(printed)) == 5


def test_final_metrics_are_a_table(recorded, capsys):
    main(["runs", "--table", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    best = next(row for row in rows if row["run"] == "sentiment-finished")
    assert (best["state"], best["accuracy"], best["data"]) == ("finished", "0.8716", "train.csv")


def test_compared_runs_show_the_settings_in_which_they_differ(recorded, capsys):
    spec = recorded / "sentiment-lost" / "spec.yaml"
    spec.write_text(spec.read_text().replace("batch_size: 16", "batch_size: 64"))
    main(["compare", "sentiment-finished", "sentiment-lost"])
    printed = capsys.readouterr().out
    assert "| Setting | sentiment-finished | sentiment-lost |" in printed
    assert "| training.batch_size | 16 | 64 |" in printed
    assert "training.epochs" not in printed


def test_compared_runs_of_one_name_are_told_by_their_folders(recorded, capsys, tmp_path: Path):
    other = Path(shutil.copytree(recorded / "sentiment-lost", tmp_path / "other" / "sentiment-lost"))
    spec = other / "spec.yaml"
    spec.write_text(spec.read_text().replace("batch_size: 16", "batch_size: 64"))
    assert main(["compare", "sentiment-lost", str(other)]) == 0
    printed = capsys.readouterr().out
    assert f"| Setting | {recorded / 'sentiment-lost'} | {other} |" in printed
    assert "| training.batch_size | 16 | 64 |" in printed


def test_a_run_whose_events_are_gone_says_so_and_how_it_goes_on(recorded, capsys):
    run = RunFolder(recorded / "sentiment-lost")
    run.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 1, 1.0))
    run.write_exit_record(ExitRecord(1, 0, 2.0))
    run.events.unlink()

    told = summary(run)
    assert main(["export", "sentiment-lost", "--csv", "-"]) == 2

    assert (told.state, told.message) == ("lost", MISSING)
    assert "is missing; burnish resume continues the run" in capsys.readouterr().err


def test_a_finished_run_whose_events_are_gone_stays_finished(recorded):
    run = RunFolder(recorded / "sentiment-finished")
    run.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 1, 1.0))
    run.write_exit_record(ExitRecord(1, 0, 2.0))
    run.events.unlink()
    run.model.mkdir(exist_ok=True)
    run.predictions().touch()
    told = summary(run)
    assert (told.state, told.message) == ("finished", NO_CURVES)


def test_curves_go_into_a_folder_and_not_into_a_file(recorded, capsys, tmp_path: Path):
    (tmp_path / "board").write_text("mine")
    assert main(["export", "sentiment-finished", "--tensorboard", str(tmp_path / "board")]) == 2
    assert "board is a file; name a folder" in capsys.readouterr().err


def test_a_comparison_as_json_has_the_table_and_the_tests_or_why_there_are_none(recorded, capsys):
    assert main(["compare", "sentiment-finished", "sentiment-lost", "--all", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["name"] for run in found["runs"]] == ["sentiment-finished", "sentiment-lost"]
    assert found["settings"]["training.epochs"].keys() == {"sentiment-finished", "sentiment-lost"}
    assert (found["tests"], found["sentences"]) == ([], [])
    assert found["losses"] == ["the losses of sentiment-finished and sentiment-lost part at step 1"]
    assert "has no predictions of validation rows" in found["refusal"]


def test_one_run_alone_cannot_be_compared(recorded, capsys):
    assert main(["compare", "old-run"]) == 2
    assert "two or more" in capsys.readouterr().err


def test_a_report_is_printed(recorded, capsys):
    assert main(["report", "sentiment-failed"]) == 0
    assert "code out_of_memory" in capsys.readouterr().out


def test_a_run_with_gigabytes_of_nothing_keeps_no_other_run_from_the_list(recorded, capsys):
    with RunFolder(recorded / "sentiment-lost").events.open("rb+") as file:
        file.truncate(20_000_000_000)  # sparse, so it takes no room
    assert main(["runs", "--json"]) == 0
    told = {run["name"]: run for run in json.loads(capsys.readouterr().out)}
    assert "only its start and end were read" in told["sentiment-lost"]["message"]
    assert told["sentiment-finished"]["metrics"]["accuracy"] == pytest.approx(0.8716, abs=1e-4)

    assert main(["report", "sentiment-lost"]) == 0
    assert "only the beginning and the end were read" in capsys.readouterr().out


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run whose first attempt has a process record."""
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    run.spec.write_text("version: 1\n")
    run.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 2, time.time()))
    return run


def write(folder: RunFolder, *many: events.Event) -> None:
    """Append events."""
    with folder.events.open("ab") as file:
        file.writelines(map(events.encode, many))


STARTED = events.RunStarted(time=1, name="tiny", task="text_classification", model="bert")
PLAN = events.PlanMade(
    time=2, total_steps=40, steps_per_epoch=20, batch_size=8, micro_batch_size=8, accumulation=1, epochs=2
)


def step(number: int) -> events.StepFinished:
    """One step."""
    return events.StepFinished(
        time=3, step=number, epoch=0.1, loss=0.5, learning_rate=1e-4, gradient_norm=1.0, rows=8, tokens=80, seconds=0.1
    )


def test_run_with_a_lock_is_running(folder: RunFolder) -> None:
    write(folder, STARTED, PLAN, step(7))

    with hold_lock(folder.lock):
        found = summary(folder)

    assert (found.state, found.step, found.total_steps) == ("running", 7, 40)


def test_run_without_lock_and_exit_is_lost(folder: RunFolder) -> None:
    write(folder, STARTED, PLAN, step(7))
    folder.lock.touch()

    assert summary(folder).state == "lost"


def test_a_paused_run_that_waits_is_queued_and_lost_if_it_is_killed_there(folder: RunFolder) -> None:
    write(folder, STARTED, PLAN, step(7), events.RunFinished(time=4, state="paused", step=7))
    folder.join_queue()

    with hold_lock(folder.lock):
        waiting = summary(folder)
    killed = summary(folder)

    assert (waiting.state, waiting.message) == ("queued", "is about to start (1 of 1 in the queue)")
    assert waiting.queued == folder.queued_since()
    assert (killed.state, killed.queued) == ("lost", None)
    assert "while it waited in the queue" in killed.message


def test_run_that_ended_by_itself_says_how(folder: RunFolder) -> None:
    finished = events.RunFinished(time=9, state="stopped", step=12, metrics={"accuracy": 0.9})
    write(folder, STARTED, PLAN, step(12), finished)
    folder.write_exit_record(ExitRecord(1, 0, 9.0))

    found = summary(folder)

    assert (found.state, found.step, found.metrics) == ("stopped", 12, {"accuracy": 0.9})


def test_killed_engine_makes_a_failed_run_with_the_reason(folder: RunFolder) -> None:
    write(folder, STARTED, PLAN, step(7))
    folder.write_exit_record(ExitRecord(1, -9, 9.0, "the engine process was killed"))

    found = summary(folder)

    assert (found.state, found.message) == ("failed", "the engine process was killed")


def test_run_whose_process_broke_down_after_its_last_word_has_ended_as_it_said(folder: RunFolder) -> None:
    write(folder, STARTED, PLAN, step(40), events.RunFinished(time=9, state="finished", step=40))
    folder.write_exit_record(ExitRecord(1, -11, 9.0, "the engine process was terminated by SIGSEGV"))

    assert summary(folder).state == "finished"


def test_run_that_died_in_its_second_attempt_before_it_said_anything_has_failed(folder: RunFolder) -> None:
    write(folder, STARTED, PLAN, step(7), events.RunFinished(time=4, state="paused", step=7))
    folder.write_process_record(ProcessRecord(2, host_id(), boot_id(), 1, 2, time.time()))
    folder.write_exit_record(ExitRecord(2, 1, time.time(), "torch is gone"))

    found = summary(folder)

    assert (found.state, found.message) == ("failed", "torch is gone")


def test_last_attempt_decides(folder: RunFolder) -> None:
    paused = events.RunFinished(time=4, state="paused", step=7)
    write(folder, STARTED, PLAN, step(7), paused, events.RunResumed(time=5, attempt=2, from_step=5))
    folder.write_process_record(ProcessRecord(2, host_id(), boot_id(), 1, 2, time.time()))
    folder.lock.touch()

    found = summary(folder)

    assert (found.state, found.step) == ("lost", 5)


def test_metrics_are_the_last_of_the_validation_data_that_still_count(folder: RunFolder) -> None:
    def evaluated(at: int, accuracy: float, split: str = "validation") -> events.EvaluationFinished:
        return events.EvaluationFinished(
            time=3, step=at, epoch=1, metrics={"accuracy": accuracy}, rows=1, seconds=1, split=split
        )

    write(folder, STARTED, PLAN, evaluated(5, 0.5), evaluated(5, 0.9, "train"), evaluated(10, 0.6))
    write(folder, events.RunResumed(time=5, attempt=2, from_step=5))

    assert summary(folder).metrics == {"accuracy": 0.5}


def test_long_run_is_read_in_several_portions(folder: RunFolder) -> None:
    count = CHUNK_BYTES // len(events.encode(step(1))) + 500
    write(folder, STARTED, PLAN, *map(step, range(1, count + 1)))

    found = summary(folder)

    assert (found.step, found.task, found.total_steps) == (count, "text_classification", 40)


def test_runs_are_printed_as_json(burnish, runs: Path) -> None:
    for name in ("2026-01-01-0900-a", "2026-02-01-0900-b"):
        (runs / name).mkdir(parents=True)
        (runs / name / "spec.yaml").write_text("version: 1\n")

    found = json.loads(burnish("runs", "--json").stdout)

    assert [run["name"] for run in found] == ["2026-02-01-0900-b", "2026-01-01-0900-a"]
