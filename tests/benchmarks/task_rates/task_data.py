"""Prepares what the rates are measured on: a model folder, data files and a spec for each task."""

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
DEMO, RESULTS, RECIPES = ROOT / "resources" / "demo", ROOT / "docs" / "results" / "data", ROOT / "resources" / "recipes"
BATCH, SEED = 16, 42


@dataclass(frozen=True)
class Material:
    """One task in a folder: `spec` is Burnish's, `train` and `test` are what both sides read."""

    spec: dict[str, Any]
    train: Path
    test: Path


def made(task: str, folder: Path) -> Material:
    """The material of a task, in a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return _TASKS[task](folder)


def tasks() -> list[str]:
    """All tasks that are measured."""
    return list(_TASKS)


def _spec(task: dict[str, Any], model: Path, data: dict[str, Any], learning_rate: float) -> dict[str, Any]:
    return {
        "task": task,
        "model": {"name_or_path": str(model)},
        "data": {key: str(value) if isinstance(value, Path) else value for key, value in data.items()},
        "training": {
            "epochs": 1, "batch_size": BATCH, "learning_rate": learning_rate, "seed": SEED, "checkpoint_every": "never",
            "weight_decay": 0.0,
        },
        "evaluation": {"every": "never"},
        "hardware": {"device": "cpu", "precision": "float32", "micro_batch_size": BATCH},
    }  # fmt: skip


def _sentiment_rows(split: str) -> list[dict[str, str]]:
    with (DEMO / "sentiment" / f"{split}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _classification(folder: Path) -> Material:
    train, test = (DEMO / "sentiment" / f"{split}.csv" for split in ("train", "validation"))
    data = {"train": train, "validation": test, "columns": {"text": "text", "label": "label"}}
    task = {"type": "text_classification", "max_length": 128}
    return Material(_spec(task, DEMO / "bert-tiny", data, 3e-4), train, test)


def _regression(folder: Path) -> Material:
    paths = []
    for split in ("train", "validation"):
        rows = [{"text": row["text"], "score": float(row["label"] == "positive")} for row in _sentiment_rows(split)]
        paths.append(_jsonl(folder / f"{split}.jsonl", rows))
    data = {"train": paths[0], "validation": paths[1], "columns": {"text": "text", "label": "score"}}
    task = {"type": "text_regression", "max_length": 128}
    return Material(_spec(task, DEMO / "bert-tiny", data, 3e-4), *paths)


def _sized(folder: Path, layers: int, hidden_size: int, heads: int, rows: int) -> Material:
    """The same for a BERT of this size with random weights."""
    from transformers import AutoTokenizer, BertConfig, BertModel

    material = _regression(folder)
    config = BertConfig(
        num_hidden_layers=layers, hidden_size=hidden_size, num_attention_heads=heads, intermediate_size=4 * hidden_size
    )
    BertModel(config).save_pretrained(folder / "model")
    AutoTokenizer.from_pretrained(DEMO / "bert-tiny").save_pretrained(folder / "model")
    train = _first_lines(material.train, folder / "some.jsonl", rows)
    data = {"train": train, "validation": material.test, "columns": material.spec["data"]["columns"]}
    return Material(_spec(material.spec["task"], folder / "model", data, 2e-5), train, material.test)


def _tokens(folder: Path) -> Material:
    train, test = (RESULTS / "ner_tweets" / f"{split}.conll" for split in ("train", "validation"))
    data = {"source": "conll", "train": train, "validation": test}
    return Material(
        _spec({"type": "token_classification", "max_length": 128}, DEMO / "bert-tiny", data, 5e-4), train, test
    )


def _questions(folder: Path) -> Material:
    train, test = (RESULTS / "squad" / f"{split}.json" for split in ("train", "validation"))
    data = {"source": "squad", "train": train, "validation": test}
    return Material(_spec({"type": "question_answering"}, DEMO / "bert-tiny", data, 3e-4), train, test)


def _masked(folder: Path) -> Material:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    AutoModelForMaskedLM.from_pretrained(DEMO / "bert-tiny").float().save_pretrained(folder / "model")
    AutoTokenizer.from_pretrained(DEMO / "bert-tiny").save_pretrained(folder / "model")
    train, test = (
        DEMO / "austen" / "northangerabbey.txt",
        _first_lines(DEMO / "austen" / "persuasion.txt", folder / "test.txt", 2000),
    )
    data = {"train": train, "validation": test}
    task = {"type": "masked_lm", "rows": "blocks", "max_length": 128}
    return Material(_spec(task, folder / "model", data, 3e-4), train, test)


def _choices(folder: Path) -> Material:
    paths = []
    for split in ("train", "validation"):
        texts = [row["text"] for row in _sentiment_rows(split)]
        rows = [
            {
                "context": text,
                **{f"ending{k}": texts[(number * 7 + k * 31 + 1) % len(texts)] for k in range(4)},
                "label": number % 4,
            }
            for number, text in enumerate(texts[:1200])
        ]
        paths.append(_jsonl(folder / f"{split}.jsonl", rows))
    columns = {"text": "context", "label": "label", **{f"choice_{k}": f"ending{k}" for k in range(4)}}
    data = {"train": paths[0], "validation": paths[1], "columns": columns}
    return Material(_spec({"type": "multiple_choice", "max_length": 128}, DEMO / "bert-tiny", data, 3e-4), *paths)


def _language(folder: Path) -> Material:
    from transformers import AutoConfig, AutoModelForCausalLM

    model = folder / "model"
    shutil.copytree(RECIPES / "austen", model)
    AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model)).save_pretrained(model)
    train, test = (
        DEMO / "austen" / "northangerabbey.txt",
        _first_lines(DEMO / "austen" / "persuasion.txt", folder / "test.txt", 2000),
    )
    data = {"train": train, "validation": test}
    return Material(_spec({"type": "causal_lm", "rows": "blocks", "max_length": 256}, model, data, 3e-4), train, test)


def _pairs(folder: Path) -> Material:
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    model = folder / "model"
    shutil.copytree(RECIPES / "eng-spa", model)
    AutoModelForSeq2SeqLM.from_config(AutoConfig.from_pretrained(model)).save_pretrained(model)
    paths = []
    for split, count in (("train", 3000), ("test", 200)):
        texts = [
            (DEMO / "eng-spa" / f"{split}.{side}").read_text(encoding="utf-8").splitlines() for side in ("src", "trg")
        ]
        rows = [{"source": one, "target": other} for one, other in list(zip(*texts, strict=True))[:count]]
        paths.append(_jsonl(folder / f"{split}.jsonl", rows))
    task = {"type": "seq2seq_lm", "max_length": 64, "max_target_length": 64, "max_new_tokens": 32}
    return Material(_spec(task, model, {"train": paths[0], "validation": paths[1]}, 3e-4), *paths)


def _jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def _first_lines(source: Path, target: Path, count: int) -> Path:
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    target.write_text("".join(lines[:count]), encoding="utf-8")
    return target


_TASKS: dict[str, Callable[[Path], Material]] = {
    "text_classification": _classification,
    "text_regression": _regression,
    "token_classification": _tokens,
    "question_answering": _questions,
    "multiple_choice": _choices,
    "masked_lm": _masked,
    "causal_lm": _language,
    "seq2seq_lm": _pairs,
    "text_regression-22m": lambda folder: _sized(folder, 6, 384, 12, 640),
    "text_regression-110m": lambda folder: _sized(folder, 12, 768, 12, 160),
}
