"""Owns the evaluations of a run as one course: which was the best, and for how long they have become worse."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from app.core import formatting
from app.core.i18n import tr
from app.core.runs.run_state import RunState


@dataclass(frozen=True)
class Evaluations:
    """The evaluations of one measure, oldest first; `sign` is 1 where less is better, −1 where more is."""

    title: str
    steps: Sequence[float]
    values: Sequence[float]
    sign: int

    @property
    def best(self) -> int:
        """The place of the best one, the earliest of equals."""
        return min(range(len(self.values)), key=lambda place: self.sign * self.values[place])

    @property
    def worse_in_a_row(self) -> int:
        """How many of the last ones were each worse than the one before."""
        count = 0
        for before, after in zip(self.values[-2::-1], self.values[:0:-1], strict=True):
            if self.sign * (after - before) <= 0:
                break
            count += 1
        return count

    def words(self, place: int) -> str:
        """`0.3321 at step 400`."""
        return tr(
            "{values} at step {steps}",
            values=formatting.number(self.values[place]),
            steps=formatting.grouped(int(self.steps[place])),
        )


def evaluations_of(state: RunState) -> Evaluations | None:
    """Those of the validation loss, or of the main metric where no loss is measured; None where nobody says what is better."""
    name = "loss" if "loss" in state.metric_series else state.main_metric
    series = state.metric_series.get(name)
    if not series:
        return None
    measured = [place for place, value in enumerate(series.ys) if not isnan(value)]
    greater = state.greater_is_better(name)
    if greater is None:
        return None
    return Evaluations(
        tr("Evaluation loss") if name == "loss" else formatting.metric_title(name),
        [series.xs[place] for place in measured],
        [series.ys[place] for place in measured],
        -1 if greater else 1,
    )
