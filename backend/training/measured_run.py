"""Turns a run's events into a time measurement for the next similar run, and evaluates some rows for a trial's."""

import time
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import psutil

from backend.contract.run.cost import Measurement
from backend.contract.run.event_summary import landmarks
from backend.contract.run.events import (
    AnyEvent,
    CheckpointSaved,
    EvaluationFinished,
    ModelExported,
    ModelLoaded,
    ProgramCompiled,
    RunResumed,
    RunStarted,
    StageStarted,
)
from backend.contract.run.folder import RunFolder
from backend.data.batches import padded_length
from backend.engines.engine import CompilingEngine
from backend.preflight import measurements
from backend.preflight.measurements import peak_mb
from backend.preflight.resolve import read_run
from backend.preflight.sample_lengths import SAMPLE_ROWS
from backend.training.event_log import EventLog
from backend.training.setup import RunSetup
from backend.training.stages import StageReporter

SAMPLED_STEPS = 100
"""Steps of an epoch whose batches are made to see what shapes they have."""
ENOUGH_ROW_SECONDS, MAX_ROW_SECONDS = 1.0, 12.0
"""An evaluation of at least one batch that takes so long is enough; none should take longer than the second."""
GROWTH = 4
"""Each evaluation has so many times the rows of the one before, and takes at most so many times longer."""


class CpuUse:
    """The share of the CPU that other programs use from here on."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self.of_others()

    def of_others(self) -> float:
        """From 0 to 1, since it was last asked."""
        return share_of_others(psutil.cpu_percent(), self._process.cpu_percent(), psutil.cpu_count() or 1)


def share_of_others(everyone: float, own: float, cores: int) -> float:
    """From 0 to 1, of all cores; `everyone` is in percent of all cores, `own` in percent of one."""
    return max(0.0, everyone - own / cores) / 100


def remember(folder: RunFolder, opened: RunSetup, steps: int, seconds: float, others: float) -> None:
    """Save what the current attempt measured: the `seconds` of its `steps`, and what its events say."""
    session, process = opened.session, folder.process_record()
    found = measure_events(
        landmarks(folder.events),
        process.started if process else None,
        _lengths(opened),
        steps=steps,
        step_seconds=seconds / steps,
        source="measurement" if opened.is_trial else "run",
        writes=opened.is_trial and session.task.evaluates_by == "generate",
        programs=count_programs(opened, cast(CompilingEngine, session.engine)) if session.engine.constant_rows else 0,
        memory_mb=peak_mb(),
        device_memory_mb=session.engine.device_memory_mb(),
        others=others,
        weights=session.spec.model.initialise == read_run(folder).model.initialise,
    )
    key = measurements.key_of(session.spec, opened.model_folder, opened.device, opened.precision)
    measurements.remember(key, found)


def measure_events(
    events: Sequence[AnyEvent], started: float | None, lengths: np.ndarray, programs: int = 0, **known: Any
) -> Measurement:
    """The measurements in the last attempt's events; `started` is its start, `lengths` (features,) its tokens.

    `known` are the fields of the measurement that its events do not tell.
    """
    starts = [number for number, event in enumerate(events) if isinstance(event, RunStarted | RunResumed)]
    events = events[starts[-1] :] if starts else events
    compiled = [event.seconds for event in events if isinstance(event, ProgramCompiled)]
    checkpoints = [event.seconds for event in events if isinstance(event, CheckpointSaved)]
    stages: dict[str, float] = {}
    for event in events:
        if isinstance(event, StageStarted):
            stages.setdefault(event.stage, event.time)
    reading = stages["tokenising"] - stages["loading data"] if {"tokenising", "loading data"} <= stages.keys() else None
    each, first = _evaluation_seconds([event for event in events if isinstance(event, EvaluationFinished)])
    return Measurement(
        time=events[-1].time,
        mean_length=float(lengths.mean()),
        longest=int(lengths.max()),
        starting_seconds=None
        if started is None or reading is None or not starts
        else max(0.0, events[0].time - started + reading),
        loading_seconds=_seconds_between(events, "loading model", ModelLoaded),
        compile_seconds=sum(compiled) / len(compiled) if compiled else 0.0,
        programs=max(programs, len(compiled)),
        compiled=len(compiled),
        evaluation_row_seconds=each,
        first_evaluation_seconds=first,
        checkpoint_seconds=sum(checkpoints) / len(checkpoints) if checkpoints else None,
        saving_seconds=_seconds_between(events, "saving", ModelExported),
        **known,
    )


def _evaluation_seconds(evaluations: Sequence[EvaluationFinished]) -> tuple[float | None, float]:
    """Seconds per row, and what the first evaluation took beyond its rows."""
    timed = evaluations[1:] or evaluations
    rows = sum(event.rows for event in timed)
    if not rows:
        return None, 0.0
    each = sum(event.seconds for event in timed) / rows
    return each, max(0.0, evaluations[0].seconds - each * evaluations[0].rows)


def _seconds_between(events: Sequence[AnyEvent], stage: str, end: type[AnyEvent]) -> float | None:
    """Seconds from the first start of a stage to the first such event after it."""
    started = next((event.time for event in events if isinstance(event, StageStarted) and event.stage == stage), None)
    ended = next((event.time for event in events if isinstance(event, end) and event.time >= (started or 0.0)), None)
    return None if started is None or ended is None else ended - started


def _lengths(opened: RunSetup) -> np.ndarray:
    """The lengths of the same sample of features as a plan uses, so that both find the same longest one."""
    lengths = opened.features["train"].lengths
    return lengths[np.linspace(0, len(lengths) - 1, min(len(lengths), SAMPLE_ROWS)).astype(np.int64)]


def longest_batch(opened: RunSetup) -> np.ndarray:
    """The features of the first epoch's step whose passes need the most memory."""
    lengths, order = opened.features["train"].lengths, opened.order
    batches = (order.indices(step) for step in range(1, order.steps_per_epoch + 1))
    return max(batches, key=lambda indices: min(len(indices), opened.rows_per_pass) * int(lengths[indices].max()))


def count_programs(opened: RunSetup, engine: CompilingEngine) -> int:
    """How many programs the steps of an epoch and an evaluation need: one for each shape."""
    session, order, train = opened.session, opened.order, opened.features["train"]
    steps = np.linspace(1, order.steps_per_epoch, min(order.steps_per_epoch, SAMPLED_STEPS)).astype(np.int64)
    trained = {
        engine.step_shapes(session.micro_batches(train, order.indices(step), opened.rows_per_pass, epoch=0))
        for step in steps.tolist()
    }
    held_out, rows = opened.features.get(opened.held_out), opened.evaluation_batch_size
    longest_first = np.zeros(0, np.int64) if held_out is None else np.sort(held_out.lengths)[::-1]
    evaluated = {
        padded_length(length, session.length_multiple, session.facts["max_length"])
        for length in longest_first[::rows].tolist()
    }
    return len(trained) + len(evaluated)


def evaluate_some(opened: RunSetup, log: EventLog, stages: StageReporter, step: int) -> None:
    """Evaluate very few rows, which loads what evaluations need, and then as many as there is time for.

    Engines that compile each shape evaluate a whole batch: programs for other numbers of rows would be of no use.
    """
    if not opened.held_out:
        return
    stages.start("evaluating")
    rows = len(opened.rows[opened.held_out])
    batch = min(rows, opened.evaluation_batch_size)
    is_compiled = opened.session.engine.constant_rows
    first = batch if is_compiled else 1
    log.write(_evaluate(opened, stages, first, step))
    count: int | None = first
    timed: list[tuple[int, float]] = []
    while count is not None:
        found = _evaluate(opened, stages, count, step)
        timed.append((found.rows, found.seconds))
        count = None if is_compiled else next_count(timed, rows, batch)
    evaluated = max(timed[-1][0], batch)
    seconds = row_seconds(timed, batch) * evaluated
    log.write(EvaluationFinished(time=time.time(), step=step, epoch=0.0, metrics={}, rows=evaluated, seconds=seconds))


def next_count(timed: Sequence[tuple[int, float]], rows: int, batch: int) -> int | None:
    """How many of all `rows` to evaluate next, after the (rows, seconds) so far; None if they tell enough."""
    count, seconds = timed[-1]
    if count >= rows or (count >= batch and seconds >= ENOUGH_ROW_SECONDS):
        return None
    if seconds * GROWTH <= MAX_ROW_SECONDS:
        return min(rows, count * GROWTH)
    # One row alone would not tell what a batch of them takes.
    return min(rows, count * 2) if len(timed) == 1 and count < batch else None


def row_seconds(timed: Sequence[tuple[int, float]], batch: int) -> float:
    """Seconds per row, from the (rows, seconds) of more and more rows.

    If there was no time for a whole batch, its fixed time and its time per row are those of the last two: a model
    generates for all rows of a batch together.
    """
    count, seconds = timed[-1]
    if count >= batch or len(timed) < 2:
        return seconds / count
    fewer, sooner = timed[-2]
    per_row = min(max(0.0, (seconds - sooner) / (count - fewer)), seconds / count)
    return (seconds + per_row * (batch - count)) / batch


def _evaluate(opened: RunSetup, stages: StageReporter, count: int, step: int) -> EvaluationFinished:
    features, session = opened.features[opened.held_out], opened.session
    longest = np.zeros(len(opened.rows[opened.held_out]), np.int64)
    np.maximum.at(longest, features.table["row"].to_numpy(), features.lengths)
    chosen = spread_batches(longest, count, opened.evaluation_batch_size)
    rows = opened.rows[opened.held_out].take(chosen, f"trial-{count}")
    features = session.sampled_features(rows)
    started = stages.clock()
    session.score(rows, features, opened.evaluation_batch_size)
    seconds = stages.clock() - started
    return EvaluationFinished(time=time.time(), step=step, epoch=0.0, metrics={}, rows=len(rows), seconds=seconds)


def spread_batches(lengths: np.ndarray, count: int, batch_size: int) -> np.ndarray:
    """The numbers of about `count` rows: whole batches, each of rows of similar lengths, as evaluations have them."""
    if count >= len(lengths):
        return np.arange(len(lengths))
    order, size = np.argsort(lengths, kind="stable"), min(count, batch_size)
    starts = np.linspace(0, len(order) - size, count // size + 2)[1:-1].astype(np.int64)
    return np.unique(np.concatenate([order[start : start + size] for start in starts]))
