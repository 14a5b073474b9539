"""Whether two models differ on the same rows: exact McNemar's test, the paired bootstrap, and Holm's correction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from backend.contract.metrics import Interval
from backend.statistics.resampling import Resampling, draw, percentiles

_POWER = 1.959964 + 0.841621
"""Standard errors of a difference that 95 % confidence finds in four of five cases."""
_ROUNDING = 1e-12


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
        return None if abs(self.value) < _ROUNDING else int(np.ceil(rows * (self.detectable / self.value) ** 2))


@dataclass(frozen=True)
class Resampled:
    """One model's metrics, and what they become when rows are drawn again."""

    values: Mapping[str, float]
    drawn: Mapping[str, np.ndarray]
    """(draws,) each; of every model the same rows are drawn."""
    shares: Mapping[str, np.ndarray]
    """As those of `Resampling`, if they are of all rows and no row depends on another."""


def resample(families: Sequence[Resampling], rows: int, groups: np.ndarray | None = None) -> Resampled:
    """One model's metrics on `rows` rows. With `groups` (rows,), rows of one group are drawn together."""
    once = np.ones((1, rows))
    whole = {name: float(value) for one in families for name, (value,) in one.scores(once).items()}
    shares = {name: right for one in families for name, right in one.shares.items() if len(right) == rows}
    return Resampled(whole, draw(families, rows, groups), shares if groups is None else {})


def differences(first: Resampled, second: Resampled) -> dict[str, Difference]:
    """The difference of each metric that both models have as a number; McNemar's test if it is a share of independent rows."""
    found: dict[str, Difference] = {}
    for name in (name for name in first.drawn if name in second.drawn):
        drawn = second.drawn[name] - first.drawn[name]
        values = first.values[name], second.values[name]
        value = values[1] - values[0]
        if not (np.isfinite(value) and np.isfinite(drawn).all()):
            continue
        is_share = name in first.shares and name in second.shares
        found[name] = Difference(
            values=values,
            value=value,
            interval=percentiles(drawn),
            p=mcnemar(first.shares[name], second.shares[name]) if is_share else bootstrap_p(drawn, value),
            test="mcnemar_exact" if is_share else "paired_bootstrap",
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
    far = np.abs(drawn - drawn.mean()) >= abs(value) - _ROUNDING
    return float((far.sum() + 1) / (len(drawn) + 1))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's p-values for several tests. Source: S. Holm, Scandinavian Journal of Statistics 6, 1979."""
    order = np.argsort(p)
    raised = np.maximum.accumulate([(len(p) - place) * p[number] for place, number in enumerate(order)])
    found = np.empty(len(p))
    found[order] = np.minimum(1, raised)
    return found.tolist()
