"""Fifty optimizer steps on real data: both engines draw one curve and predict the same."""

import csv
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest

from backend.contract import spec_file
from backend.contract.run.events import EvaluationFinished, StepFinished
from backend.contract.run.folder import RunFolder
from backend.preflight.resolve import resolve
from backend.training.event_log import read_events
from backend.training.loop import run

ROOT = Path(__file__).resolve().parents[2]
DEMO, DATA = ROOT / "resources" / "demo", ROOT / "docs" / "results" / "data"
STEPS = 50
ENGINES = ("jax", "torch")
TINY = str(DEMO / "bert-tiny")


def measured(source: str, name: str, **more: object) -> dict[str, object]:
    """The data section of what the table of results was measured on."""
    folder = DATA / name
    return {"source": source, **{split: str(*folder.glob(f"{split}.*")) for split in ("train", "validation")}, **more}


CASES = {
    "sentiment": {
        "task": {"type": "text_classification", "max_length": 64},
        "model": {"name_or_path": TINY},
        "data": {"source": "demo", "name": "sentiment"},
    },
    "boolq": {
        "task": {"type": "text_classification", "max_length": 128},
        "model": {"name_or_path": TINY},
        "data": measured("files", "boolq", columns={"text": "question", "text_pair": "passage", "label": "label"}),
    },
    "names": {
        "task": {"type": "token_classification", "max_length": 64},
        "model": {"name_or_path": TINY},
        "data": measured("conll", "ner_tweets"),
    },
    "questions": {
        "task": {"type": "question_answering", "max_length": 128, "doc_stride": 32},
        "model": {"name_or_path": TINY},
        "data": measured("squad", "squad"),
    },
    "novels": {
        "task": {"type": "causal_lm", "rows": "blocks", "max_length": 64},
        "model": {"name_or_path": str(DEMO / "austen-gpt2")},
        "data": {"source": "demo", "name": "austen"},
    },
    "verses": {
        "task": {"type": "seq2seq_lm", "max_length": 48, "max_target_length": 48, "max_new_tokens": 24},
        "model": {"name_or_path": str(DEMO / "eng-spa-marian")},
        "data": {"source": "demo", "name": "eng-spa"},
    },
}
"""The demo models on the data that they and the results were made with."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CASES)
def test_fifty_steps_of_both_engines_give_one_curve_and_the_same_answers(name: str, tmp_path: Path):
    jax, torch = (trained(name, engine, tmp_path / engine, dropout=0.0) for engine in ENGINES)
    ours, theirs = losses(jax), losses(torch)
    assert len(ours) == len(theirs) == STEPS
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)
    for metric, value in last_metrics(torch).items():
        assert last_metrics(jax)[metric] == pytest.approx(value, rel=2e-3, abs=2e-3), metric
    words = list(zip_longest(predicted_words(jax), predicted_words(torch)))
    assert sum(one != other for one, other in words) <= 0.01 * len(words)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_with_dropout_both_engines_come_to_the_same_metric(tmp_path: Path):
    runs = [trained("sentiment", one, tmp_path / one, dropout=0.1, steps=300, rows=None) for one in ENGINES]
    accuracy = [last_metrics(run)["accuracy"] for run in runs]
    assert min(accuracy) > 0.8
    assert max(accuracy) - min(accuracy) < 0.06


def trained(
    name: str, engine: str, path: Path, *, dropout: float, steps: int = STEPS, rows: int | None = 160
) -> RunFolder:
    spec = {
        "version": 1,
        "name": name,
        **CASES[name],
        "training": {"max_steps": steps, "batch_size": 8, "learning_rate": 2e-4, "warmup": 5},
        "evaluation": {"every": steps},
        "hardware": {"engine": engine, "device": "cpu", "precision": "float32"},
    }
    spec["model"] = {**CASES[name]["model"], "dropout": dropout}
    spec["data"] = {**CASES[name]["data"], "max_rows": rows}
    path.mkdir()
    folder = RunFolder(path)
    folder.spec.write_text(spec_file.dump(resolve(spec, ROOT).model_dump(mode="json")), encoding="utf-8")
    assert run(folder) == 0, folder.events.read_text(encoding="utf-8")[-2000:]
    return folder


def losses(folder: RunFolder) -> list[float | None]:
    return [event.loss for event in read_events(folder.events) if isinstance(event, StepFinished)]


def last_metrics(folder: RunFolder) -> dict[str, float]:
    found = [event for event in read_events(folder.events) if isinstance(event, EvaluationFinished)]
    return {name: value for name, value in found[-1].metrics.items() if value is not None}


def predicted_words(folder: RunFolder) -> list[str]:
    """What stands in the column `prediction`, row by row."""
    with folder.predictions().open(encoding="utf-8", newline="") as file:
        return [word for row in csv.DictReader(file) for word in (row["prediction"].split() or [""])]
