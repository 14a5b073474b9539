"""Owns what differs between two models' answers to the same: in one sentence, and number by number."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.predicted_row import PredictedRow
from app.core.wording import number

NO_ANSWER = "no answer"
SHORT = 40
"""Letters of an answer that is quoted in the sentence."""


@dataclass(frozen=True)
class LabelPair:
    """A label's probability at both models; None where one does not know the label."""

    label: str
    first: float | None
    second: float | None

    @property
    def points(self) -> float | None:
        """By how many points of a hundred the second is surer."""
        return None if self.first is None or self.second is None else 100 * (self.second - self.first)

    @property
    def title(self) -> str:
        """The label with the difference."""
        if self.points is None:
            return f"{self.label} · only one model knows this label"
        return f"{self.label} · {f'{self.points:+.1f}'.replace('-', '−')} points"


def label_pairs(first: PredictedRow, second: PredictedRow) -> list[LabelPair]:
    """Every label of either model, those of which one of them is surest at the top."""
    ones, others = first.probabilities(), second.probabilities()
    pairs = [LabelPair(label, ones.get(label), others.get(label)) for label in {**ones, **others}]
    return sorted(pairs, key=lambda pair: -max(pair.first or 0.0, pair.second or 0.0))


def agreement(first: PredictedRow, second: PredictedRow, names: tuple[str, str]) -> str:
    """One sentence on whether both say the same."""
    ones, others = _number(first), _number(second)
    if ones is not None and others is not None and not first.probabilities():
        far = number(abs(others - ones))
        more, less = f"{names[1]} says {far} more than {names[0]}.", f"{names[1]} says {far} less than {names[0]}."
        return more if others >= ones else less
    said = [_quoted(row.prediction) for row in (first, second)]
    if first.prediction == second.prediction:
        surer = _surer(first.probabilities(), second.probabilities(), first.prediction, names)
        return f"Both say {said[0]}{surer}."
    return f"They differ: {names[0]} says {said[0]}, {names[1]} says {said[1]}."


def _surer(ones: Mapping[str, float], others: Mapping[str, float], label: str, names: tuple[str, str]) -> str:
    if label not in ones or label not in others:
        return ""
    points = 100 * (others[label] - ones[label])
    if abs(points) < 0.05:
        return ", as surely"
    return f"; {names[1] if points > 0 else names[0]} is surer by {abs(points):.1f} points"


def _number(row: PredictedRow) -> float | None:
    value = row.values.get("prediction")
    return float(value) if isinstance(value, int | float) else None


def _quoted(text: str) -> str:
    if not text:
        return NO_ANSWER
    line = " ".join(text.split())
    return f"“{line}”" if len(line) <= SHORT else f"“{line[:SHORT].rstrip()}…”"
