"""Predictions are taken home from the terminal as from the window."""

import csv
from argparse import ArgumentParser
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from example_runs import write_run

from backend.commands.export import COMMANDS
from backend.contract.errors import InputError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with three classified rows, the first of them wrong."""
    return write_run(tmp_path / "runs", "text_classification")


def export(run: Path, *words: str) -> int:
    """`burnish export RUN …` in this process."""
    parser, [command] = ArgumentParser(), COMMANDS
    command.add_arguments(parser)
    return command.execute(parser.parse_args([str(run), *words]))


def test_wrong_rows_in_chosen_columns(run: Path, tmp_path: Path, capsys):
    output = tmp_path / "wrong.csv"
    assert export(run, "--predictions", str(output), "--wrong", "--columns", "source,confidence", "--bom") == 0
    assert output.read_bytes() == b'\xef\xbb\xbf"source","confidence"\n"imdb",0.58\n'
    assert capsys.readouterr().out.strip() == f"1 row: {output}"


def test_sorted_rows_of_everything_as_parquet(run: Path, tmp_path: Path):
    output = tmp_path / "all.parquet"
    export(run, "--predictions", str(output), "--sort", "confidence", "--descending")
    assert parquet.read_table(output)["prediction"].to_pylist() == ["positive", "neutral", "positive"]


def test_a_label_pair_and_a_text(run: Path, tmp_path: Path):
    output = tmp_path / "pair.csv"
    export(run, "--predictions", str(output), "--pair", "neutral", "neutral", "--text", "PRICE")
    with output.open(encoding="utf-8", newline="") as file:
        assert [row["source"] for row in csv.DictReader(file)] == ["amazon"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--predictions", "out.txt"], r"ends in \.csv or \.parquet"),
        (["--predictions", "out.csv", "--split", "test"], "has no such predictions; there are validation"),
        (["--predictions", "out.csv", "--columns", "beauty"], "'beauty' is no column of this file"),
    ],
)
def test_what_cannot_be_written_is_said_in_a_sentence(
    run: Path, monkeypatch, tmp_path: Path, words: list[str], said: str
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        export(run, *words)
    assert not list(tmp_path.glob("out.*"))
