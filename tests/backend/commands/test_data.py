"""`burnish data report` from the command line, and the same question asked by the window."""

import json
from pathlib import Path

import pytest

from backend.__main__ import main
from backend.contract.resources import resource

TRAIN, VALIDATION = (resource("demo", "sentiment", f"{split}.csv") for split in ("train", "validation"))
NER = Path(__file__).parents[2] / "data" / "ner"


def test_report_on_a_file_compares_it_with_validation_data(burnish) -> None:
    done = burnish(
        "data", "report", TRAIN, "--validation", VALIDATION, "--task", "text_classification",
        "--tokenizer", resource("demo", "bert-tiny"), "--json",
    )  # fmt: skip

    found = json.loads(done.stdout)
    train, validation = found["splits"]["train"], found["splits"]["validation"]
    assert (train["rows"], validation["rows"]) == (2400, 600)
    assert validation["in_train"] == 7
    assert train["columns"]["text"]["tokens"]["mean"] > train["columns"]["text"]["words"]["mean"]
    assert [one["label"] for one in train["columns"]["label"]["labels"]] == ["negative", "positive"]


def test_report_on_a_folder_measures_each_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, rows in {"train": "a,1\n", "dev": "b,2\nc,1\n", "test": "d,1\n"}.items():
        (tmp_path / f"{name}.csv").write_text(f"text,label\n{rows}", encoding="utf-8")

    assert main(["data", "report", str(tmp_path)]) == 0

    told = capsys.readouterr().out
    assert "train: 1 row (train.csv)" in told
    assert "validation: 2 rows (dev.csv)" in told
    assert "test: 1 row (test.csv)" in told


def test_report_on_a_spec_says_it_in_words(burnish, spec: Path) -> None:
    done = burnish("data", "report", spec)

    assert done.returncode == 0, done.stderr
    assert "train: 2,400 rows (train.csv)" in done.stdout
    assert "label: negative 1,202 (50.1%), positive 1,198 (49.9%)" in done.stdout


def test_fraction_is_taken_off_as_a_run_does(burnish, spec: Path) -> None:
    done = burnish("data", "report", spec, "--set", "data.validation=0.25", "--json")

    splits = json.loads(done.stdout)["splits"]
    assert (splits["train"]["rows"], splits["validation"]["rows"]) == (1800, 600)
    assert splits["validation"]["in_train"] > 0


def test_other_sources_are_named(burnish) -> None:
    done = burnish(
        "data", "report", NER / "train.conll", "--source", "conll", "--task", "token_classification", "--json"
    )

    columns = json.loads(done.stdout)["splits"]["train"]["columns"]
    assert columns["tokens"]["part"] == "tokens"
    assert columns["tags"]["labels"][0]["label"] == "O"


def test_tags_of_few_sentences_are_labels_in_text_too(burnish, tmp_path: Path) -> None:
    path = tmp_path / "slots.tsv"
    path.write_text("Sentence\tSlot\nJohn smiles\tB-PER O\nMary\tB-PER\n", encoding="utf-8")

    done = burnish("data", "report", path, "--task", "token_classification", "--json")

    slot = json.loads(done.stdout)["splits"]["train"]["columns"]["Slot"]
    assert {one["label"]: one["count"] for one in slot["labels"]} == {"B-PER": 2, "O": 1}


def test_missing_file_is_one_sentence(burnish) -> None:
    done = burnish("data", "report", "nothing.csv")

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "nothing.csv" in done.stderr


@pytest.mark.slow
def test_training_finds_what_was_prepared(burnish, spec: Path, tmp_path: Path) -> None:
    prepared = burnish("data", "prepare", spec, BURNISH_CACHE=str(tmp_path / "cache"))
    trained = burnish(
        "train", spec, "--set", "training.max_steps=1", "--set", "evaluation.max_rows=8", BURNISH_CACHE=str(tmp_path / "cache")
    )  # fmt: skip

    assert prepared.returncode == trained.returncode == 0, trained.stderr
    assert "train       2,400 rows, 2,400 features" in prepared.stdout
    assert "train: 2400 features, cached" in trained.stderr


def test_file_that_cannot_be_read_is_recognised_with_exit_code_2(tmp_path: Path, capsys):
    (tmp_path / "rows.csv").write_bytes(b"text\na\0b\n")
    assert main(["data", "recognise", str(tmp_path / "rows.csv")]) == 2
    said = capsys.readouterr()
    assert "NUL" in said.err.splitlines()[-1]
    assert "NUL" not in said.out
    assert main(["data", "recognise", str(tmp_path / "rows.csv"), "--json"]) == 2
    assert "NUL" in json.loads(capsys.readouterr().out)["unreadable"][0]
