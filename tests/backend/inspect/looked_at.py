"""Writes small data for every task, as specs whose rows differ much in length."""

import csv
import json
import random
from pathlib import Path
from typing import Any

from backend.contract.resources import resource
from backend.contract.spec import RunSpec
from backend.inspect.batch_preview import BatchPreview, preview
from backend.preflight.datasets import ignore_progress
from backend.preflight.resolve import resolve

BERT, GPT2, MARIAN = (str(resource("demo", name)) for name in ("bert-tiny", "austen-gpt2", "eng-spa-marian"))
WORDS = [
    "the",
    "chapel",
    "lies",
    "north",
    "of",
    "town",
    "where",
    "people",
    "walk",
    "slowly",
    "every",
    "evening",
    "after",
    "unbelievably",
    "long",
    "days",
]
DATA = Path(__file__).parents[2] / "data"


def text(seed: int, most: int = 30) -> str:
    """A few words, as many as chance has it."""
    chance = random.Random(seed)
    return " ".join(chance.choices(WORDS, k=chance.randint(1, most)))


def table(folder: Path, columns: dict[str, list[Any]]) -> str:
    """`train.csv` with these columns."""
    path = folder / "train.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return str(path)


def _usual(folder: Path, columns: dict[str, list[Any]]) -> str:
    """The same, unless a test has written its own."""
    path = folder / "train.csv"
    return str(path) if path.exists() else table(folder, columns)


def spec(folder: Path, kind: str, training: dict[str, Any] | None = None, **task: Any) -> RunSpec:
    """A spec by the name of what is special about it."""
    section, model, data = _PARTS[kind](folder)
    values = {
        "name": kind,
        "task": {**section, **task},
        "model": {"name_or_path": model},
        "data": {"source": "files", **data},
        "training": {"batch_size": 4, **(training or {})},
        "hardware": {"device": "cpu"},
    }
    return resolve(values, DATA)


def looked(folder: Path, kind: str, training: dict[str, Any] | None = None, **task: Any) -> BatchPreview:
    """The training data of such a spec."""
    return preview(spec(folder, kind, training, **task), lambda name: ignore_progress)


def _labels(count: int) -> list[str]:
    return ["good" if number % 3 else "bad" for number in range(count)]


def _classified(folder: Path) -> Any:
    columns = {"text": [text(n) for n in range(60)], "label": _labels(60)}
    return {"type": "text_classification"}, BERT, {"train": _usual(folder, columns)}


def _pairs(folder: Path) -> Any:
    columns = {
        "text": [text(n) for n in range(60)],
        "text_pair": [text(n + 100) for n in range(60)],
        "label": _labels(60),
    }
    return {"type": "text_classification"}, BERT, {"train": _usual(folder, columns)}


def _choices(folder: Path) -> Any:
    endings = {f"ending{k}": [text(1000 * k + n, 12) for n in range(40)] for k in range(3)}
    columns = {"sent1": [text(n, 12) for n in range(40)], **endings, "label": [n % 3 for n in range(40)]}
    return {"type": "multiple_choice"}, BERT, {"train": _usual(folder, columns)}


def _translated(folder: Path) -> Any:
    columns = {"source": [text(n) for n in range(50)], "target": [text(n + 500) for n in range(50)]}
    return {"type": "seq2seq_lm"}, MARIAN, {"train": _usual(folder, columns)}


def _examples(folder: Path) -> Any:
    section = {"type": "causal_lm", "rows": "examples"}
    return section, GPT2, {"train": _usual(folder, {"text": [text(n) for n in range(60)]})}


def _blocks(folder: Path) -> Any:
    return (
        {"type": "causal_lm", "max_length": 32},
        GPT2,
        {"train": _usual(folder, {"text": [text(n) for n in range(60)]})},
    )


def _masked(folder: Path) -> Any:
    section = {"type": "masked_lm", "rows": "examples"}
    return section, BERT, {"train": _usual(folder, {"text": [text(n) for n in range(60)]})}


def _chats(folder: Path) -> Any:
    path = folder / "chats.jsonl"
    chats = [
        [
            {"role": role, "content": text(100 * n + turn, 14)}
            for turn, role in enumerate(["user", "assistant"] * (1 + n % 2))
        ]
        for n in range(50)
    ]
    path.write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in chats), encoding="utf-8")
    return {"type": "causal_lm", "rows": "chat"}, GPT2, {"train": str(path)}


def _tagged(folder: Path) -> Any:
    return {"type": "token_classification"}, BERT, {"source": "conll", "train": str(DATA / "ner" / "train.conll")}


def _asked(folder: Path) -> Any:
    section = {"type": "question_answering", "doc_stride": 16}
    return section, BERT, {"source": "squad", "train": str(DATA / "squad" / "train.json")}


_PARTS = {
    "classified": _classified,
    "pairs": _pairs,
    "choices": _choices,
    "translated": _translated,
    "examples": _examples,
    "blocks": _blocks,
    "masked": _masked,
    "chats": _chats,
    "tagged": _tagged,
    "asked": _asked,
}
