"""The small runs of a recording: every task on both engines, and the settings that change how a step is computed."""

import csv
import json
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DEMO, DATA = ROOT / "resources" / "demo", ROOT / "tests" / "data"
STEPS = 6

Values = dict[str, Any]

COLOURS = {"cat": "red", "dog": "blue", "fox": "green", "owl": "gold"}


@dataclass(frozen=True)
class Case:
    """One run: what its spec says beyond the few settings that all share."""

    name: str
    engine: str
    sections: Values = field(default_factory=dict)
    is_paused: bool = False
    """Paused on its way and resumed: at which step depends on the machine, the curve does not."""

    @property
    def title(self) -> str:
        return f"{self.name}-{self.engine}"

    def spec(self) -> Values:
        """The spec; JSON of it is a valid spec file."""
        shared: Values = {
            "version": 1,
            "name": self.title,
            "model": {"name_or_path": str(DEMO / "bert-tiny")},
            "training": {"max_steps": STEPS, "epochs": 100, "batch_size": 4, "learning_rate": 3e-4, "warmup": 0.0, "checkpoint_every": 3},
            "evaluation": {"every": 3},
            "hardware": {"engine": self.engine, "device": "cpu", "precision": "float32"},
        }  # fmt: skip
        if self.engine == "torch":
            shared["hardware"]["threads"] = 1
        for name, changes in self.sections.items():
            shared[name] = {**(shared.get(name) or {}), **changes}
        return shared


def write_data(home: Path) -> None:
    """The files that the specs name, into the folder they stand in."""
    for name in ("ner/train.conll", "ner/validation.conll", "squad/train.json", "squad/validation.json"):
        target = home / name.replace("/", "-")
        shutil.copyfile(DATA / name, target)
    with (DEMO / "sentiment" / "train.csv").open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row, _ in zip(csv.DictReader(file), range(36), strict=False)]
    _write(home, "lengths", ["text", "score"], [[text, round(len(text) / 25, 2)] for text in texts])
    seen = random.Random(0).choices(list(COLOURS), k=36)
    colours = list(COLOURS.values())
    _write(
        home, "choices", ["sent1", "sent2", *(f"ending{n}" for n in range(4)), "label"],
        [[f"there is the {one}", "it is", *colours, colours.index(COLOURS[one])] for one in seen],
    )  # fmt: skip
    _write(
        home, "instructions", ["prompt", "response"],
        [[f"Which colour has the {one}?", f"The {one} is {COLOURS[one]}."] for one in seen],
    )  # fmt: skip
    _write_xlnet(home / "xlnet")


def _write_xlnet(folder: Path) -> None:
    """A configuration with the head of beams, and bert-tiny's tokenizer: its weights are drawn anew."""
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copyfile(DEMO / "bert-tiny" / name, folder / name)
    values = {"model_type": "xlnet", "vocab_size": 30522, "d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64, "start_n_top": 3, "end_n_top": 3}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(values), encoding="utf-8")


def _write(home: Path, name: str, header: list[str], rows: list[list[Any]]) -> None:
    for split, part in (("train", rows[:24]), ("validation", rows[24:])):
        with (home / f"{name}-{split}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *part])


def _files(name: str, suffix: str = "csv", **more: Any) -> Values:
    return {"train": f"{name}-train.{suffix}", "validation": f"{name}-validation.{suffix}", **more}


TEXT: Values = {
    "task": {"type": "text_classification", "max_length": 16},
    "data": {"source": "demo", "name": "sentiment", "max_rows": 24},
}
QUESTIONS: Values = {
    "task": {"type": "question_answering", "max_length": 64, "doc_stride": 16, "max_answer_length": 8},
    "data": {"source": "squad", "train": "squad-train.json", "validation": "squad-validation.json", "max_rows": 6},
}
VERSES: Values = {
    "task": {"type": "seq2seq_lm", "max_length": 16, "max_target_length": 16, "max_new_tokens": 6},
    "model": {"name_or_path": str(DEMO / "eng-spa-marian")},
    "data": {"source": "demo", "name": "eng-spa", "max_rows": 16},
}
NOVELS: Values = {
    "task": {"type": "causal_lm", "rows": "blocks", "max_length": 16},
    "model": {"name_or_path": str(DEMO / "austen-gpt2")},
    "data": {"source": "demo", "name": "austen", "max_rows": 24},
}

TASKS: dict[str, Values] = {
    "text_classification": TEXT,
    "text_regression": {"task": {"type": "text_regression", "max_length": 16}, "data": _files("lengths", columns={"label": "score"})},
    "token_classification": {"task": {"type": "token_classification", "max_length": 32}, "data": {"source": "conll", **_files("ner", "conll"), "max_rows": 24}},
    "question_answering": QUESTIONS,
    "seq2seq_lm": VERSES,
    "causal_lm": NOVELS,
    "masked_lm": {"task": {"type": "masked_lm", "rows": "blocks", "max_length": 16}, "data": NOVELS["data"]},
    "multiple_choice": {"task": {"type": "multiple_choice", "max_length": 16, "first_choice": "0"}, "data": _files("choices")},
}  # fmt: skip

VARIANTS: dict[str, Values] = {
    "lora": {**TEXT, "adapter": {"type": "lora", "rank": 4, "dropout": 0.1, "saved": "adapter"}},
    "accumulation": {**TEXT, "training": {"batch_size": 8}, "hardware": {"micro_batch_size": 3}},
    "layer_decay": {**TEXT, "training": {"layer_decay": 0.8, "schedule": "cosine", "warmup": 2, "max_gradient_norm": 0.5}},
    "weighted": {
        "task": {**TEXT["task"], "class_weights": "balanced"},
        "data": TEXT["data"],
        "training": {"label_smoothing": 0.1, "early_stopping": 2},
        "evaluation": {"best_metric": "f1_macro", "at_start": True, "train_rows": 4},
    },
    "buckets": {**QUESTIONS, "training": {"length_buckets": True, "optimizer": "lion", "learning_rate": 3e-5}},
    "beam_head": {
        **QUESTIONS,
        "task": {**QUESTIONS["task"], "head": "beam"},
        "model": {"name_or_path": "xlnet", "initialise": "from_config"},
    },
    "packing": {
        "task": {"type": "causal_lm", "rows": "instructions", "max_length": 48, "packing": True, "generate": True, "max_new_tokens": 4},
        "model": NOVELS["model"],
        "data": _files("instructions"),
    },
    "beam_search": {**VERSES, "task": {**VERSES["task"], "num_beams": 2}, "training": {"label_smoothing": 0.1, "optimizer": "adafactor"}},
}  # fmt: skip
WITH_JAX = {"lora", "layer_decay", "weighted", "packing"}
"""Variants that are worth the minute in which JAX compiles them; the others are one code for both engines."""
PAUSED: Values = {**TEXT, "training": {"max_steps": 40, "batch_size": 8, "checkpoint_every": 7}, "hardware": {"micro_batch_size": 2}}  # fmt: skip


def all_cases() -> list[Case]:
    """The longest first: JAX compiles every program anew."""
    kinds = {**TASKS, **VARIANTS}
    return [
        *(Case("paused", engine, PAUSED, is_paused=True) for engine in ("jax", "torch")),
        *(Case(name, "jax", kinds[name]) for name in kinds if name in WITH_JAX or name in TASKS),
        *(Case(name, "torch", kinds[name]) for name in kinds),
    ]


def write_spec(case: Case, home: Path) -> Path:
    """The spec file of a case beside its data."""
    path = home / f"{case.title}.yaml"
    path.write_text(json.dumps(case.spec(), indent=1), encoding="utf-8")
    return path
