"""Lists what is trained for the results: a spec, the models with their own numbers, and the trivial rule."""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from docs.results.baselines import commonest_label, constant_span, majority_tagger

HERE = Path(__file__).parent
TINY, MINILM = "bert-tiny", "all-MiniLM-L6-v2"


@dataclass(frozen=True)
class Experiment:
    """One row group of the table; `changes` are the `--set` of each model beside the spec."""

    title: str
    spec: str
    metric: str
    baseline: str
    score_of_baseline: Callable[[], float]
    changes: dict[str, tuple[str, ...]] = field(default_factory=dict)


def _table(path: Path, delimiter: str) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
        return list(csv.DictReader(file, delimiter=delimiter, quoting=quoting))


def _labels(folder: Path, extension: str, delimiter: str) -> float:
    train, test = (_table(folder / f"{split}.{extension}", delimiter) for split in ("train", "validation"))
    return commonest_label([row["label"] for row in train], [row["label"] for row in test])


def _sentiment() -> float:
    return _labels(HERE.parents[1] / "resources" / "demo" / "sentiment", "csv", ",")


def _boolq() -> float:
    return _labels(HERE / "data" / "boolq", "tsv", "\t")


def _tweets() -> float:
    from seqeval.metrics import f1_score  # heavy

    def sentences(split: str) -> list[list[list[str]]]:
        text = (HERE / "data" / "ner_tweets" / f"{split}.conll").read_text(encoding="utf-8")
        return [[line.split("\t") for line in block.splitlines()] for block in text.split("\n\n") if block.strip()]

    train, test = sentences("train"), sentences("validation")
    tag = majority_tagger([[word for word, _ in one] for one in train], [[its for _, its in one] for one in train])
    return float(f1_score([[its for _, its in one] for one in test], [tag([word for word, _ in one]) for one in test]))


def _squad() -> float:
    from backend.metrics.answers import f1  # the score of the task itself

    def rows(split: str) -> list[tuple[str, list[str]]]:
        articles = json.loads((HERE / "data" / "squad" / f"{split}.json").read_text(encoding="utf-8"))["data"]
        paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
        return [
            (paragraph["context"], [answer["text"] for answer in question["answers"]])
            for paragraph in paragraphs
            for question in paragraph["qas"]
        ]

    return constant_span(rows("train"), rows("validation"), f1)


EXPERIMENTS = (
    Experiment("Sentiment", "sentiment", "accuracy", "commonest label", _sentiment, {
        MINILM: ("training.learning_rate=5e-5", "training.epochs=4", "hardware.precision=bfloat16"),
    }),
    Experiment("BoolQ", "boolq", "accuracy", "commonest label", _boolq, {
        MINILM: ("training.learning_rate=5e-5", "training.epochs=3", "hardware.precision=bfloat16"),
    }),
    Experiment("Names in tweets", "ner", "f1", "every word's commonest tag", _tweets, {
        MINILM: ("training.learning_rate=1e-4", "training.epochs=6", "hardware.precision=bfloat16"),
    }),
    Experiment("SQuAD", "squad", "f1", "best constant span", _squad, {
        MINILM: ("training.learning_rate=1e-4", "training.epochs=4", "hardware.precision=bfloat16"),
    }),
)  # fmt: skip
