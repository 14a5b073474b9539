"""Owns the steps of a trial: which of an epoch's are taken, so that few of them stand for all, and what they tell."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from backend.data.batches import padded_length
from backend.data.features import Features
from backend.engines.engine import StepResult
from backend.preflight.session import FeatureSession
from backend.preflight.steps import training_order
from backend.preflight.timing import CompileTimer

LEAST_STEPS, LEAST_SECONDS, MAX_SECONDS = 3, 2.0, 15.0
"""Timed after the first one, which also makes the optimizer's state."""
COMPILING_SECONDS = 20.0
"""After so long no step is taken any more that would be compiled."""
STEADY = 0.05
"""A mean that is known so exactly, as a part of it, needs no more steps."""
READ_SECONDS = 0.5
"""As in a run, numbers are read from the device now and then."""
LOOKED_AT = 400
"""Steps of an epoch whose lengths are computed."""


@dataclass(frozen=True)
class Steps:
    """What the steps of a trial tell of all steps."""

    count: int
    seconds: float
    """Of a step, on the mean of all."""
    spread: float
    """How far that may be off, as a part of it."""


class Lengths:
    """The steps of the first epoch of some features, by the tokens that each computes."""

    def __init__(self, session: FeatureSession, features: Features, rows_in_pass: int) -> None:
        self._session, self._features, self._rows = session, features, rows_in_pass
        self._order = training_order(session.spec, features)
        count = self._order.steps_per_epoch
        self._numbers = np.unique(np.linspace(1, count, min(count, LOOKED_AT)).astype(np.int64)).tolist()
        self._shapes = {step: self._of(step) for step in self._numbers}

    def _of(self, step: int) -> tuple[tuple[int, int], ...]:
        lengths = self._features.lengths[self._order.indices(step)]
        limit, multiple = self._session.facts["max_length"], self._session.length_multiple
        passes = (lengths[start : start + self._rows] for start in range(0, len(lengths), self._rows))
        return tuple((len(one), padded_length(int(one.max()), multiple, limit)) for one in passes)

    def tokens(self, step: int) -> int:
        """Tokens that a step computes, padding among them."""
        return sum(rows * length for rows, length in self._shapes[step])

    def shape(self, step: int) -> object:
        """Equal for steps that one program computes."""
        return self._shapes[step]

    @property
    def programs(self) -> int:
        """How many programs an engine needs that compiles each shape."""
        return len(set(self._shapes.values()))

    @cached_property
    def mean_tokens(self) -> float:
        """Of all steps."""
        return float(np.mean([self.tokens(step) for step in self._numbers]))

    def take(self, step: int, number: int) -> StepResult:
        """Take an optimizer step with this step's batch; nothing is learnt."""
        batches = self._session.micro_batches(self._features, self._order.indices(step), self._rows, 0)
        return self._session.engine.train_step(batches, number, 0.0)

    def spread_out(self) -> Iterator[int]:
        """The longest step, then for ever such that the first few of them are short, middling and long in turn."""
        by_length = sorted(self._numbers, key=self.tokens)
        yield by_length[-1]
        number = 0
        while True:
            number += 1
            yield by_length[int(van_der_corput(number) * len(by_length))]


def van_der_corput(number: int) -> float:
    """1/2, 1/4, 3/4, 1/8 …: the binary digits of `number` behind the point, the last one first (van der Corput 1935)."""
    value, share = 0.0, 0.5
    while number:
        value += share * (number & 1)
        number, share = number >> 1, share / 2
    return value


def measure_steps(
    session: FeatureSession, lengths: Lengths, compiled: CompileTimer, tell: Callable[[float, float], None]
) -> Steps:
    """Take steps until they tell enough; what is compiled meanwhile is not in their time."""
    order, known = lengths.spread_out(), set[object]()
    numbers, groups = iter(range(1, 1_000_000)), list[tuple[int, int, float]]()
    _warm_up(session, lengths, next(order), next(numbers), known)
    tell(0.0, MAX_SECONDS)
    while not _is_enough(groups):
        groups.append(_group(session, lengths, compiled, order, numbers, known))
        tell(sum(group[2] for group in groups), MAX_SECONDS)
    return told(groups, lengths.mean_tokens)


def _warm_up(session: FeatureSession, lengths: Lengths, step: int, number: int, known: set[object]) -> None:
    session.engine.read([lengths.take(step, number)])
    known.add(lengths.shape(step))


def _group(
    session: FeatureSession, lengths: Lengths, compiled: CompileTimer, order: Iterator[int], numbers: Iterator[int], known: set[object]
) -> tuple[int, int, float]:  # fmt: skip
    """Steps, their tokens and seconds, from one reading of the device to the next."""
    started, before, taken, results = time.perf_counter(), compiled.seconds, list[int](), []

    def seconds() -> float:
        return time.perf_counter() - started - (compiled.seconds - before)

    while not taken or seconds() < READ_SECONDS:
        step = next(order)
        if session.engine.constant_rows and lengths.shape(step) not in known:
            if compiled.seconds >= COMPILING_SECONDS:
                continue
            session.engine.read(
                [lengths.take(step, next(numbers))]
            )  # the first call of a program does more than compute
            known.add(lengths.shape(step))
            started, before, taken, results = time.perf_counter(), compiled.seconds, [], []
        results.append(lengths.take(step, next(numbers)))
        taken.append(step)
    session.engine.read(results)
    return len(taken), sum(lengths.tokens(step) for step in taken), seconds()


def _is_enough(groups: list[tuple[int, int, float]]) -> bool:
    count, seconds = sum(group[0] for group in groups), sum(group[2] for group in groups)
    if seconds >= MAX_SECONDS:
        return True
    return count >= LEAST_STEPS and seconds >= LEAST_SECONDS and told(groups, 0.0).spread <= STEADY


def told(groups: list[tuple[int, int, float]], mean_tokens: float) -> Steps:
    """A step that computes `mean_tokens` (0 as many as these did): so much for itself, so much for each token.

    `groups` hold steps, tokens and seconds. Both shares are fitted by least squares and cannot be negative.
    """
    counts, tokens, seconds = (np.array(column, dtype=np.float64) for column in zip(*groups, strict=True))
    count = counts.sum()
    table = np.stack([counts, tokens], axis=1)
    a_step, a_token = np.linalg.lstsq(table, seconds, rcond=None)[0]
    if a_token < 0:
        a_step, a_token = seconds.sum() / count, 0.0
    elif a_step < 0:
        a_step, a_token = 0.0, seconds.sum() / tokens.sum()
    step = a_step + a_token * (mean_tokens or tokens.sum() / count)
    off = seconds - table @ np.array([a_step, a_token])
    spread = 2 * float(np.std(off)) * np.sqrt(len(groups)) / seconds.sum() if len(groups) > 1 else 0.2
    return Steps(int(count), float(step), float(spread))
