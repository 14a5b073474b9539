"""Tagging from the command line: a name whose kind its neighbour tells, which no tagger by words alone can know."""

import csv
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from end_to_end.burnish_process import Burnish

NAMES = ["Jordan", "Paris", "Georgia", "Florence", "Chelsea", "Austin", "Sydney", "Victoria"]


def sentence(choice: random.Random) -> list[tuple[str, str]]:
    name = choice.choice(NAMES)
    if choice.random() < 0.5:
        return [("mrs", "O"), (name, "B-PER"), ("sings", "O"), ("here", "O")]
    return [("they", "O"), ("live", "O"), ("in", "O"), (name, "B-LOC"), (".", "O")]


def write(path: Path, sentences: list[list[tuple[str, str]]]) -> None:
    blocks = ["".join(f"{word} {tag}\n" for word, tag in one) for one in sentences]
    path.write_text("-DOCSTART- O\n\n" + "\n".join(blocks), encoding="utf-8")


def majority_recall(train: list[list[tuple[str, str]]], validation: list[list[tuple[str, str]]]) -> float:
    """How many names the tag that each word has most often gets right."""
    counts: dict[str, Counter[str]] = {}
    for word, tag in (pair for one in train for pair in one):
        counts.setdefault(word, Counter())[tag] += 1
    names = [pair for one in validation for pair in one if pair[1] != "O"]
    return sum(counts[word].most_common(1)[0][0] == tag for word, tag in names) / len(names)


@pytest.mark.slow
def test_trained_tagger_reads_the_context_that_a_tagger_by_words_does_not(burnish: Burnish):
    choice = random.Random(0)
    train, validation = ([sentence(choice) for _ in range(count)] for count in (400, 100))
    write(burnish.home / "train.conll", train)
    write(burnish.home / "validation.conll", validation)
    spec = burnish.spec(
        task={"type": "token_classification", "max_length": 32},
        data={"source": "conll", "train": "train.conll", "validation": "validation.conll", "columns": {}},
        training={"max_steps": 60, "batch_size": 16, "learning_rate": 1e-3, "checkpoint_every": "epoch"},
        evaluation={"every": "epoch", "best_metric": "f1"},
    )

    done = burnish("train", str(spec))
    assert done.returncode == 0, done.stderr

    folder = burnish.run_folder()
    evaluated = burnish("evaluate", str(folder.path), "--data", "validation.conll", "--json")
    metrics = json.loads(evaluated.stdout)["metrics"]
    assert majority_recall(train, validation) < 0.7
    assert min(metrics["f1"], metrics["f1_PER"], metrics["f1_LOC"]) > 0.95
    with folder.predictions().open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["tokens", "tags", "prediction", "actual", "lost_words"]
    assert [json.loads(row["tokens"]) for row in rows] == [[word for word, _ in one] for one in validation]
    lines = (folder.path / "predictions.conll").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[:2] for line in lines if line] == [list(pair) for one in validation for pair in one]


@pytest.mark.slow
def test_untagged_text_is_predicted_and_bad_rows_are_named(burnish: Burnish):
    write(burnish.home / "train.conll", [sentence(random.Random(seed)) for seed in range(40)])
    spec = burnish.spec(
        task={"type": "token_classification", "max_length": 32},
        data={"source": "conll", "train": "train.conll", "validation": None, "columns": {}},
        training={"max_steps": 1, "checkpoint_every": "epoch"},
        evaluation={"every": "never"},
    )
    assert burnish("train", str(spec)).returncode == 0
    (burnish.home / "new.csv").write_text("Sentence,Slot\nmrs Paris sings,\n", encoding="utf-8")
    (burnish.home / "bad.jsonl").write_text('{"tokens": ["mrs", "Paris"], "tags": ["O"]}\n', encoding="utf-8")
    run = str(burnish.run_folder().path)

    columns = ("--set", "data.columns={tokens: Sentence}")
    predicted = burnish("predict", run, "--data", "new.csv", "--output", "out.csv", *columns)
    refused = burnish("evaluate", run, "--data", "bad.jsonl")

    assert predicted.returncode == 0, predicted.stderr
    with (burnish.home / "out.csv").open(encoding="utf-8", newline="") as file:
        [row] = csv.DictReader(file)
    assert len(row["prediction"].split(" ")) == 3
    assert refused.returncode == 2
    assert "bad.jsonl:1 has 2 words and 1 tag" in refused.stderr
