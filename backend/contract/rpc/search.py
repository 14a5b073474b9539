"""What a search has found, for the window and for scripts."""

from typing import Any

import msgspec

from backend.contract.metrics import Interval
from backend.contract.rpc.predictions import PairTest

BASELINE = -1
"""In place of the number of a trial: the spec's own settings."""


class TrialEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One trial; the best is first."""

    trial: int
    run: str
    state: str
    settings: dict[str, Any]
    metric: float | None
    steps: int
    total_steps: int
    seconds: float
    rung: int = 0
    """Rungs that it has passed or waits at."""
    message: str = ""
    confirms: int = 0
    """The trial that it trains again with another seed; 0 for a trial of its own, BASELINE for the spec's own settings."""
    reason: str = ""
    """Why it is training now, for example `proposed by tpe`; empty unless it is."""


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """One of the best trials, trained again with other seeds."""

    trial: int
    searched: float
    """The value by which it was among the best."""
    values: dict[str, float]
    """Seed → value, of the new seeds alone."""
    mean: float | None = None
    interval: Interval | None = None
    """The 95 % t interval of the mean."""
    luck: float | None = None
    """By how much its value in the search was better than the mean of the new seeds."""
    luck_interval: Interval | None = None
    """The 95 % interval of `luck`."""


class SearchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a search will cost, from the plans of trials from all over the space."""

    trials: int
    confirmations: int
    """Runs with new seeds at its end."""
    steps: int
    """About how many all of its runs compute together."""
    seconds: float | None
    confirmation_steps: int
    """Those of `steps` that are computed with new seeds."""
    combinations: int
    """Of a full grid: of every listed value, every whole number of a range, and `samples` values of each other range."""
    samples: int
    """0 if no setting has a range of real numbers."""
    grid_steps: int
    grid_seconds: float | None
    planned_trials: int = 1
    """Of how many different trials of the space steps and time are the mean."""
    disk_mb: float | None = None
    """What its runs hold at its end, if it is known of one."""


class Ineffective(msgspec.Struct, frozen=True, kw_only=True):
    """Settings in which two trials differ without any effect on their losses."""

    settings: dict[str, list[Any]]
    """Their values in the two trials."""
    trials: list[int]
    steps: int


class Importance(msgspec.Struct, frozen=True, kw_only=True):
    """The share of a metric's variance that a setting explains (fANOVA), and between what it was if the trials were drawn again.

    That is the range of a few draws, each of which takes a tenth of a second, and no confidence interval.
    """

    setting: str
    share: float
    interval: Interval


class SearchReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known of a search."""

    search: str
    name: str
    state: str
    message: str
    metric: str
    greater_is_better: bool
    sampler: str
    planned: int
    """How many trials it may propose."""
    trials: list[TrialEntry]
    best: int | None
    confirmed: list[Confirmation]
    repeats: list[TrialEntry] = []
    """The runs with new seeds, of the best trials and of the spec's own settings."""
    verdict: list[str]
    """Sentences on whether the best trial is better than the spec's own settings, by the same seeds of both; none unless both were trained."""
    verdict_test: PairTest | None = None
    no_effect: list[Ineffective]
    importance: list[Importance]
    steps: int
    """Computed by all trials together, confirmations excepted."""
    full_steps: int
    """Of the same trials if each were trained through."""
    seconds: float
    """Of all runs; those with new seeds took `confirmation_seconds` of them."""
    confirmation_seconds: float = 0.0
    full_seconds: float | None = None
    """About how long the same trials would take if each were trained through, by the seconds that their steps took."""
    combinations: int = 0
    """Of a full grid; see `SearchPlan`."""
    samples: int = 0
    grid_seconds: float | None = None
    """About how long a full grid would take, if its trials took as long as these."""
    left: int | None = None
    """How many combinations are there beyond `planned`; None if there is no end to them."""
    seconds_left: float | None
    """A guess from the trials so far; None if nothing is left or known."""
