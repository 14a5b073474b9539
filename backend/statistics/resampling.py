"""How sure a metric is: 95 % intervals, by Wilson for a share of right rows, else by drawing rows again.

A metric that can be drawn again is computed from how often each row counts, so that one draw serves every metric, and in
a comparison both models. Rows that depend on each other (questions about one paragraph) are drawn together.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.metrics import Interval

Scores = Callable[[np.ndarray], dict[str, np.ndarray]]
"""How often each row counts, (draws, rows) float64 → values by name, each (draws,)."""
RESAMPLES = 10_000
FEWEST = 10
"""Rows, or groups of rows, below which nothing is drawn: such an interval would be too narrow."""
LEVEL = 0.95
_DRAWN = 4_000_000
"""Counts that are in memory at once."""
_MOST, _MOST_SLOW = 1_000_000_000, 200_000_000
"""Counts in all, which take about 20 seconds; the second of a metric that is not a sum over rows."""
_SEED = 20_261_127


@dataclass(frozen=True)
class WeightedScores:
    """A family of metrics as a function of how often each row counts, so that rows can be drawn again."""

    scores: Scores
    shares: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Metrics that are the share of right rows, of all or of some: name → which of them are right, (some rows,) bool."""
    is_sum: bool = True
    """Whether the scores come from sums over rows, which is quick; else they are drawn less often."""


def ignore() -> None:
    """Check nothing."""


def ratios(sums: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Scores:
    """The scores that are one sum over rows divided by another; 0 where nothing is below."""
    names = list(sums)
    above, below = (np.stack([sums[name][part] for name in names], axis=1) for part in (0, 1))
    return lambda counts: dict(zip(names, divide(counts @ above, counts @ below).T, strict=True))


def divide(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Their ratio, 0 where `below` is 0."""
    return np.divide(above, below, out=np.zeros(np.broadcast_shapes(above.shape, below.shape)), where=below != 0)


def intervals(
    families: Collection[WeightedScores],
    rows: int,
    groups: np.ndarray | None = None,
    check: Callable[[], None] = ignore,
) -> dict[str, Interval]:
    """Each metric's 95 % interval; none for what is drawn from fewer than `FEWEST` rows or groups, or is always the same.

    `groups` (rows,) has the number of the group of each row, from 0, if rows depend on each other. `check` is
    called several times a second, and may raise.
    """
    found = {name: percentiles(values) for name, values in bootstrap(families, rows, groups, check).items()}
    found = {name: (low, high) for name, (low, high) in found.items() if -np.inf < low < high < np.inf}
    for one in families if groups is None else ():
        found |= {name: wilson(right) for name, right in one.shares.items() if len(right)}
    return found


def wilson(right: np.ndarray) -> Interval:
    """Wilson's interval of the share of right rows."""
    from scipy.stats import binomtest  # loads slowly

    low, high = binomtest(int(right.sum()), len(right)).proportion_ci(LEVEL, method="wilson")
    return float(low), float(high)


def bootstrap(
    families: Collection[WeightedScores],
    rows: int,
    groups: np.ndarray | None = None,
    check: Callable[[], None] = ignore,
) -> dict[str, np.ndarray]:
    """Each metric in every draw, (draws,); empty if there are fewer than `FEWEST` rows or groups."""
    found: dict[str, list[np.ndarray]] = defaultdict(list)
    draws = [_count_draws(one, rows) for one in families]
    done = 0
    for counts in draw_counts(rows, groups, max(draws, default=0)):
        for one, most in zip(families, draws, strict=True):
            check()
            for name, values in one.scores(counts[: most - done]).items() if done < most else ():
                found[name].append(values)
        done += len(counts)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _count_draws(one: WeightedScores, rows: int) -> int:
    return min(RESAMPLES, max(1_000, (_MOST if one.is_sum else _MOST_SLOW) // rows))


def percentiles(values: np.ndarray) -> Interval:
    """What lies between the outer 2.5 % on both sides."""
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def draw_counts(rows: int, groups: np.ndarray | None, draws: int) -> Iterator[np.ndarray]:
    """How often each row counts in each draw with replacement, in parts of (draws, rows); the same every time."""
    units = rows if groups is None else int(groups.max(initial=-1)) + 1
    if units < FEWEST:
        return
    rng = np.random.default_rng(_SEED)
    size = max(1, _DRAWN // rows)
    for start in range(0, draws, size):
        drawn = rng.integers(0, units, (min(size, draws - start), units), np.int32)
        counts = np.stack([np.bincount(one, minlength=units) for one in drawn]).astype(np.float64)
        yield counts if groups is None else counts[:, groups]


_GROUPS = (
    "document", "document_id", "doc", "doc_id", "article", "article_id", "paragraph_id", "passage_id", "context_id",
    "dialog_id", "dialogue_id", "conversation_id", "thread_id", "session_id", "patient_id", "user_id", "speaker_id",
)  # fmt: skip
"""Columns, in lower case, that say which rows depend on each other."""


def find_group_column(table: pa.Table, context: str | None) -> str | None:
    """The column whose rows with the same value depend on each other: the task's context, or one that is named so."""
    by_name = {name.lower(): name for name in reversed(table.column_names)}
    named = [by_name[name] for name in _GROUPS if name in by_name]
    for name in [*([context] if context in table.column_names else []), *named]:
        if FEWEST <= group_numbers(table[name]).max(initial=-1) + 1 < table.num_rows:
            return name
    return None


def group_numbers(column: pa.ChunkedArray) -> np.ndarray:
    """(rows,) the number of each row's value, from 0; a missing one is a value, too."""
    if pa.types.is_nested(column.type):  # which Arrow does not tell apart
        column = pa.chunked_array([[repr(value) for value in column.to_pylist()]], pa.string())
    elif pa.types.is_dictionary(column.type):  # whose null_encoding has no effect
        column = column.cast(column.type.value_type)
    numbers = [chunk.indices.to_numpy() for chunk in pc.dictionary_encode(column, "encode").chunks]
    return np.unique(np.concatenate([*numbers, np.zeros(0, np.int32)]), return_inverse=True)[1]
