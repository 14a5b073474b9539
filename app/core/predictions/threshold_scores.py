"""The scores of one label at any threshold, computed from counts made once, so that a slider needs no query."""

from dataclasses import dataclass
from functools import cached_property

from backend.contract.rpc.predictions import THRESHOLD_STEPS, ThresholdCounts


@dataclass(frozen=True)
class Scores:
    """The scores at one threshold; None if nothing is predicted, or there is nothing to find."""

    threshold: float
    predicted: int
    precision: float | None
    recall: float | None
    f1: float | None
    accuracy: float | None


@dataclass(frozen=True)
class ThresholdScores:
    """Scores by threshold step, from 0 to THRESHOLD_STEPS."""

    counts: ThresholdCounts

    def at(self, step: int) -> Scores:
        """Precision, recall, F1 and accuracy if rows of at least `step` / THRESHOLD_STEPS are predicted."""
        counts = self.counts
        found, false = counts.true_positives[step], counts.false_positives[step]
        total = counts.positives + counts.negatives
        divisor = found + false + counts.positives
        return Scores(
            threshold=step / THRESHOLD_STEPS,
            predicted=found + false,
            precision=found / (found + false) if found + false else None,
            recall=found / counts.positives if counts.positives else None,
            f1=2 * found / divisor if divisor else None,
            accuracy=(found + counts.negatives - false) / total if total else None,
        )

    @cached_property
    def best_step(self) -> int:
        """The threshold with the highest F1; for ties the middle of the first run of them."""
        scores = [self.at(step).f1 or 0.0 for step in range(THRESHOLD_STEPS + 1)]
        first = max(range(len(scores)), key=scores.__getitem__)
        last = first
        while last < THRESHOLD_STEPS and scores[last + 1] == scores[first]:
            last += 1
        return (first + last) // 2

    def curve(self, name: str) -> list[tuple[float, float]]:
        """(threshold, score) of `precision`, `recall` or `f1`, where it is defined."""
        scores = (self.at(step) for step in range(0, THRESHOLD_STEPS + 1, 5))
        return [(one.threshold, value) for one in scores if (value := getattr(one, name)) is not None]
