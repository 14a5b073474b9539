"""Tries out a training run: its real model, batches, optimizer and device for a few steps, to measure its time."""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from backend import registry
from backend.contract.errors import InputError
from backend.contract.run.cost import Measurement
from backend.contract.run.folder import RunFolder
from backend.contract.spec import RunSpec
from backend.data.batches import padded_length
from backend.data.features import Features
from backend.data.rows import Rows
from backend.engines.engine import StepResult
from backend.hardware import claims, devices, planner
from backend.models.location import ModelLocation
from backend.preflight import engine_choice, measurements
from backend.preflight.cost import model_to_plan
from backend.preflight.datasets import Splits, ignore_progress, load_splits
from backend.preflight.measurements import peak_mb
from backend.preflight.sample_lengths import sample_rows
from backend.preflight.session import FeatureSession, open_session
from backend.preflight.steps import evaluation_rows, training_order
from backend.preflight.timing import CompileTimer
from backend.training.checkpoints import Checkpoints
from backend.training.setup import fitting_rows, loading

LEAST_STEPS, LEAST_SECONDS, MAX_SECONDS = 3, 2.0, 15.0
"""Of the steps that are timed."""
STEADY = 0.05
"""A mean that is known this precisely, as a part of it, needs no more steps."""
COMPILING_SECONDS = 20.0
"""After this long no further shape is compiled; the steps of the others are timed."""
READ_SECONDS = 0.5
"""As in a run, numbers are read from the device now and then."""
SAMPLED_STEPS = 400
"""Steps of an epoch whose lengths are computed."""
ENOUGH_ROW_SECONDS, MAX_ROW_SECONDS = 1.0, 12.0
GROWTH = 4
"""An evaluation of this many times more rows comes next, which takes at most this many times longer."""
ReportPart = Callable[[str, float, float], None]
"""Told the stage (`backend.contract.run.cost.STAGES`), and how far it is of how much, in seconds."""


@dataclass(frozen=True)
class Trial:
    """A training run ready to take steps, on part of its rows."""

    session: FeatureSession
    model: ModelLocation
    choice: devices.DeviceChoice
    train: Features
    validation: tuple[Rows, Features] | None
    rows_in_pass: int
    evaluation_batch_size: int
    compiled: CompileTimer
    has_weights: bool
    starting: float
    loading: float


@dataclass(frozen=True)
class StepTimes:
    """What the timed steps imply for all steps."""

    count: int
    seconds: float
    """Of a step of average length."""
    spread: float
    """How far that may be off, as a part of it."""


@dataclass(frozen=True)
class _Evaluation:
    """The time per evaluated row."""

    row_seconds: float
    programs: int
    """How many an engine needs that compiles each shape."""
    first_seconds: float
    """What the first evaluation took beyond its rows."""


def refuse_several(spec: RunSpec) -> None:
    """Raises InputError for a training run that one process alone cannot step."""
    if spec.hardware.processes > 1 or engine_choice.position(spec).count > 1:
        raise InputError(
            "training on several processes or hosts cannot be measured with a single process; the first run shows "
            "how long it takes",
            "hardware.processes",
        )


def measure(spec: RunSpec, scratch: Path, begun: float, report: ReportPart) -> Measurement:
    """Measure the training run of `spec`, and save the result; `scratch` is an empty folder for temporary files.

    `begun` is when this process was started (`time.time`). Raises InputError, RunFailed, and what a framework raises
    when out of memory.
    """
    refuse_several(spec)
    process = psutil.Process()
    for count in (process.cpu_percent, psutil.cpu_percent):
        count()  # from here on
    trial = _open_trial(spec, begun, report)
    epoch = _Epoch(trial.session, trial.train, trial.rows_in_pass)
    steps = _measure_steps(trial.session, epoch, lambda seconds: report("training", seconds, MAX_SECONDS))
    report("evaluation", 0, 0)
    evaluation = trial.validation and _evaluate(
        trial.session, *trial.validation, trial.evaluation_batch_size, trial.compiled
    )
    report("checkpoint", 0, 0)
    checkpoint, saving = _time_writing(trial, RunFolder(scratch))
    programs = epoch.programs + (evaluation.programs if evaluation else 0)
    found = Measurement(
        time=time.time(),
        mean_length=float(trial.train.lengths.mean()),
        longest=int(trial.train.lengths.max()),
        steps=steps.count,
        step_seconds=steps.seconds,
        step_spread=steps.spread,
        starting_seconds=trial.starting,
        loading_seconds=trial.loading,
        compile_seconds=trial.compiled.seconds / trial.compiled.programs if trial.compiled.programs else 0.0,
        programs=programs if trial.compiled.programs else 0,
        compiled=trial.compiled.programs,
        evaluation_row_seconds=evaluation.row_seconds if evaluation else None,
        first_evaluation_seconds=evaluation.first_seconds if evaluation else 0.0,
        writes=trial.session.task.evaluates_by == "generate",
        checkpoint_seconds=checkpoint,
        saving_seconds=saving,
        memory_mb=peak_mb(),
        device_memory_mb=trial.session.engine.device_memory_mb(),
        others=max(0.0, psutil.cpu_percent() - process.cpu_percent() / (psutil.cpu_count() or 1)) / 100,
        weights=trial.has_weights,
    )
    choice = trial.choice
    measurements.remember(measurements.key_of(spec, trial.model.folder, choice.words, choice.precision), found)
    return found


def _open_trial(spec: RunSpec, begun: float, report: ReportPart) -> Trial:
    report("starting", 0, 0)
    kind = registry.find("engine", spec.hardware.engine, "hardware.engine")
    if spec.hardware.device != "cpu":
        claims.claim()  # as a run does: a model that only waits makes room
    engine, choice = kind.create(), devices.choose(spec, kind.devices())
    starting = time.time() - begun
    report("data", 0, 0)
    model, planned = model_to_plan(spec, ignore_progress)
    splits = load_splits(planned, model.folder, ignore_progress)
    session = open_session(planned, splits, model, engine)
    train = session.sampled_features(sample_rows(splits.rows["train"]), to_train=True)
    validation = _read_validation(session, splits)
    report("model", 0, 0)
    started, compiled = time.perf_counter(), CompileTimer()
    split = planner.split(planned, model.folder, len(choice.names))
    rows = fitting_rows(session, model, choice, train, split)
    features = {"train": train, **({"validation": validation[1]} if validation else {})}
    engine.load(loading(session, planned, model, choice, features, compiled))
    return Trial(
        session=session,
        model=model,
        choice=choice,
        train=train,
        validation=validation,
        rows_in_pass=rows * split.replicas,
        evaluation_batch_size=evaluation_rows(planned.evaluation.batch_size, rows, split.replicas),
        compiled=compiled,
        has_weights=planned.model.initialise == spec.model.initialise,
        starting=starting,
        loading=time.perf_counter() - started,
    )


def _read_validation(session: FeatureSession, splits: Splits) -> tuple[Rows, Features] | None:
    there = next((splits.rows[split] for split in ("validation", "test") if split in splits.rows), None)
    if there is None:
        return None
    rows = sample_rows(there)
    return rows, session.sampled_features(rows)


class _Epoch:
    """The steps of the first epoch, grouped by the shapes of their batches."""

    def __init__(self, session: FeatureSession, features: Features, rows_in_pass: int) -> None:
        self._session, self._features, self._rows = session, features, rows_in_pass
        self._order = training_order(session.spec, features)
        count = self._order.steps_per_epoch
        numbers = np.unique(np.linspace(1, count, min(count, SAMPLED_STEPS)).astype(np.int64)).tolist()
        self.shapes = {step: self._shape(step) for step in numbers}
        """(rows, length) of every pass of a step; equal for steps that one program computes."""

    def _shape(self, step: int) -> tuple[tuple[int, int], ...]:
        lengths = self._features.lengths[self._order.indices(step)]
        limit, multiple = self._session.facts["max_length"], self._session.length_multiple
        passes = (lengths[start : start + self._rows] for start in range(0, len(lengths), self._rows))
        return tuple((len(one), padded_length(int(one.max()), multiple, limit)) for one in passes)

    def tokens(self, step: int) -> int:
        """Tokens computed per step, including padding."""
        return sum(rows * length for rows, length in self.shapes[step])

    @property
    def mean_tokens(self) -> float:
        """Tokens of an average step."""
        return float(np.mean([self.tokens(step) for step in self.shapes]))

    @property
    def programs(self) -> int:
        """How many programs an engine that compiles per shape needs."""
        return len(set(self.shapes.values()))

    def shuffled(self) -> list[int]:
        """The longest step, then all in random but reproducible order."""
        longest = max(self.shapes, key=self.tokens)
        return [longest, *np.random.default_rng(0).permutation(list(self.shapes)).tolist()]

    def take(self, step: int, number: int) -> StepResult:
        """Run an optimizer step on this step's batch; at a learning rate of 0 nothing is learned."""
        batches = self._session.micro_batches(self._features, self._order.indices(step), self._rows, 0)
        return self._session.engine.train_step(batches, number, 0.0)


def _measure_steps(session: FeatureSession, epoch: _Epoch, report: Callable[[float], None]) -> StepTimes:
    """Time steps of all lengths until their mean is stable, after a first one that allocates and compiles."""
    report(0.0)
    order, numbers = epoch.shuffled(), itertools.count(1)
    ready, started = set[object](), time.perf_counter()
    for step in order:
        if epoch.shapes[step] in ready or (ready and time.perf_counter() - started >= COMPILING_SECONDS):
            continue
        session.engine.read([epoch.take(step, next(numbers))])
        ready.add(epoch.shapes[step])
        if not session.engine.constant_rows:  # nothing is compiled by shape
            break
    compiled = [step for step in order if epoch.shapes[step] in ready or not session.engine.constant_rows]
    steps, groups = itertools.cycle(compiled), list[tuple[int, int, float]]()
    while not _is_steady(groups):
        groups.append(_time_group(session, epoch, steps, numbers))
        report(sum(seconds for _, _, seconds in groups))
    return step_times(groups, epoch.mean_tokens)


def _time_group(
    session: FeatureSession, epoch: _Epoch, steps: Iterator[int], numbers: Iterator[int]
) -> tuple[int, int, float]:
    """Steps, their tokens and seconds, until the device is read."""
    started, taken, results = time.perf_counter(), list[int](), list[StepResult]()
    while not taken or time.perf_counter() - started < READ_SECONDS:
        taken.append(next(steps))
        results.append(epoch.take(taken[-1], next(numbers)))
    session.engine.read(results)
    return len(taken), sum(map(epoch.tokens, taken)), time.perf_counter() - started


def _is_steady(groups: list[tuple[int, int, float]]) -> bool:
    count, seconds = sum(group[0] for group in groups), sum(group[2] for group in groups)
    if seconds >= MAX_SECONDS:
        return True
    return count >= LEAST_STEPS and seconds >= LEAST_SECONDS and step_times(groups, 0.0).spread <= STEADY


def step_times(groups: list[tuple[int, int, float]], mean_tokens: float) -> StepTimes:
    """The time of a step with `mean_tokens`, from groups of steps, tokens and seconds; proportional to tokens."""
    counts, tokens, seconds = (np.array(column, dtype=np.float64) for column in zip(*groups, strict=True))
    rates = seconds / tokens
    spread = 2 * float(rates.std()) / np.sqrt(len(rates)) / float(rates.mean()) if len(rates) > 1 else 0.2
    return StepTimes(int(counts.sum()), float(seconds.sum() / tokens.sum() * mean_tokens), float(spread))


def _evaluate(
    session: FeatureSession, rows: Rows, features: Features, batch_size: int, compiled: CompileTimer
) -> _Evaluation:
    """Evaluate some rows, starting with few to find out how many more there is time for."""
    batch = min(batch_size, len(rows))
    # Where shapes are compiled another number of rows would be compiled for nothing.
    first = batch if session.engine.constant_rows else 1
    begun, _ = _time_evaluation(session, rows, first, batch_size, compiled)  # the first call does more than compute
    taken, widths = list[tuple[int, float]](), list[int]()
    count = first
    while not taken or not _is_enough(taken, len(rows), batch, grows=not session.engine.constant_rows):
        count = min(len(rows), count * GROWTH) if taken else first
        seconds, widths = _time_evaluation(session, rows, count, batch_size, compiled)
        taken.append((count, seconds))
    whole = _widths(session, features, batch_size)
    each = row_seconds(taken, batch)
    if session.task.evaluates_by != "generate":  # long rows go together, so that all are padded less than a few are
        each *= (sum(whole) / len(rows)) / (sum(widths) / count)
    return _Evaluation(each, len(set(whole)), max(0.0, begun - taken[0][1]))


def _is_enough(taken: list[tuple[int, float]], rows: int, batch: int, *, grows: bool) -> bool:
    count, seconds = taken[-1]
    if not grows or count >= rows or seconds * GROWTH > MAX_ROW_SECONDS:
        return True
    return count >= batch and seconds >= ENOUGH_ROW_SECONDS


def row_seconds(taken: list[tuple[int, float]], batch: int) -> float:
    """Seconds per row, from (rows, seconds) of increasingly many rows at once.

    If a whole batch took too long to measure, its fixed time and time per row are those of the last two: a
    model generates for all rows of a batch together.
    """
    count, seconds = taken[-1]
    if count >= batch or len(taken) < 2:
        return seconds / count
    before, sooner = taken[-2]
    a_row = min(max(0.0, (seconds - sooner) / (count - before)), seconds / count)
    return (seconds + a_row * (batch - count)) / batch


def _time_evaluation(
    session: FeatureSession, rows: Rows, count: int, batch_size: int, compiled: CompileTimer
) -> tuple[float, list[int]]:
    """Seconds without compilation, and the tokens of each batch."""
    chosen = np.unique(np.linspace(0, len(rows) - 1, count).astype(np.int64))
    some = rows.take(chosen, f"{rows.fingerprint}-{count}")
    features = session.sampled_features(some)
    started, before = time.perf_counter(), compiled.seconds
    session.score(some, features, batch_size)
    return time.perf_counter() - started - (compiled.seconds - before), _widths(session, features, batch_size)


def _widths(session: FeatureSession, features: Features, batch_size: int) -> list[int]:
    """Tokens computed per batch, longest first, as in evaluations."""
    lengths = np.sort(features.lengths)[::-1]
    limit, multiple = session.facts["max_length"], session.length_multiple
    batches = (lengths[start : start + batch_size] for start in range(0, len(lengths), batch_size))
    return [len(one) * padded_length(int(one.max()), multiple, limit) for one in batches]


def _time_writing(trial: Trial, run: RunFolder) -> tuple[float, float]:
    """Seconds for which saving a checkpoint blocks training, and for saving the model. Raises OSError (disk full)."""
    engine = trial.session.engine
    started = time.perf_counter()
    begun = Checkpoints(run, engine=trial.session.spec.hardware.engine).start_save(1, engine.save)
    waited = time.perf_counter() - started
    begun.result()
    run.model.mkdir()
    started = time.perf_counter()
    engine.export(run.model)
    return waited, time.perf_counter() - started
