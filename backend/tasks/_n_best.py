"""Owns what is said of one question: its n-best list with probabilities, and the choice between an answer and none."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Entry(NamedTuple):
    """One candidate answer; without place where it is no part of the context."""

    text: str
    start: int | None
    end: int | None
    score: float
    start_score: float
    end_score: float


NOTHING_POSSIBLE = Entry("empty", None, None, 0.0, 0.0, 0.0)
"""What transformers' example puts where a plain head leaves no span at all."""
NO_BEAM_POSSIBLE = Entry("", None, None, -2e-6, -1e-6, -1e-6)
"""The same for a beam head."""


@dataclass(frozen=True)
class Said:
    """What is said of one question."""

    chosen: Entry
    score: float
    """How sure the choice is, 0 to 1: of a plain head its probability among the n-best list, of a beam head the product
    of those of its start and end, or that there is no answer."""
    best_text: str
    """The best answer that is not empty, whatever the null score."""
    null_score: float | None
    """How much better no answer is than the best one; None where questions are known to have answers."""
    n_best: list[dict[str, Any]]


def entry(context: str, start: int, end: int, scores: tuple[float, float, float]) -> Entry:
    """A candidate without the white space that some tokenizers (sentencepiece) count to a word."""
    text = context[start:end]
    bare = text.strip()
    start += len(text) - len(text.lstrip())
    return Entry(bare, start, start + len(bare), *scores)


def plain(entries: list[Entry], null: Entry | None, n_best: int, null_threshold: float) -> Said:
    """Of a plain head. With `null`, "no answer" is one of the candidates and never lost when the list is cut."""
    if null is not None:
        place = sum(one.score >= null.score for one in entries)
        entries = [*entries[:place], null, *entries[place:]][:n_best]
        entries = entries if place < n_best else [*entries, null]
    if not any(one.text for one in entries):
        entries = [NOTHING_POSSIBLE, *entries]
    probabilities = _softmax(entries)
    best = next(place for place, one in enumerate(entries) if one.text)
    chosen, null_score = 0, None
    if null is not None:
        null_score = null.score - entries[best].start_score - entries[best].end_score
        chosen = entries.index(null) if null_score > null_threshold else best
    return Said(
        entries[chosen], probabilities[chosen], entries[best].text, null_score, _listed(entries, probabilities, "logit")
    )


def beam(entries: list[Entry], null_score: float | None, null_threshold: float) -> Said:
    """Of a beam head, which judges "no answer" beside the answers: `null_score` is the logit of there being none."""
    entries = entries or [NO_BEAM_POSSIBLE]
    probabilities = _softmax(entries)
    listed = _listed(entries, probabilities, "log_prob")
    if null_score is not None and null_score > null_threshold:
        none = Entry("", None, None, null_score, null_score, null_score)
        return Said(none, float(1 / (1 + np.exp(-null_score))), entries[0].text, null_score, listed)
    best = entries[0]
    # What transformers' head calls log_probs are probabilities.
    sure = max(0.0, best.start_score) * max(0.0, best.end_score)
    return Said(best, sure, best.text, null_score, listed)


def _softmax(entries: list[Entry]) -> list[float]:
    scores = np.array([one.score for one in entries])
    exponents = np.exp(scores - scores.max())
    return (exponents / exponents.sum()).tolist()


def _listed(entries: list[Entry], probabilities: list[float], kind: str) -> list[dict[str, Any]]:
    return [
        {"text": one.text, "probability": probability, f"start_{kind}": one.start_score, f"end_{kind}": one.end_score}
        for one, probability in zip(entries, probabilities, strict=True)
    ]
