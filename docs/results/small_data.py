"""The small data sets on which defaults are measured, made from the texts that are here: rows to train on, and others.

Every function takes how many rows to train on and how many to measure on.
"""

import csv
import json
import random
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from docs.results import batch_order

Row = dict[str, Any]
Splits = tuple[list[Row], list[Row]]
"""Rows to train on, and others to measure on."""
HERE = Path(__file__).parent
DEMO = HERE.parents[1] / "resources" / "demo"
NOVELS = ("emma", "mansfieldpark", "northangerabbey", "persuasion", "prideprejudice", "sensesensibility")


def sentiment(train: int, test: int = 300, label: str = "label") -> Splits:
    """The first sentences of reviews; `label` is praise or complaint, `source` the site."""
    return _first(
        ([{"text": row["text"], "label": row[label]} for row in _csv(DEMO / "sentiment" / f"{split}.csv")] for split in ("train", "validation")),
        train, test,
    )  # fmt: skip


def boolq(train: int, test: int = 500) -> Splits:
    """Yes/no questions, each with a passage."""
    tables = (_csv(HERE / "data" / "boolq" / f"{split}.tsv", "\t") for split in ("train", "validation"))
    return _first(
        ([{"text": row["question"], "text_pair": row["passage"], "label": row["label"]} for row in table] for table in tables),
        train, test,
    )  # fmt: skip


def tweets(train: int, test: int = 400) -> Splits:
    """Words with the tags of persons, places, products and others."""

    def sentences(split: str) -> list[Row]:
        text = (HERE / "data" / "ner_tweets" / f"{split}.conll").read_text(encoding="utf-8")
        blocks = ([line.split("\t") for line in block.splitlines()] for block in text.split("\n\n") if block.strip())
        return [{"tokens": [word for word, _ in block], "tags": [tag for _, tag in block]} for block in blocks]

    return _first(map(sentences, ("train", "validation")), train, test)


def squad(train: int, test: int = 200, longest: int = 100) -> Splits:
    """Questions about paragraphs of Wikipedia with at most `longest` words."""
    return _first(([row for row in _questions(split) if len(row["context"].split()) <= longest] for split in ("train", "validation")), train, test)  # fmt: skip


def passages(train: int, test: int = 300) -> Splits:
    """SQuAD questions beside their paragraph or another one: which is it?"""
    return _first(map(_matched, map(_questions, ("train", "validation"))), train, test)


def _matched(questions: list[Row]) -> list[Row]:
    rng = random.Random(7)
    rows = []
    for row in questions:
        is_own = rng.random() < 0.5
        other = rng.choice([one["context"] for one in questions if one["context"] != row["context"]])
        rows.append({
            "text": row["question"], "text_pair": row["context"] if is_own else other,
            "label": "own" if is_own else "another",
        })  # fmt: skip
    return rows


def choices(train: int, test: int = 200) -> Splits:
    """SQuAD questions with four answers, of which one is its own."""

    def of(split: str) -> list[Row]:
        rng, rows = random.Random(7), []
        questions = _questions(split)
        for row in questions:
            place, right = rng.randrange(4), row["answers"]["text"][0]
            wrong = rng.sample(
                sorted({one["answers"]["text"][0] for one in questions} - set(row["answers"]["text"])), 3
            )
            rows.append({"text": row["question"], "choices": [*wrong[:place], right, *wrong[place:]], "label": place})
        return rows

    return _first(map(of, ("train", "validation")), train, test)


def novels(train: int, test: int = 300) -> Splits:
    """Paragraphs of 20 to 60 words from six novels of one author: which novel? The last fifth of each is for measuring."""
    rows: tuple[list[Row], list[Row]] = ([], [])
    for novel in NOVELS:
        paragraphs = [" ".join(one.split()) for one in _text(novel).split("\n\n")]
        paragraphs = [one for one in paragraphs if 20 <= len(one.split()) <= 60]
        for number, paragraph in enumerate(paragraphs):
            rows[number >= 0.8 * len(paragraphs)].append({"text": paragraph, "label": novel})
    return _first(map(_shuffled, rows), train, test)


def languages(train: int, test: int = 300) -> Splits:
    """Halves of Bible verses in English or Spanish: which language?"""

    def of(split: str) -> list[Row]:
        pairs = zip(_verses(f"{split}.src"), _verses(f"{split}.trg"), strict=True)
        return [{"text": one, "label": name} for pair in pairs for one, name in zip(pair, ("English", "Spanish"), strict=True)]  # fmt: skip

    return _first(map(_shuffled, map(of, ("train", "test"))), train, test)


def similarity(train: int, test: int = 300) -> Splits:
    """Pairs of sentences, one made from the other, with the share of words that they have in common."""
    with tempfile.TemporaryDirectory() as folder:
        batch_order.write_pairs(Path(folder))
        tables = [_csv(Path(folder) / f"pairs-{split}.csv") for split in ("train", "validation")]
    return _first(
        ([{"text": row["first"], "text_pair": row["second"], "label": float(row["score"])} for row in table] for table in tables),
        train, test,
    )  # fmt: skip


def verses(train: int, test: int = 100) -> Splits:
    """Running text of the English Bible: Genesis to learn from, Mark to be measured on."""
    return _first(([{"text": line} for line in _verses(f"{split}.src")] for split in ("train", "test")), train, test)


def novel(train: int, test: int = 300) -> Splits:
    """Lines of *Persuasion*: the beginning to learn from, the end to be measured on."""
    lines: list[Row] = [{"text": line} for line in _text("persuasion").splitlines()]
    return lines[:train], lines[-test:]


def back_translation(train: int, test: int = 100) -> Splits:
    """Bible verses, Spanish to English."""

    def of(split: str) -> list[Row]:
        pairs = zip(_verses(f"{split}.trg"), _verses(f"{split}.src"), strict=True)
        return [{"source": source, "target": target} for source, target in pairs]

    return _first(map(of, ("train", "test")), train, test)


def instructions(train: int, test: int = 40) -> Splits:
    """The same verses the other way, as instructions."""
    return tuple(
        [{"prompt": f"Translate into Spanish: {row['target']}", "response": row["source"]} for row in rows]
        for rows in back_translation(train, test)
    )  # type: ignore[return-value]


def _first(splits: Iterable[list[Row]], train: int, test: int) -> Splits:
    """The first rows of each, without those to measure on that are trained on as well: the sources repeat some."""
    one, other = splits
    seen = {_input(row) for row in one[:train]}
    return one[:train], [row for row in other if _input(row) not in seen][:test]


def _input(row: Row) -> str:
    return str([value for name, value in row.items() if name not in ("label", "tags", "answers", "target", "response")])


def _shuffled(rows: list[Row]) -> list[Row]:
    return random.Random(7).sample(rows, len(rows))


def _csv(path: Path, delimiter: str = ",") -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
        return list(csv.DictReader(file, delimiter=delimiter, quoting=quoting))


def _text(name: str) -> str:
    return (DEMO / "austen" / f"{name}.txt").read_text(encoding="utf-8")


def _verses(name: str) -> list[str]:
    return (DEMO / "eng-spa" / name).read_text(encoding="utf-8").splitlines()


def _questions(split: str) -> list[Row]:
    articles = json.loads((HERE / "data" / "squad" / f"{split}.json").read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    return [
        {
            "question": one["question"],
            "context": paragraph["context"],
            "answers": {key: [answer[key] for answer in one["answers"]] for key in ("text", "answer_start")},
        }
        for paragraph in paragraphs
        for one in paragraph["qas"]
    ]
