"""Answers about compared runs: whether their metrics differ by more than chance."""

import msgspec


class PairTest(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of two runs on the same rows; `difference` and `interval` are of `b` less `a`."""

    metric: str
    test: str
    """`mcnemar_exact` or `paired_bootstrap`."""
    a: str
    b: str
    values: tuple[float, float]
    difference: float
    interval: tuple[float, float]
    """95 %."""
    p: float
    p_holm: float
    """`p`, corrected for the number of pairs."""
    rows: int
    detectable: float
    """The smallest difference that so many rows show in four of five cases."""
    rows_needed: int | None = None
    """About how many rows would show this difference; None if there is none."""


class PairTests(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `compare_predictions {runs}`: every pair of runs, each metric; `sentences` say the result in words."""

    tests: list[PairTest] = []
    sentences: list[str] = []
    refusal: str = ""
    """Why nothing was tested."""
