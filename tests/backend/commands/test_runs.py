"""`burnish runs`, `note` and `compare` with recorded runs."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from backend.__main__ import main
from backend.commands.summary import MISSING, NO_CURVES, summary
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder, boot_id, host_id

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
    assert "only its beginning and end were read" in told["sentiment-lost"]["message"]
    assert told["sentiment-finished"]["metrics"]["accuracy"] == pytest.approx(0.8716, abs=1e-4)

    assert main(["report", "sentiment-lost"]) == 0
    assert "only the beginning and the end were read" in capsys.readouterr().out
