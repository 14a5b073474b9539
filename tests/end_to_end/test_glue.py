"""A GLUE folder from the command line: train, measure, predict what has no label, and write what the server takes."""

import csv
import json
from pathlib import Path

import pytest
from end_to_end.burnish_process import Burnish

FOLDER = Path(__file__).parents[1] / "data" / "glue"


def spec(burnish: Burnish, task: str, glue: str, **data: str) -> str:
    path = burnish.spec(
        task={"type": task},
        data={"source": "glue", "task": glue, "folder": str(FOLDER), "train": None, "validation": None, "columns": {}, **data},
        training={"max_steps": 3, "batch_size": 4},
        evaluation={"every": 3, "best_metric": "combined"},
    )  # fmt: skip
    return str(path)


@pytest.mark.parametrize(
    ("task", "glue", "folder", "measured"),
    [
        ("text_classification", "rte", "RTE", {"loss", "accuracy", "f1", "combined", "matthews"}),
        pytest.param(
            "text_regression", "stsb", "STS-B", {"loss", "pearson", "spearman", "combined"}, marks=pytest.mark.slow
        ),
    ],
)
def test_a_folder_is_trained_on_measured_and_predicted(
    burnish: Burnish, task: str, glue: str, folder: str, measured: set[str]
):
    done = burnish("train", spec(burnish, task, glue))
    assert done.returncode == 0, done.stderr
    run = burnish.run_folder().name

    scored = burnish("evaluate", run, "--data", str(FOLDER / folder / "dev.tsv"), "--json")
    assert scored.returncode == 0, scored.stderr
    assert measured <= json.loads(scored.stdout)["metrics"].keys()

    output, for_server = burnish.home / "predictions.csv", burnish.home / "answers.tsv"
    told = burnish("predict", run, "--data", str(FOLDER / folder), "--output", str(output), "--glue", str(for_server))
    assert told.returncode == 0, told.stderr
    with output.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert "actual" not in rows[0]
    answers = [line.split("\t") for line in for_server.read_text(encoding="utf-8").splitlines()[1:]]
    assert [index for index, _ in answers] == [row["index"] for row in rows]
    if glue == "rte":
        assert [answer for _, answer in answers] == [row["prediction"] for row in rows]
    else:
        assert [float(answer) for _, answer in answers] == [round(float(row["prediction"]), 3) for row in rows]


def test_the_folder_of_another_task_leaves_nothing_behind(burnish: Burnish):
    done = burnish("train", spec(burnish, "text_classification", "rte", folder=str(FOLDER / "MRPC")))
    assert done.returncode == 2
    assert (
        done.stderr.strip()
        .splitlines()[-1]
        .endswith("it is a file of mrpc; set data.task to that, or set data.folder to the folder of rte")
    )
    assert not list(burnish.runs.glob("*"))


def test_test_rows_are_predicted_and_not_measured(burnish: Burnish):
    done = burnish("train", spec(burnish, "text_classification", "rte", test="test"))
    assert done.returncode == 0, done.stderr
    assert "test: no labels to evaluate with" in done.stderr
    with burnish.run_folder().predictions("test").open(encoding="utf-8", newline="") as file:
        assert all(row["prediction"] in {"entailment", "not_entailment"} for row in csv.DictReader(file))


def test_a_file_for_the_server_is_no_other_file(burnish: Burnish):
    done = burnish("predict", "nothing", "--data", "a.tsv", "--output", "b.csv", "--glue", "b.csv")
    assert done.returncode == 2
    assert "--glue: b.csv is the input file, or another output" in done.stderr
