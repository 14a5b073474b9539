"""Tries a training out: its real model, batches, optimizer and device for a few steps and rows, so that its time is known."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from backend.hardware import claims, devices, planner
from backend.models.location import ModelLocation
from backend.preflight import engine_choice, measurements
from backend.preflight.cost import model_to_plan, sampled
from backend.preflight.datasets import Splits, quiet, read_material
from backend.preflight.measurements import peak_mb
from backend.preflight.session import FeatureSession, open_session
from backend.preflight.steps import evaluation_rows
from backend.preflight.timing import CompileTimer
from backend.training import timing_trial_steps
from backend.training.checkpoints import Checkpoints
from backend.training.setup import fitting_rows, loading
from backend.training.timing_trial_steps import Lengths

ENOUGH_SECONDS, MAX_SECONDS = 1.0, 12.0
GROWTH = 4
"""How many times as many rows are tried next, which cannot take more than so many times as long."""
Tell = Callable[[str, float, float], None]
"""Told the stage (`backend.contract.run.cost.STAGES`), and how far it is of how much, in seconds."""


@dataclass(frozen=True)
class Trial:
    """A training that is ready to take steps, on a part of its rows."""

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
class _Evaluation:
    """What a row of an evaluation takes."""

    row_seconds: float
    programs: int
    """How many an engine needs that compiles each shape."""
    first_seconds: float
    """What the first evaluation took beyond its rows."""


def refuse_several(spec: RunSpec) -> None:
    """Raises InputError for a training that one process alone cannot take a step of."""
    if spec.hardware.processes > 1 or engine_choice.position(spec).count > 1:
        raise InputError(
            "a training by several processes or computers cannot be measured by one; its first run tells its time",
            "hardware.processes",
        )


def measure(spec: RunSpec, scratch: Path, begun: float, tell: Tell) -> Measurement:
    """Measure the training of `spec`, and keep what was found; `scratch` is an empty folder for what must be written.

    `begun` is when this process was started (`time.time`). Raises InputError, RunFailed, and what a framework raises
    where the memory is not enough.
    """
    refuse_several(spec)
    processor = _Processor()
    trial = _open_trial(spec, begun, tell)
    lengths = Lengths(trial.session, trial.train, trial.rows_in_pass)
    steps = timing_trial_steps.measure_steps(
        trial.session, lengths, trial.compiled, lambda done, most: tell("training", done, most)
    )
    tell("evaluation", 0, 0)
    evaluation = trial.validation and _evaluate(
        trial.session, *trial.validation, trial.evaluation_batch_size, trial.compiled
    )
    tell("checkpoint", 0, 0)
    checkpoint, saving = _time_writing(trial, RunFolder(scratch))
    programs = lengths.programs + (evaluation.programs if evaluation else 0)
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
        others=processor.others(),
        weights=trial.has_weights,
    )
    choice = trial.choice
    measurements.remember(measurements.key_of(spec, trial.model.folder, choice.words, choice.precision), found)
    return found


def _open_trial(spec: RunSpec, begun: float, tell: Tell) -> Trial:
    tell("starting", 0, 0)
    kind = registry.find("engine", spec.hardware.engine, "hardware.engine")
    if spec.hardware.device != "cpu":
        claims.claim()  # as a run does: a model that only waits makes room
    engine, choice = kind.create(), devices.choose(spec, kind.devices())
    starting = time.time() - begun
    tell("data", 0, 0)
    model, planned = model_to_plan(spec, quiet)
    material = read_material(planned, model.folder, quiet)
    session = open_session(planned, material, model, engine)
    train = session.sampled_features(sampled(material.rows["train"]), to_train=True)
    validation = _read_validation(session, material)
    tell("model", 0, 0)
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


def _read_validation(session: FeatureSession, material: Splits) -> tuple[Rows, Features] | None:
    there = next((material.rows[split] for split in ("validation", "test") if split in material.rows), None)
    if there is None:
        return None
    rows = sampled(there)
    return rows, session.sampled_features(rows)


def _evaluate(
    session: FeatureSession, rows: Rows, features: Features, batch_size: int, compiled: CompileTimer
) -> _Evaluation:
    """Evaluate some of the rows, at first so few that it is known how many more can be waited for."""
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


def _time_evaluation(
    session: FeatureSession, rows: Rows, count: int, batch_size: int, compiled: CompileTimer
) -> tuple[float, list[int]]:
    """Seconds without compiling, and the tokens of each batch."""
    chosen = np.unique(np.linspace(0, len(rows) - 1, count).astype(np.int64))
    some = rows.take(chosen, f"{rows.fingerprint}-{count}")
    features = session.sampled_features(some)
    started, before = time.perf_counter(), compiled.seconds
    session.score(some, features, batch_size)
    return time.perf_counter() - started - (compiled.seconds - before), _widths(session, features, batch_size)


def _widths(session: FeatureSession, features: Features, batch_size: int) -> list[int]:
    """Tokens that each batch computes, the longest first, as evaluations have them."""
    lengths = np.sort(features.lengths)[::-1]
    limit, multiple = session.facts["max_length"], session.length_multiple
    batches = (lengths[start : start + batch_size] for start in range(0, len(lengths), batch_size))
    return [len(one) * padded_length(int(one.max()), multiple, limit) for one in batches]


def _time_writing(trial: Trial, run: RunFolder) -> tuple[float, float]:
    """Seconds for which a checkpoint keeps training waiting, and those of the model. Raises OSError (disk full)."""
    engine = trial.session.engine
    started = time.perf_counter()
    begun = Checkpoints(run, engine=trial.session.spec.hardware.engine).begin(1, engine.save)
    waited = time.perf_counter() - started
    begun.result()
    run.model.mkdir()
    started = time.perf_counter()
    engine.export(run.model)
    return waited, time.perf_counter() - started


class _Processor:
    """Watches how busy others keep the processor from now on."""

    def __init__(self) -> None:
        self._own, self._all = psutil.Process(), psutil.cpu_times()
        self._before = self._used()

    def others(self) -> float:
        """The part of the processor that all but this process used."""
        now = psutil.cpu_times()
        whole, idle = sum(now[:8]) - sum(self._all[:8]), _idle(now) - _idle(self._all)
        return max(0.0, (whole - idle - (self._used() - self._before)) / whole) if whole > 0 else 0.0

    def _used(self) -> float:
        used = self._own.cpu_times()
        return used.user + used.system


def _idle(times: Any) -> float:
    return times.idle + getattr(times, "iowait", 0.0)
