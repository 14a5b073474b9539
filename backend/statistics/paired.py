"""Whether two models, or two groups of them, differ on the same rows: exact McNemar's test, bootstraps, Holm's correction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from backend.contract.metrics import Interval
from backend.statistics.resampling import LEVEL, WeightedScores, bootstrap, percentiles

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
    """`mcnemar_exact`, `paired_bootstrap` or, of several seeds, `bootstrap_seeds_rows`."""
    error: float
    """The standard error."""
    seed_variances: tuple[float, ...] = ()
    """Of one seed's value, if both have several; the part of `error` that more rows do not make smaller."""
    seed_error: float = 0.0
    """That part."""

    @property
    def detectable(self) -> float:
        """The smallest difference that these rows, and seeds, would show in four of five cases."""
        return _POWER * self.error

    def rows_needed(self, rows: int) -> int | None:
        """About how many such rows would show this difference in four of five cases; None if no number would."""
        room = (self.value / _POWER) ** 2 - self.seed_error**2
        return None if room < _ROUNDING**2 else int(np.ceil(rows * (self.error**2 - self.seed_error**2) / room))

    def seeds_needed(self) -> int | None:
        """About how many seeds of each would show this difference on the same rows; None if no number would."""
        room = (self.value / _POWER) ** 2 - (self.error**2 - self.seed_error**2)
        if not self.seed_variances or room < _ROUNDING**2:
            return None
        return int(np.ceil(sum(self.seed_variances) / room))


@dataclass(frozen=True)
class Resampled:
    """One model's metrics, and what they become when rows are drawn again."""

    values: Mapping[str, float]
    drawn: Mapping[str, np.ndarray]
    """(draws,) each; of every model the same rows are drawn."""
    shares: Mapping[str, np.ndarray]
    """As those of `WeightedScores`, if they are of all rows and no row depends on another."""


def resample(families: Sequence[WeightedScores], rows: int, groups: np.ndarray | None = None) -> Resampled:
    """One model's metrics on `rows` rows. With `groups` (rows,), rows of one group are drawn together."""
    once = np.ones((1, rows))
    whole = {name: float(value) for one in families for name, (value,) in one.scores(once).items()}
    shares = {name: right for one in families for name, right in one.shares.items() if len(right) == rows}
    return Resampled(whole, bootstrap(families, rows, groups), shares if groups is None else {})


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


def group_differences(first: Sequence[Resampled], second: Sequence[Resampled]) -> dict[str, Difference]:
    """The difference of each metric's mean over seeds: several models of one kind or of both, each with another seed.

    Both seeds and rows are a sample. What rows contribute is drawn: the same ones for every model. What seeds contribute
    follows from how they differ; a single model counts as it is. To draw seeds as well would count twice what depends on
    both, and understate the spread of few seeds (A. B. Owen, Annals of Applied Statistics 1, 2007), so Student's t is used, with
    degrees of freedom by Welch and Satterthwaite.
    """
    found: dict[str, Difference] = {}
    for name in (name for name in first[0].drawn if all(name in one.drawn for one in (*first, *second))):
        own, others = (np.array([one.values[name] for one in models]) for models in (first, second))
        drawn = np.stack([one.drawn[name] for one in (*first, *second)])  # (models, draws)
        if np.isfinite(drawn).all() and np.isfinite([*own, *others]).all():
            found[name] = _difference_of_means(own, others, drawn)
    return found


def _difference_of_means(first: np.ndarray, second: np.ndarray, drawn: np.ndarray) -> Difference:
    """`first` and `second` (seeds,) each; `drawn` (all models, draws)."""
    from scipy.stats import t  # loads slowly

    covariances = np.atleast_2d(np.cov(drawn))
    own, others = covariances[: len(first), : len(first)], covariances[len(first) :, len(first) :]
    shared = covariances[: len(first), len(first) :].mean()
    of_rows = max(0.0, float(_common_variance(own) + _common_variance(others) - 2 * shared))
    variances = [float(values.var(ddof=1)) if len(values) > 1 else 0.0 for values in (first, second)]
    of_seeds = [variance / len(values) for variance, values in zip(variances, (first, second), strict=True)]
    error, value = float(np.sqrt(of_rows + sum(of_seeds))), float(second.mean() - first.mean())
    bent = sum(part**2 / (len(values) - 1) for part, values in zip(of_seeds, (first, second), strict=True) if part)
    freedom = error**4 / bent if bent else np.inf
    half = float(t.ppf((1 + LEVEL) / 2, freedom)) * error
    p = 2 * float(t.sf(abs(value) / error, freedom)) if error > _ROUNDING else float(abs(value) < _ROUNDING)
    return Difference(
        values=(float(first.mean()), float(second.mean())),
        value=value,
        interval=(value - half, value + half),
        p=p,
        test="bootstrap_seeds_rows",
        error=error,
        seed_variances=tuple(variances) if min(len(first), len(second)) > 1 else (),
        seed_error=float(np.sqrt(sum(of_seeds))),
    )


def _common_variance(covariances: np.ndarray) -> float:
    """What drawing rows changes in all models alike: the mean covariance of two, or the variance of one."""
    count = len(covariances)
    if count == 1:
        return float(covariances[0, 0])
    return float((covariances.sum() - np.trace(covariances)) / (count * (count - 1)))


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
