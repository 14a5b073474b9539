"""A run with several labels per row: the losses of a plain transformers loop, scikit-learn's scores, a model for everyone."""

import csv
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn import metrics
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.run.events import PredictionsWritten, RunFinished, StepFinished, Warned
from backend.contract.run.folder import RunFolder
from backend.inference.interactive import InteractivePredictor
from backend.inference.predict import evaluate, predict
from backend.preflight.resolve import resolve
from backend.training.event_log import read_events
from backend.training.loop import run
from tests.backend.tasks.topics import TOPICS, topic_rows

ROWS, HELD_OUT, STEPS, RATE = 64, 60, 16, 2e-3
EPSILON = 1e-4  # a small one turns the rounding of gradients that are zero into whole steps
WEIGHTS = {"money": 2.0, "sport": 3.0}
TINY = resource("demo", "bert-tiny")


@dataclass(frozen=True)
class Trained:
    """A finished run, the model that it started from, and its data."""

    folder: RunFolder
    start: Path
    train: list[dict[str, Any]]
    validation: list[dict[str, Any]]

    def events(self, kind: type) -> list[Any]:
        return [event for event in read_events(self.folder.events) if isinstance(event, kind)]

    def predictions(self) -> list[dict[str, str]]:
        with self.folder.predictions().open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    home = tmp_path_factory.mktemp("topics")
    start = home / "start"
    torch.manual_seed(5)
    names = dict(enumerate(TOPICS))
    model = AutoModelForSequenceClassification.from_pretrained(
        TINY, dtype=torch.float32, id2label=names, label2id={label: place for place, label in names.items()}
    )
    model.save_pretrained(start)
    AutoTokenizer.from_pretrained(TINY).save_pretrained(start)
    train, validation = topic_rows(ROWS), topic_rows(HELD_OUT, seed=1)
    spec = {
        "task": {"type": "text_classification", "labels_per_row": "many", "max_length": 32, "class_weights": WEIGHTS},
        "model": {"name_or_path": str(start), "dropout": 0.0},
        "data": {
            "train": str(write_rows(home / "train.jsonl", train)),
            "validation": str(write_rows(home / "validation.jsonl", validation)),
        },
        "training": {
            "epochs": STEPS, "batch_size": ROWS, "learning_rate": RATE, "warmup": 0, "schedule": "constant",
            "weight_decay": 0.0, "max_gradient_norm": 1.0, "adam_epsilon": EPSILON, "seed": 3,
        },
        "evaluation": {"every": STEPS, "best_metric": None},
        "hardware": {"engine": "torch", "device": "cpu", "precision": "float32"},
    }  # fmt: skip
    folder = RunFolder(home / "run")
    folder.path.mkdir()
    folder.spec.write_text(spec_file.dump(resolve(spec, home).model_dump(mode="json")), encoding="utf-8")
    assert run(folder) == 0, folder.events.read_text(encoding="utf-8")[-2000:]
    return Trained(folder, start, train, validation)


def has_labels(rows: Sequence[dict[str, Any]]) -> np.ndarray:
    return np.array([[topic in row["labels"] for topic in TOPICS] for row in rows])


def plain_losses(trained: Trained) -> list[float]:
    """Nothing of ours: transformers' model, torch's loss and AdamW. A batch is all rows, so their order changes nothing."""
    tokenizer = AutoTokenizer.from_pretrained(trained.start)
    model = AutoModelForSequenceClassification.from_pretrained(
        trained.start, dtype=torch.float32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    ).train()
    criterion = torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor([WEIGHTS.get(topic, 1.0) for topic in TOPICS]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0, eps=EPSILON)
    wanted, found = torch.tensor(has_labels(trained.train), dtype=torch.float32), []
    batch = tokenizer([row["text"] for row in trained.train], padding=True, return_tensors="pt")
    for _ in range(STEPS):
        loss = criterion(model(**batch).logits, wanted)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    return found


def plain_chances(trained: Trained) -> np.ndarray:
    """The saved model in plain transformers, with a sigmoid: (rows, labels)."""
    model = AutoModelForSequenceClassification.from_pretrained(trained.folder.model).eval()
    assert model.config.problem_type == "multi_label_classification"
    assert tuple(model.config.id2label.values()) == TOPICS
    tokenizer = AutoTokenizer.from_pretrained(trained.folder.model)
    batch = tokenizer([row["text"] for row in trained.validation], padding=True, return_tensors="pt")
    with torch.no_grad():
        return model(**batch).logits.sigmoid().numpy()


def test_the_losses_are_those_of_a_plain_transformers_loop(trained: Trained):
    ours = [event.loss for event in trained.events(StepFinished)]
    assert ours == pytest.approx(plain_losses(trained), abs=1e-5)
    assert ours[-1] < ours[0] / 2


def test_the_saved_model_gives_the_same_probabilities_in_plain_transformers(trained: Trained):
    written = [[float(row[f"probability_{topic}"]) for topic in TOPICS] for row in trained.predictions()]
    np.testing.assert_allclose(written, plain_chances(trained), atol=1e-5)


def test_the_metrics_are_those_of_scikit_learn_with_the_tuned_thresholds(trained: Trained):
    thresholds = json.loads((trained.folder.model / "burnish.json").read_text(encoding="utf-8"))["facts"]["thresholds"]
    has, chances = has_labels(trained.validation), plain_chances(trained)
    chosen = chances >= np.array(thresholds)
    [written] = trained.events(PredictionsWritten)
    assert written.metrics["f1_micro"] == pytest.approx(metrics.f1_score(has, chosen, average="micro"))
    assert written.metrics["f1_samples"] == pytest.approx(
        metrics.f1_score(has, chosen, average="samples", zero_division=1)
    )
    assert written.metrics["mean_average_precision"] == pytest.approx(
        metrics.average_precision_score(has, chances, average="macro"), abs=1e-6
    )
    assert written.metrics["mean_average_precision"] > 0.9
    low, high = written.intervals["f1_micro"]
    assert low <= written.metrics["f1_micro"] <= high
    assert trained.events(RunFinished)[0].metrics == written.metrics
    joined = [";".join(topic for topic, one in zip(TOPICS, row, strict=True) if one) for row in chosen]
    assert [row["prediction"] for row in trained.predictions()] == joined


def test_a_run_says_that_its_thresholds_were_tuned(trained: Trained):
    assert any("3 of 3 labels were tuned on the 60 validation rows" in one.message for one in trained.events(Warned))


def test_new_rows_are_predicted_and_measured_with_the_tuned_or_another_threshold(trained: Trained, tmp_path: Path):
    data = write_rows(tmp_path / "new.jsonl", trained.validation)
    [written] = trained.events(PredictionsWritten)
    assert evaluate(str(trained.folder.path), data).metrics == pytest.approx(written.metrics)
    plain = write_rows(tmp_path / "plain.jsonl", [{"text": row["text"]} for row in trained.validation[:3]])
    predict(str(trained.folder.path), plain, tmp_path / "out.csv", changes=["task.thresholds=0.0"])
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["prediction"] for row in rows] == ["culture;money;sport"] * 3
    assert list(rows[0]) == ["text", "prediction", *(f"probability_{topic}" for topic in TOPICS)]


def test_a_model_of_another_program_says_that_it_has_several_labels(trained: Trained, tmp_path: Path):
    plain = shutil.copytree(trained.folder.model, tmp_path / "plain")
    (plain / "burnish.json").unlink()
    data = write_rows(tmp_path / "new.jsonl", trained.validation)
    found = evaluate(str(plain), data, "text_classification").metrics
    [written] = trained.events(PredictionsWritten)
    assert found["mean_average_precision"] == pytest.approx(written.metrics["mean_average_precision"])


def test_a_model_of_several_labels_is_not_asked_for_one(trained: Trained, tmp_path: Path):
    data = write_rows(tmp_path / "new.jsonl", [{"text": row["text"]} for row in trained.validation[:3]])
    with pytest.raises(InputError, match="this model was trained with many, which only training again can change"):
        predict(str(trained.folder.path), data, tmp_path / "out.csv", changes=["task.labels_per_row=one"])


def test_a_typed_text_is_answered_with_its_labels(trained: Trained):
    model = InteractivePredictor(str(trained.folder.path))
    [row] = model.answer([{"text": "People talked about the marathon and a bank loan."}]).rows
    assert row["prediction"] == "money;sport"
    [row] = model.answer([{"text": "People talked about the marathon."}], {"thresholds": 1.0}).rows
    assert row["prediction"] == ""
