"""Writes small run folders with a predictions file for every task, as the window finds them."""

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from backend.contract import spec_file
from backend.contract.run import events

CONTEXT = (
    "The Norman dynasty had a major political, cultural and military impact on medieval Europe. The Normans were famed "
    "for their martial spirit and eventually for their Christian piety, becoming exponents of the Catholic orthodoxy. "
)
CLASSIFIED = [
    {"text": "Whatever the cast does, the plot drags and never recovers.", "source": "imdb", "label": "negative", "prediction": "positive", "actual": "negative", "probability_negative": 0.31, "probability_neutral": 0.11, "probability_positive": 0.58},
    {"text": "A joy from the first minute to the last.", "source": "imdb", "label": "positive", "prediction": "positive", "actual": "positive", "probability_negative": 0.02, "probability_neutral": 0.01, "probability_positive": 0.97},
    {"text": "It is fine for the price, nothing special.", "source": "amazon", "label": "neutral", "prediction": "neutral", "actual": "neutral", "probability_negative": 0.2, "probability_neutral": 0.7, "probability_positive": 0.1},
]  # fmt: skip
SCORED = [
    {"sentence1": "A plane is taking off.", "sentence2": "An air plane is taking off.", "label": 5.0, "prediction": 4.72, "actual": 5.0},
    {"sentence1": "A man is playing a flute.", "sentence2": "A man is eating pasta.", "label": 0.5, "prediction": 2.9, "actual": 0.5},
]  # fmt: skip
TAGGED = [
    {"tokens": ["Angela", "Merkel", "visited", "New", "York", "for", "the", "United", "Nations", "."], "tags": ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O", "O", "B-ORG", "I-ORG", "O"],
     "prediction": "B-PER I-PER O B-LOC O O O B-ORG I-ORG O", "actual": "B-PER I-PER O B-LOC I-LOC O O B-ORG I-ORG O", "lost_words": 0},
    {"tokens": ["No", "entity", "here"], "tags": ["O", "O", "O"], "prediction": "O O O", "actual": "O O O", "lost_words": 1},
]  # fmt: skip


def answered(prediction: str, actual: str, context: str = CONTEXT, score: float = 0.6) -> dict[str, Any]:
    """A row of question answering."""
    start = context.find(prediction) if prediction else -1
    n_best = [
        {"text": prediction, "probability": score, "start_logit": 4.1, "end_logit": 3.9},
        {"text": actual, "probability": (1 - score) / 2, "start_logit": 3.0, "end_logit": 2.9},
        {"text": "", "probability": (1 - score) / 4, "start_logit": 1.0, "end_logit": 0.4},
    ]
    return {
        "id": "56ddde6b", "question": "What were the Normans famed for?", "context": context,
        "answers": {"text": [actual] if actual else [], "answer_start": [context.find(actual)] if actual else []},
        "prediction": prediction, "actual": actual, "score": score, "start": start if start >= 0 else None,
        "end": start + len(prediction) if start >= 0 else None, "null_score": -3.2, "n_best": json.dumps(n_best),
    }  # fmt: skip


ANSWERED = [
    answered("martial spirit", "their martial spirit"),
    answered("Christian piety", "Christian piety", score=0.9),
    answered("", "Catholic orthodoxy", score=0.2),
]
WRITTEN = [
    {"src": "The cat sat on the mat.", "trg": "El gato se sentó en la alfombra.", "prediction": "El gato se sienta en la estera.", "actual": "El gato se sentó en la alfombra.", "source_text": ">>spa<< The cat sat on the mat."},
    {"src": "Good morning.", "trg": "Buenos días.", "prediction": "Buenos días.", "actual": "Buenos días.", "source_text": ">>spa<< Good morning."},
]  # fmt: skip
CONTINUED = [
    {"text": "It is a truth universally acknowledged, that a single man in possession of a good fortune", "prediction": "is was not matter universally acknowledged that that the man of possession of a good deal", "actual": "It is a truth universally acknowledged, that a single man in possession of a good fortune", "loss": 3.21, "tokens": 17, "perplexity": 24.8},
    {"text": "Elizabeth smiled.", "prediction": "Bennet was.", "actual": "Elizabeth smiled.", "loss": 5.02, "tokens": 4, "perplexity": 151.4},
]  # fmt: skip
FILLS = [
    [
        {"token": word, "probability": p}
        for word, p in (("capital", 0.71), ("heart", 0.12), ("centre", 0.05), ("city", 0.03), ("seat", 0.02))
    ]
]
FILLED = [
    {"text": "Paris is the [MASK] of France.", "prediction": "paris is the capital of france.", "actual": "Paris is the [MASK] of France.", "loss": None, "tokens": 0, "perplexity": None, "fills": json.dumps(FILLS)},
    {"text": "The film was good.", "prediction": "the film was great.", "actual": "The film was good.", "loss": 1.4, "tokens": 2, "perplexity": 4.06, "fills": None},
]  # fmt: skip
CHOSEN = [
    {"sent1": "She pours the batter into the pan.", "sent2": "She", "ending0": "waits until bubbles rise, then turns the pancake over.", "ending1": "throws the pan out of the window.", "ending2": "paints it blue.", "ending3": "reads the newspaper aloud to the batter and goes home again.", "label": 0, "prediction": "1", "actual": "0", "probability_0": 0.33, "probability_1": 0.52, "probability_2": 0.05, "probability_3": 0.10},
    {"sent1": "He ties his shoes.", "sent2": "He", "ending0": "runs.", "ending1": "sleeps.", "ending2": "eats.", "ending3": "sings.", "label": 0, "prediction": "0", "actual": "0", "probability_0": 0.8, "probability_1": 0.1, "probability_2": 0.05, "probability_3": 0.05},
]  # fmt: skip

EXAMPLES: dict[str, tuple[dict[str, str], list[dict[str, Any]]]] = {
    "text_classification": ({"text": "text", "label": "label"}, CLASSIFIED),
    "text_regression": ({"text": "sentence1", "text_pair": "sentence2", "label": "label"}, SCORED),
    "token_classification": ({"tokens": "tokens", "tags": "tags"}, TAGGED),
    "question_answering": ({"question": "question", "context": "context", "answers": "answers"}, ANSWERED),
    "seq2seq_lm": ({"source": "src", "target": "trg"}, WRITTEN),
    "causal_lm": ({"text": "text"}, CONTINUED),
    "masked_lm": ({"text": "text"}, FILLED),
    "multiple_choice": (
        {"text": "sent1", "text_pair": "sent2", **{f"choice_{n}": f"ending{n}" for n in range(4)}, "label": "label"},
        CHOSEN,
    ),
}
"""Task → which column plays which part, and rows as a run of that task writes them."""


def write_run(runs: Path, task: str, rows: list[dict[str, Any]] | None = None, name: str = "") -> Path:
    """A finished run of a task with these predictions, or with the example's."""
    columns, example = EXAMPLES[task]
    folder = runs / (name or f"2026-11-21-1530-{task.replace('_', '-')}")
    folder.mkdir(parents=True)
    spec = {
        "version": 1,
        "name": task,
        "task": {"type": task},
        "model": {"name_or_path": "x"},
        "data": {"columns": columns},
    }
    (folder / "spec.yaml").write_text(spec_file.dump(spec), encoding="utf-8")
    now = time.time()
    told = [
        events.RunStarted(time=now, name=task, task=task, model="x", attempt=1, contract_version="1", engine="torch", device="cpu", precision="float32", versions={}),
        events.PredictionsWritten(time=now, split="validation", csv="predictions.csv", parquet="predictions.parquet", rows=len(rows or example), seconds=1.0),
        events.RunFinished(time=now, state="finished", step=1),
    ]  # fmt: skip
    (folder / "events.jsonl").write_bytes(b"".join(map(events.encode, told)))
    parquet.write_table(pa.Table.from_pylist(rows or example), folder / "predictions.parquet", row_group_size=5000)
    return folder
