"""Entities and their scores agree with seqeval, on proper tags and on random ones."""

import itertools
import random
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import seqeval.metrics
from seqeval import scheme as schemes
from seqeval.metrics.sequence_labeling import get_entities

from backend.metrics.entities import scores
from backend.tasks._tagging import count_invalid, detect_scheme, parse_tags

SEQEVAL: dict[str, Any] = {"BIO": schemes.IOB2, "IOB1": schemes.IOB1, "IOBES": schemes.IOBES, "BILOU": schemes.BILOU}
LETTERS = {"BIO": "BI", "IOB1": "BI", "IOBES": "BIES", "BILOU": "BILU"}


def random_tags(letters: str, sentences: int = 200, seed: int = 0) -> list[list[str]]:
    """Tags that follow no rule at all."""
    choice = random.Random(seed)
    names = ["O", *(f"{letter}-{kind}" for letter in letters for kind in ("PER", "geo-loc"))]
    return [choice.choices(names, k=choice.randint(1, 9)) for _ in range(sentences)]


def parts_of(sentences: list[list[str]]):
    flat = list(itertools.chain.from_iterable(sentences))
    names = sorted(set(flat))
    first = [place == 0 for one in sentences for place in range(len(one))]
    return names, np.array([names.index(tag) for tag in flat]), np.array(first)


def spelled(sentences: list[list[str]], scheme: Any) -> list[list[str]]:
    names, ids = parse_tags(*parts_of(sentences)).to_scheme(scheme).tags(scheme)
    flat = iter([names[one] for one in ids])
    return [list(itertools.islice(flat, len(one))) for one in sentences]


def entities(sentences: list[list[str]]) -> list[Any]:
    return [get_entities(one) for one in sentences]


@pytest.mark.parametrize("scheme", ["BIO", "IOB1", "IOBES"])
def test_random_tags_keep_the_entities_that_seqeval_sees_in_every_scheme(scheme: str):
    tags = random_tags("BIES")
    assert entities(spelled(tags, scheme)) == entities(tags)


@pytest.mark.parametrize("scheme", LETTERS)
def test_what_is_written_is_proper_and_the_same_in_every_other_scheme(scheme: str):
    proper = spelled(random_tags("BI"), scheme)
    strict = schemes.Entities(proper, SEQEVAL[scheme]).entities
    expected = [[(kind, start, end + 1) for kind, start, end in get_entities(one)] for one in spelled(proper, "IOBES")]
    assert [[(one.tag, one.start, one.end) for one in sentence] for sentence in strict] == expected
    for other in LETTERS:
        assert spelled(spelled(proper, other), scheme) == proper


@pytest.mark.parametrize("scheme", LETTERS)
def test_proper_tags_offend_nothing_and_their_scheme_is_seen(scheme: str):
    tags = spelled(random_tags("BI"), scheme)
    assert count_invalid(parse_tags(*parts_of(tags)), scheme) == 0  # type: ignore[arg-type]
    assert detect_scheme(*parts_of(tags)) == scheme


def scored(actual: list[list[str]], predicted: list[list[str]], scheme: str, strict: bool) -> dict[str, float]:
    columns = {
        "actual": [" ".join(one) for one in actual],
        "prediction": [" ".join(one) for one in predicted],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return scores(pa.table(columns), scheme, strict)


@pytest.mark.parametrize(
    ("scheme", "strict"),
    [*((scheme, True) for scheme in LETTERS), ("BIO", False), ("IOB1", False), ("IOBES", False)],
)
def test_scores_are_those_of_seqeval(scheme: str, strict: bool):
    actual = spelled(random_tags("BI"), scheme)
    choice = random.Random(1)
    random_ones = random_tags(LETTERS[scheme], seed=2)
    predicted = [
        [tag if choice.random() < 0.7 else choice.choice(other) for tag in one]
        for one, other in zip(actual, random_ones, strict=True)
    ]
    options: dict[str, Any] = {"mode": "strict", "scheme": SEQEVAL[scheme]} if strict else {}
    report = seqeval.metrics.classification_report(actual, predicted, output_dict=True, zero_division=0, **options)
    found = scored(actual, predicted, scheme, strict)
    assert found["accuracy"] == seqeval.metrics.accuracy_score(actual, predicted)
    assert found["f1"] == seqeval.metrics.f1_score(actual, predicted, **options)
    assert found["precision"] == seqeval.metrics.precision_score(actual, predicted, **options)
    assert found["recall"] == seqeval.metrics.recall_score(actual, predicted, **options)
    assert (found["f1_PER"], found["f1_geo-loc"]) == (report["PER"]["f1-score"], report["geo-loc"]["f1-score"])


def test_bilou_is_scored_as_the_same_entities_in_iobes():
    actual = spelled(random_tags("BI"), "BILOU")
    predicted = spelled([one[::-1] for one in random_tags("BI")], "BILOU")
    other = [spelled(one, "IOBES") for one in (actual, predicted)]
    assert scored(actual, predicted, "BILOU", False)["f1"] == seqeval.metrics.f1_score(*other)


def test_without_any_entity_scores_are_zero_and_nothing_warns():
    assert scored([["O"]], [["O"]], "BIO", False) == {"accuracy": 1.0, "precision": 0.0, "recall": 0.0, "f1": 0.0}
