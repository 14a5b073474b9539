"""`burnish tokenizer lengths` and `rows` say in a terminal what the window shows."""

import json
from pathlib import Path

import pytest

from backend.__main__ import main


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What a command prints; it must not fail."""
    assert main(["tokenizer", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_lengths_are_told_with_a_better_limit(spec: Path, capsys: pytest.CaptureFixture[str]):
    out = told(capsys, "lengths", spec, "--set", "task.max_length=24")
    assert "20 % of the rows lose text at 24 tokens; 64 loses 0.1 %." in out
    assert "--set task.max_length=64" in out
    assert "(as set)" in out


def test_json_holds_every_length(spec: Path, capsys: pytest.CaptureFixture[str]):
    found = json.loads(told(capsys, "lengths", spec, "--split", "validation", "--json"))
    [measure] = found["measures"]
    assert sum(measure["counts"]) == found["rows"] == 600
    assert found["padding"] == []  # only training has batches of its own


def test_rows_of_a_step_are_listed_or_written_out(spec: Path, capsys: pytest.CaptureFixture[str]):
    lines = told(capsys, "rows", spec, "--step", "3", "--limit", "4").splitlines()
    assert lines[0].startswith("step 3 of 600, epoch 1: ")
    assert lines[-1] == "and 12 more; --limit shows them"
    found = json.loads(told(capsys, "rows", spec, "--step", "3", "--limit", "2", "--json"))
    assert [one["feature"] for one in found["features"]] == [line[0] for line in found["rows"]["lines"]]
    assert found["features"][0]["arrays"]["input_ids"][0] == 101


def test_a_row_is_counted_from_1_and_shown_token_by_token(spec: Path, capsys: pytest.CaptureFixture[str]):
    out = told(capsys, "rows", spec, "--row", "1")
    assert "train.csv:2" in out
    assert "101 s '[CLS]'" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--step", "9000"], "there is no step 9000: this training has steps 1 to 600"),
        (["--row", "0"], "there is no row 0; there are 2,400"),
        (["--split", "test"], "there is no test data; available: train, validation"),
        (["--split", "validation", "--step", "1"], "only the training data has steps"),
    ],
)
def test_what_is_not_there_is_said(spec: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str):
    assert main(["tokenizer", "rows", str(spec), *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_run_is_named_and_keeps_its_settings(tmp_path: Path, spec: Path, capsys: pytest.CaptureFixture[str]):
    run = tmp_path / "begun"
    run.mkdir()
    (run / "spec.yaml").write_text(spec.read_text(encoding="utf-8"), encoding="utf-8")
    assert told(capsys, "rows", run, "--step", "1", "--limit", "1").startswith("step 1 of 600")
    assert main(["tokenizer", "lengths", str(run), "--set", "task.max_length=8"]) == 2
    assert "is a run, whose steps are those of its own settings" in capsys.readouterr().err
