"""Owns what differs between two models' answers to the same: in one sentence, and number by number."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.formatting import number
from app.core.i18n import figure, tr
from app.core.predictions.predicted_row import PredictedRow

NO_ANSWER = tr("no answer")
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
            return tr("{label} · only one model knows this label", label=self.label)
        return tr("{label} · {replace} points", label=self.label, replace=figure(self.points, "+.1f").replace("-", "−"))


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
        more, less = (
            tr("{names} says {far} more than {names_2}.", names=names[1], far=far, names_2=names[0]),
            tr("{names} says {far} less than {names_2}.", names=names[1], far=far, names_2=names[0]),
        )
        return more if others >= ones else less
    said = [_quoted(row.prediction) for row in (first, second)]
    if first.prediction == second.prediction:
        surer = _surer(first.probabilities(), second.probabilities(), first.prediction, names)
        return tr("Both say {said}{surer}.", said=said[0], surer=surer)
    return tr(
        "They differ: {names} says {said}, {names_2} says {said_2}.",
        names=names[0],
        said=said[0],
        names_2=names[1],
        said_2=said[1],
    )


def _surer(ones: Mapping[str, float], others: Mapping[str, float], label: str, names: tuple[str, str]) -> str:
    if label not in ones or label not in others:
        return ""
    points = 100 * (others[label] - ones[label])
    if abs(points) < 0.05:
        return tr(", as surely")
    return tr("; {names} is surer by {abs:.1f} points", names=names[1] if points > 0 else names[0], abs=abs(points))


def _number(row: PredictedRow) -> float | None:
    value = row.values.get("prediction")
    return float(value) if isinstance(value, int | float) else None


def _quoted(text: str) -> str:
    if not text:
        return NO_ANSWER
    line = " ".join(text.split())
    return f"“{line}”" if len(line) <= SHORT else f"“{line[:SHORT].rstrip()}…”"
