"""`burnish runs`, `note` and `compare` with recorded runs."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from backend.__main__ import main

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


def test_one_run_alone_cannot_be_compared(recorded, capsys):
    assert main(["compare", "old-run"]) == 2
    assert "two or more" in capsys.readouterr().err


def test_a_report_is_printed(recorded, capsys):
    assert main(["report", "sentiment-failed"]) == 0
    assert "code out_of_memory" in capsys.readouterr().out
