"""Owns the evaluation of a trial: a few rows, from which follows how long all take."""

import time
from dataclasses import dataclass

import numpy as np

from backend.data.batches import padded_length
from backend.data.features import Features
from backend.data.rows import Rows
from backend.preflight.session import Session
from backend.preflight.timing import Compiled

ENOUGH_SECONDS, MAX_SECONDS = 1.0, 12.0
GROWTH = 4
"""How many times as many rows are tried next, which cannot take more than so many times as long."""


@dataclass(frozen=True)
class Evaluation:
    """What a row of an evaluation takes."""

    row_seconds: float
    programs: int
    """How many an engine needs that compiles each shape."""
    first_seconds: float
    """What the first evaluation took beyond its rows."""


def evaluated(session: Session, rows: Rows, features: Features, batch_size: int, compiled: Compiled) -> Evaluation:
    """Evaluate some of the rows, at first so few that it is known how many more can be waited for."""
    batch = min(batch_size, len(rows))
    # Where shapes are compiled another number of rows would be compiled for nothing.
    first = batch if session.engine.constant_rows else 1
    begun, _ = _timed(session, rows, first, batch_size, compiled)  # the first call does more than compute
    taken, widths = list[tuple[int, float]](), list[int]()
    count = first
    while not taken or not _is_enough(taken, len(rows), batch, grows=not session.engine.constant_rows):
        count = min(len(rows), count * GROWTH) if taken else first
        seconds, widths = _timed(session, rows, count, batch_size, compiled)
        taken.append((count, seconds))
    whole = _widths(session, features, batch_size)
    each = row_seconds(taken, batch)
    if session.task.evaluates_by != "generate":  # long rows go together, so that all are padded less than a few are
        each *= (sum(whole) / len(rows)) / (sum(widths) / count)
    return Evaluation(each, len(set(whole)), max(0.0, begun - taken[0][1]))


def _is_enough(taken: list[tuple[int, float]], rows: int, batch: int, *, grows: bool) -> bool:
    count, seconds = taken[-1]
    if not grows or count >= rows or seconds * GROWTH > MAX_SECONDS:
        return True
    return count >= batch and seconds >= ENOUGH_SECONDS


def row_seconds(taken: list[tuple[int, float]], batch: int) -> float:
    """Seconds of a row, from (rows, seconds) of ever more of them at once.

    Where a whole batch was too long to wait for, it takes as much for itself, and for each row, as the last two did: what
    a model writes, it writes for all rows of a batch together.
    """
    count, seconds = taken[-1]
    if count >= batch or len(taken) < 2:
        return seconds / count
    before, sooner = taken[-2]
    a_row = min(max(0.0, (seconds - sooner) / (count - before)), seconds / count)
    return (seconds + a_row * (batch - count)) / batch


def _timed(session: Session, rows: Rows, count: int, batch_size: int, compiled: Compiled) -> tuple[float, list[int]]:
    """Seconds without compiling, and the tokens of each batch."""
    chosen = np.unique(np.linspace(0, len(rows) - 1, count).astype(np.int64))
    some = rows.take(chosen, f"{rows.fingerprint}-{count}")
    features = session.sampled_features(some)
    started, before = time.perf_counter(), compiled.seconds
    session.score(some, features, batch_size)
    return time.perf_counter() - started - (compiled.seconds - before), _widths(session, features, batch_size)


def _widths(session: Session, features: Features, batch_size: int) -> list[int]:
    """Tokens that each batch computes, the longest first, as evaluations have them."""
    lengths = np.sort(features.lengths)[::-1]
    limit, multiple = session.facts["max_length"], session.length_multiple
    batches = (lengths[start : start + batch_size] for start in range(0, len(lengths), batch_size))
    return [len(one) * padded_length(int(one.max()), multiple, limit) for one in batches]
