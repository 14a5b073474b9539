"""How well a classifier's probabilities are calibrated: reliability, expected calibration error, and a temperature that improves it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from backend.contract.metrics import Interval
from backend.contract.rpc.predictions import Reliability, ReliabilityBin
from backend.statistics.resampling import LEVEL, WeightedScores, bootstrap, percentiles, wilson

BINS = 10
"""Of the reliability diagram, equally wide."""
PARTS = 5
"""Of the rows, for errors on rows on which the temperature was not fitted."""
LOWEST, HIGHEST = 0.01, 100.0
"""Temperatures; beyond them nothing can be learned from the rows."""
_SEED = 20_261_128
_PERFECT = 500
"""Draws of rows whose probabilities are right."""
_BEFORE, _AFTER = "before", "after"


def fit_temperature(log_probabilities: np.ndarray, actual: np.ndarray) -> float:
    """The temperature with the smallest loss, within `LOWEST` and `HIGHEST`.

    `log_probabilities` (rows, labels), -inf for a label that a row cannot have; `actual` (rows,) label numbers. Source: C. Guo
    et al., On Calibration of Modern Neural Networks, ICML 2017, section 4.2. The loss is convex in 1/T, so its slope has one root.
    """
    from scipy.optimize import brentq  # loads slowly

    rows = np.arange(len(actual))
    finite = np.where(np.isfinite(log_probabilities), log_probabilities, 0.0)
    known = finite[rows, actual].sum()

    def slope(scale: float) -> float:
        """Of the loss, by the scale."""
        return float((np.exp(scaled(log_probabilities, 1 / scale)) * finite).sum() - known)

    if slope(1 / LOWEST) <= 0:
        return LOWEST
    if slope(1 / HIGHEST) >= 0:
        return HIGHEST
    return 1 / float(brentq(slope, 1 / HIGHEST, 1 / LOWEST, xtol=1e-10))  # pyright: ignore[reportArgumentType]


def scaled(log_probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """(rows, labels) the log-probabilities at a temperature."""
    outputs = log_probabilities / temperature
    return outputs - np.logaddexp.reduce(outputs, axis=1, keepdims=True)


@dataclass(frozen=True)
class Calibrated:
    """What a temperature does to the probabilities of some rows."""

    temperature: float
    """Fitted on all rows."""
    before: Reliability
    after: Reliability
    """Each part of the rows with the temperature of the other parts."""
    change: float
    """Of the expected calibration error, after less before."""
    change_interval: Interval | None
    parts: int


def calibrate(log_probabilities: np.ndarray, actual: np.ndarray, groups: np.ndarray | None = None) -> Calibrated:
    """Fit a temperature and measure it on rows that it has not seen; `groups` (rows,) as for intervals."""
    after, parts = np.empty_like(log_probabilities), list(_parts(len(actual), groups))
    for own in parts:
        temperature = fit_temperature(log_probabilities[~own], actual[~own])
        after[own] = scaled(log_probabilities[own], temperature)
    sides = {_BEFORE: scaled(log_probabilities, 1.0), _AFTER: after}
    families = [_scores_of(name, side, actual) for name, side in sides.items()]
    values = {
        name: float(value) for one in families for name, (value,) in one.scores(np.ones((1, len(actual)))).items()
    }
    drawn = bootstrap(families, len(actual), groups)
    drawn["change"] = drawn[f"error {_AFTER}"] - drawn[f"error {_BEFORE}"] if drawn else np.zeros(0)
    values["change"] = values[f"error {_AFTER}"] - values[f"error {_BEFORE}"]

    def interval(name: str) -> Interval | None:
        return percentiles(drawn[name]) if len(drawn.get(name, ())) else None

    def side(name: str) -> Reliability:
        confidence, right = _confidence(sides[name], actual)
        of_chance = _errors_of_perfect(confidence) if groups is None else np.zeros(1)
        return Reliability(
            error=values[f"error {name}"],
            error_interval=_error_interval(values[f"error {name}"], drawn.get(f"error {name}", np.zeros(0)), of_chance),
            loss=values[f"loss {name}"],
            loss_interval=interval(f"loss {name}"),
            bins=reliability(confidence, right, intervals=groups is None),
        )

    return Calibrated(
        temperature=fit_temperature(log_probabilities, actual),
        before=side(_BEFORE),
        after=side(_AFTER),
        change=values["change"],
        change_interval=interval("change"),
        parts=len(parts),
    )


def _error_interval(value: float, drawn: np.ndarray, of_chance: np.ndarray) -> Interval | None:
    """The 95 % interval of an expected calibration error, which chance alone makes larger than 0.

    To draw rows again adds to the error what sampling them has added before, so plain percentiles miss the truth: the lower
    end is mirrored at the value, and is 0 if perfect probabilities would have as large an error by chance (`of_chance`).
    """
    if not len(drawn):
        return None
    low, high = percentiles(drawn)
    is_chance = value <= np.quantile(of_chance, (1 + LEVEL) / 2)
    return 0.0 if is_chance else max(0.0, 2 * value - high), max(2 * value - low, value + 1.96 * float(drawn.std()))


def _errors_of_perfect(confidence: np.ndarray) -> np.ndarray:
    """(draws,) the errors of probabilities that are right. Source: J. Bröcker and L. A. Smith, Weather and Forecasting 22, 2007."""
    rng, place = np.random.default_rng(_SEED), bin_of(confidence)
    drawn = (confidence - (rng.random(len(confidence)) < confidence) for _ in range(_PERFECT))
    return np.array([np.abs(np.bincount(place, gaps, BINS)).sum() / len(confidence) for gaps in drawn])


def _parts(rows: int, groups: np.ndarray | None) -> Iterator[np.ndarray]:
    """(rows,) bool of each part; rows of one group are in the same."""
    units = rows if groups is None else int(groups.max(initial=-1)) + 1
    part = np.random.default_rng(_SEED).permutation(units) % PARTS
    of_rows = part if groups is None else part[groups]
    yield from (own for number in range(PARTS) if (own := of_rows == number).any())


def _confidence(log_probabilities: np.ndarray, actual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows,) the largest probability, and whether its label is the right one."""
    return np.exp(log_probabilities.max(axis=1)), log_probabilities.argmax(axis=1) == actual


def _scores_of(name: str, log_probabilities: np.ndarray, actual: np.ndarray) -> WeightedScores:
    from scipy import sparse  # loads slowly

    confidence, right = _confidence(log_probabilities, actual)
    rows = np.arange(len(actual))
    loss = -np.maximum(log_probabilities[rows, actual], np.log(np.finfo(np.float64).tiny))
    gaps = sparse.csr_array((confidence - right, (rows, bin_of(confidence))), (len(rows), BINS))

    def scores(counts: np.ndarray) -> dict[str, np.ndarray]:
        total = counts.sum(axis=1)
        return {f"error {name}": np.abs(counts @ gaps).sum(axis=1) / total, f"loss {name}": counts @ loss / total}

    return WeightedScores(scores)


def bin_of(confidence: np.ndarray) -> np.ndarray:
    """(rows,) the number of the bin (low, high] of each confidence; 0 is in the first."""
    return np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)


def reliability(confidence: np.ndarray, right: np.ndarray, *, intervals: bool = False) -> list[ReliabilityBin]:
    """Mean confidence and accuracy in bins of equal width (low, high], as in Guo et al., section 2; with `intervals` Wilson's."""
    place = bin_of(confidence)
    found = []
    for number in range(BINS):
        own = place == number
        count = int(own.sum())
        found.append(
            ReliabilityBin(
                low=number / BINS,
                high=(number + 1) / BINS,
                count=count,
                confidence=float(confidence[own].mean()) if count else None,
                accuracy=float(right[own].mean()) if count else None,
                interval=wilson(right[own]) if count and intervals else None,
            )
        )
    return found


def calibration_error(bins: list[ReliabilityBin]) -> float | None:
    """Expected calibration error: the bins' mean |accuracy − confidence|, by their rows (Guo et al. 2017, eq. 3)."""
    total = sum(one.count for one in bins)
    apart = [one.count * abs(one.accuracy - one.confidence) for one in bins if one.accuracy is not None and one.confidence is not None]  # fmt: skip
    return sum(apart) / total if total else None
