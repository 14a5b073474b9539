"""Whether two models differ on the same rows: exact McNemar's test, the paired bootstrap, and Holm's correction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from backend.contract.metrics import Interval
from backend.statistics.resampling import Resampling, count_draws, draw_counts, percentiles

_POWER = 1.959964 + 0.841621
"""Standard errors of a difference that 95 % confidence finds in four of five cases."""


@dataclass(frozen=True)
class Difference:
    """One metric of two models on the same rows; `value` and `interval` are of the second less the first."""

    values: tuple[float, float]
    value: float
    interval: Interval
    p: float
    """How often a difference at least as large would occur if there were none."""
    test: str
    """`mcnemar_exact` or `paired_bootstrap`."""
    error: float
    """The standard error."""

    @property
    def detectable(self) -> float:
        """The smallest difference that these rows would show in four of five cases."""
        return _POWER * self.error

    def rows_needed(self, rows: int) -> int | None:
        """About how many such rows would show this difference in four of five cases; None if there is none."""
        return None if self.value == 0 else int(np.ceil(rows * (self.detectable / self.value) ** 2))


def differences(
    pairs: Iterable[tuple[Resampling, Resampling]], rows: int, groups: np.ndarray | None = None
) -> dict[str, Difference]:
    """The difference of each metric that both models have, each pair being one family of metrics for both.

    With `groups` (rows,), rows of one group are drawn together, and no row is a case of its own for McNemar's test.
    """
    found: dict[str, Difference] = {}
    for first, second in pairs:
        draws = min(count_draws(first, rows), count_draws(second, rows))
        parts = [(first.scores(counts), second.scores(counts)) for counts in draw_counts(rows, groups, draws)]
        once = np.ones((1, rows))
        whole = first.scores(once), second.scores(once)
        for name in (name for name in whole[0] if parts and name in whole[1]):
            values = float(whole[0][name][0]), float(whole[1][name][0])
            drawn = np.concatenate([other[name] - one[name] for one, other in parts])
            right = [one.shares.get(name) for one in (first, second)]
            is_case = groups is None and all(each is not None and len(each) == rows for each in right)
            value = values[1] - values[0]
            found[name] = Difference(
                values=values,
                value=value,
                interval=percentiles(drawn),
                p=mcnemar(right[0], right[1]) if is_case else bootstrap_p(drawn, value),  # pyright: ignore[reportArgumentType]
                test="mcnemar_exact" if is_case else "paired_bootstrap",
                error=float(drawn.std()),
            )
    return found


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """McNemar's exact test: rows that one model alone has right would be either's with equal chance. (rows,) bool each"""
    from scipy.stats import binomtest  # loads slowly

    apart = int((first != second).sum())
    return float(binomtest(int((first & ~second).sum()), apart).pvalue) if apart else 1.0


def bootstrap_p(drawn: np.ndarray, value: float) -> float:
    """The share of draws that are as far from their mean as the difference is from 0, as in sacreBLEU's paired bootstrap."""
    far = np.abs(drawn - drawn.mean()) >= abs(value) - 1e-12
    return float((far.sum() + 1) / (len(drawn) + 1))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's p-values for several tests. Source: S. Holm, Scandinavian Journal of Statistics 6, 1979."""
    order = np.argsort(p)
    raised = np.maximum.accumulate([(len(p) - place) * p[number] for place, number in enumerate(order)])
    found = np.empty(len(p))
    found[order] = np.minimum(1, raised)
    return found.tolist()
