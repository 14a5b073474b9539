"""Trains a run from its spec to its predictions: the loop, once, for every engine and every task."""

import gc
import math
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import NoReturn

import numpy as np

from backend import registry
from backend.contract.errors import RunFailed, panics_as_errors
from backend.contract.messages import message
from backend.contract.run.events import (
    EvaluationFinished,
    RequestAnswered,
    RunFinished,
    StepFinished,
)
from backend.contract.run.folder import ENDS, RunFolder, exit_code
from backend.contract.spec import RunSpec
from backend.engines.engine import Batch
from backend.engines.hosts import Position
from backend.hardware.devices import count_processes
from backend.preflight.engine_choice import engine_of_hosts
from backend.preflight.engine_choice import position as position_of
from backend.preflight.pandas_left_out import leave_pandas_out
from backend.preflight.resolve import read_run
from backend.training import artifacts, measured_run, samples
from backend.training.background import Interrupted, Prefetcher
from backend.training.chance import find_retry
from backend.training.checkpoints import CheckpointWriter
from backend.training.event_log import EventLog
from backend.training.failures.failure import FailureContext, failure_event, unknown_failure_event
from backend.training.hosts import Hosts
from backend.training.pending_metrics import NonFiniteLossError, PendingSteps
from backend.training.requests import Requests
from backend.training.schedule import learning_rate
from backend.training.setup import RunSetup, set_up_run
from backend.training.stages import StageReporter

WORTH_REMEMBERING_SECONDS = 1.0
"""A run's speed is kept for later plans if it computed at least this long."""
INTERRUPTION_MESSAGE = message(
    "the run was stopped from outside, for example by a logout, a shutdown or a scheduler's time limit"
)


def run(
    folder: RunFolder, spec: RunSpec | None = None, *, is_trial: bool = False, position: Position | None = None
) -> int:
    """Train the run in `folder`, from its last checkpoint if any. Returns the exit code; events tell the rest.

    `spec` is the run's own, if it has been read already; `position` is which of its hosts this one is, if a launcher says so.
    A trial trains some of the rows until it is asked to stop, and saves how long each part of it took.
    """
    registry.all_of("failure")  # loaded while there is memory and a disk to load them from
    log, hosts, whole = EventLog(folder.events), Hosts(), folder.main_folder()
    requests = Requests(whole, hosts)
    attempt = TrainingAttempt(whole, log, requests, hosts, spec, is_trial=is_trial, position=position)
    try:
        try:
            with panics_as_errors():
                attempt.ended = attempt.run()
            log.write(attempt.ended)
        except Exception as error:
            traceback.print_exc()  # into process.log, for debugging
            attempt.write_failure(hosts.real_cause(requests.explain(error), whole))
    finally:  # a full disk may keep the last event from being written; the others must hear of the end all the same
        hosts.leave(attempt.ended.state, attempt.ended.message)
        log.close()
    if attempt.ended.state == "failed" and hosts.count > 1:
        end_at_once()  # what a framework does at the exit of a process waits for minutes for a host that is gone
    return exit_code(attempt.ended.state)


def end_at_once(code: int = 1) -> NoReturn:
    """Exit this process, as failed unless told otherwise, with all of its threads, whatever they are waiting for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """While frameworks load, Python would look for garbage in all of their objects again and again (a seventh of the time)."""
    usual = gc.get_threshold()
    gc.set_threshold(20_000, 10, 100)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class TrainingAttempt:
    """One attempt at a run. `step` is the last optimizer step, `ended` how it ended, if it has."""

    def __init__(
        self, folder: RunFolder, log: EventLog, requests: Requests, hosts: Hosts, spec: RunSpec | None = None,
        *, is_trial: bool = False, position: Position | None = None,
    ) -> None:  # fmt: skip
        self.step = 0
        self.ended = RunFinished(time=time.time(), state="failed", step=0)
        self.folder, self.log, self.requests, self.hosts = folder, log, requests, hosts
        self.is_trial, self._spec, self._position = is_trial, spec, position
        self.stages = StageReporter(log, requests.interrupt, requests.interrupt_compiling)
        self.failure_context = FailureContext(folder)

    def run(self) -> RunFinished:
        """Set up the run, train it, save its model and predictions; returns the final event."""
        try:
            spec = self._spec or read_run(self.folder)
            leave_pandas_out(spec.data.source)
            self.failure_context = FailureContext(self.folder, spec)
            self._meet_hosts(spec)
            with _collecting_rarely():
                opened = set_up_run(self.folder, spec, self.log, self.stages, self.hosts, is_trial=self.is_trial)
            self.hosts.go_together()
        except Interrupted as interruption:
            return self._end_on_request(interruption.request)
        self.step = opened.from_step
        training = TrainingLoop(self, opened)
        try:
            request = training.train()
        except Interrupted as interruption:
            request = interruption.request
        except RunFailed:
            with suppress(OSError):  # people must hear of what ended the run; a last checkpoint is more than it owes
                training.finish_saving()
            raise
        if request is not None:
            return (self._end_trial if self.is_trial else self._end_early)(request, training, opened)
        try:
            return self._finish(training, opened)
        except Interrupted as interruption:  # training is complete; what is left is made again at a resume
            return self._end_on_request(interruption.request)

    def write_failure(self, error: Exception) -> None:
        """Write the final event for an exception, even if finding its cause raises too, as without memory."""
        step = error.step if isinstance(error, NonFiniteLossError) else self.step
        self.ended = unknown_failure_event(error, step, self.failure_context)
        try:
            self.ended = failure_event(error, step, self.failure_context)
        finally:
            self.log.write(self.ended)

    def _meet_hosts(self, spec: RunSpec) -> None:
        here = position_of(spec) if self._position is None else self._position
        if here.count > 1:
            self.stages.start("meeting hosts")
            self.hosts.join(here, engine_of_hosts(spec), self.folder, self.requests.interrupt)

    def _end_on_request(self, request: str) -> RunFinished:
        self.answer(request)
        return self._end_as(request)

    def _end_early(self, request: str, training: "TrainingLoop", opened: RunSetup) -> RunFinished:
        """A checkpoint saves the last weights; a stop also saves them as `model/`."""
        self.answer(request)
        self.stages.stop_interrupting()
        self.stages.start("saving")
        if self.step > 0:
            training.checkpoint()
            training.finish_saving()
        if request == "stop":
            artifacts.export(self.folder, opened, self.log, self.step)
        return self._end_as(request, training.best_step())

    def _end_trial(self, request: str, training: "TrainingLoop", opened: RunSetup) -> RunFinished:
        """Do once what a run does besides training, each by itself."""
        self.answer(request)
        training.checkpoint()
        training.finish_saving()
        measured_run.evaluate_some(opened, self.log, self.stages, self.step)
        self.stages.start("saving")
        artifacts.export(self.folder, opened, self.log, self.step)
        training.remember_parts()
        return self._end_as(request)

    def _end_as(self, request: str, best_step: int | None = None) -> RunFinished:
        message = INTERRUPTION_MESSAGE if request == "interrupt" else ""
        return RunFinished(time=time.time(), state=ENDS[request], step=self.step, message=message, best_step=best_step)

    def _finish(self, training: "TrainingLoop", opened: RunSetup) -> RunFinished:
        """Save the best (else last) weights as `model/`, predict the validation data and score the test data once."""
        best = training.best_step()
        if best is not None and best != self.step:
            training.checkpoint()
            training.finish_saving()
            self.hosts.agree(lambda: None)  # the first host has put it in place
            opened.session.engine.restore(self.folder.checkpoint(best))
        opened = artifacts.tune(opened, self.stages)
        self.stages.start("saving")
        artifacts.export(self.folder, opened, self.log, self.step if best is None else best)
        metrics: dict[str, dict[str, float]] = {}
        for split in ("validation", "test"):
            if split in opened.rows:
                self.stages.start("predicting", len(opened.features[split]), "rows")
                metrics[split] = artifacts.predict(self.folder, opened, self.log, split, self.stages)
        training.remember_parts()
        return RunFinished(
            time=time.time(),
            state="finished",
            step=self.step,
            best_step=best,
            mend=find_retry(opened, metrics.get("validation", {})),
            metrics=dict(metrics.get("validation", metrics.get("test", {}))),
        )

    def answer(self, request: str) -> None:
        """Report that a request was seen and delete it."""
        self.log.write(RequestAnswered(time=time.time(), request=request, step=self.step))
        self.requests.close(request)


class TrainingLoop:
    """The steps of one attempt, with their evaluations and checkpoints."""

    def __init__(self, attempt: TrainingAttempt, opened: RunSetup) -> None:
        self._attempt, self._opened, self._log = attempt, opened, attempt.log
        self._session, self._order, self._best = opened.session, opened.order, opened.best
        self._spec = opened.session.spec
        self._total = opened.plan.total_steps
        self._saving = CheckpointWriter(
            attempt.folder,
            attempt.log,
            opened.session.engine,
            opened.checkpoints,
            self._spec.training.keep_checkpoints,
            opened.note if attempt.hosts.is_first else None,
        )
        fraction = attempt.folder.pause_fraction()
        self._pause_step = self._total if fraction is None else math.ceil(fraction * self._total)
        self._has_warned = False  # that evaluations lack the metric that decides
        self._pending = PendingSteps(
            opened.session.engine,
            attempt.log,
            attempt.stages.clock,
            attempt.hosts,
            1 if opened.is_trial else count_processes(self._spec.hardware),
        )
        self._cpu_use = measured_run.CpuUse()
        # An accelerator computes while this process makes the next batch. On a CPU a thread would take cores from the step.
        on_accelerator = self._session.engine.device_memory_mb() is not None
        self._batches = Prefetcher(self._make_batches, self._total, is_ahead=on_accelerator)

    def train(self) -> str | None:
        """Train all remaining steps; returns the request that ended it early, if any."""
        if self._opened.from_step:  # fewer may be kept by now, because the disk was full
            self._saving.remove_older(self._opened.from_step, self.best_step())
        if self._owes_evaluation():
            self._evaluate()
        if self._pauses_here():  # an attempt that was killed after this evaluation could not say so
            return "pause"
        self._attempt.stages.start("training", self._total, "steps")
        if self._opened.is_trial:
            self._train_longest()
        self._pending.resume_clock()
        with closing(self._batches):
            request = self._train_steps()
        if request is not None:
            return request
        self._pending.read()
        self.finish_saving()
        return None

    def _train_steps(self) -> str | None:
        while self._attempt.step < self._total and not self._best.should_stop():
            self._train_step()
            self._saving.report_finished()
            request = self._attempt.requests.pending()
            if request in ENDS:
                return request
            if self._is_due(self._spec.evaluation.every):
                self._evaluate()
            if self._pauses_here():
                return "pause"
            if request == "checkpoint" or self._is_due(self._spec.training.checkpoint_every):
                self.checkpoint()
            if request == "checkpoint":
                self.finish_saving()
                self._attempt.answer(request)
        return None

    def _train_step(self) -> None:
        step = self._attempt.step + 1
        rate = 0.0 if self._opened.is_trial else learning_rate(step, self._total, self._spec.training)
        indices, micro_batches = self._batches.take(step)
        result = self._session.engine.train_step(micro_batches, step, rate)
        if result.warning:
            self._attempt.stages.warn("uncompiled", result.warning)
        self._attempt.step = step
        event = StepFinished(
            time=time.time(),
            step=step,
            epoch=self._order.epoch(step),
            loss=None,
            learning_rate=rate,
            gradient_norm=None,
            rows=len(indices),
            tokens=int(self._opened.features["train"].lengths[indices].sum()),
            seconds=0.0,
        )
        self._pending.add(event, result)

    def _make_batches(self, step: int) -> tuple[np.ndarray, list[Batch]]:
        """The features of a step, and its micro-batches."""
        indices, epoch = self._order.indices(step), (step - 1) // self._order.steps_per_epoch
        features, rows = self._opened.features["train"], self._opened.rows_per_pass
        return indices, self._session.micro_batches(features, indices, rows, epoch)

    def _train_longest(self) -> None:
        """Take the step with the most memory for a pass, and leave out its time: memory must be enough for every step."""
        indices = measured_run.longest_batch(self._opened)
        micro_batches = self._session.micro_batches(
            self._opened.features["train"], indices, self._opened.rows_per_pass, 0
        )
        self._session.engine.read([self._session.engine.train_step(micro_batches, 1, 0.0)])

    def _owes_evaluation(self) -> bool:
        """Whether to evaluate first: before step 1 if requested, or if the last attempt skipped an evaluation."""
        if self._attempt.step == 0:
            return self._spec.evaluation.at_start
        return self._is_due(self._spec.evaluation.every) and not self._opened.is_evaluated

    def _pauses_here(self) -> bool:
        """Whether the run's search compares it here with others: at the first evaluation after a fraction of its steps."""
        return self._pause_step <= self._attempt.step < self._total and self._is_due(self._spec.evaluation.every)

    def _is_due(self, often: str | int) -> bool:
        if often == "never":
            return False
        every = self._order.steps_per_epoch if often == "epoch" else int(often)
        return self._attempt.step % every == 0 or self._attempt.step == self._total

    def _evaluate(self) -> None:
        """Evaluate on the validation data (and on training rows, if requested); save a checkpoint of the best."""
        if not self._opened.evaluated:
            return
        self._pending.read()
        is_best = [self._evaluate_split(split) for split in self._opened.evaluated]
        if any(is_best) and self._best.keeps_checkpoint:
            self.checkpoint()
        if self._attempt.step < self._total:
            self._attempt.stages.start("training", self._total, "steps")
        self._pending.resume_clock()

    def _evaluate_split(self, split: str) -> bool:
        """Evaluate one split; returns whether the validation result is the best so far."""
        rows, features = self._opened.evaluated[split]
        step, stages = self._attempt.step, self._attempt.stages
        stages.start("evaluating", len(features), "rows")
        started = stages.clock()
        scored = self._session.score(rows, features, self._opened.evaluation_batch_size, stages.report)
        seconds = stages.clock() - started
        metrics = self._attempt.hosts.agree(lambda: dict(scored.metrics))
        is_best = split == "validation" and self._best.apply(dict(metrics), step)
        if split == "validation" and self._best.lacks(metrics) and not self._has_warned:
            self._has_warned = True
            stages.warn("best_metric", _missing_metric_message(self._best.metric, list(metrics)))
        if split == "validation" and len(rows):
            seed, columns = self._spec.training.seed, self._session.columns
            numbers = self._opened.numbers(split)
            self._log.append(samples.choose_samples(step, rows, scored.predictions, columns, seed, numbers))
        self._log.write(
            EvaluationFinished(
                time=time.time(),
                step=step,
                epoch=self._order.epoch(step),
                metrics=dict(metrics),
                rows=len(rows),
                seconds=seconds,
                split=split,
                is_best=is_best,
            )
        )
        return is_best

    def checkpoint(self) -> None:
        """Save this step, in the background if possible. Reads pending losses first: a bad step is never saved."""
        if self._saving.has(self._attempt.step):
            return
        self._pending.read()
        self._saving.start_save(self._attempt.step, self.best_step())
        self._pending.resume_clock()

    def finish_saving(self) -> None:
        """Wait until the last checkpoint is complete. Raises OSError (disk full)."""
        self._saving.finish()

    def best_step(self) -> int | None:
        """The step of the best checkpoint, if one is kept."""
        return self._best.step if self._best.keeps_checkpoint else None

    def remember_parts(self) -> None:
        """Store how long the parts of this attempt took, for planning similar runs."""
        steps, seconds = self._pending.steps, self._pending.seconds
        is_worth_it = self._opened.is_trial or seconds >= WORTH_REMEMBERING_SECONDS
        if steps and self._attempt.hosts.is_first and is_worth_it:
            measured_run.remember(self._attempt.folder, self._opened, steps, seconds, self._cpu_use.of_others())


def _missing_metric_message(metric: str, there: list[str]) -> str:
    return message(
        "evaluation.best_metric: evaluations do not report {metric}, so it cannot select the best checkpoint; they "
        "report {there}",
        metric=repr(metric),
        there=", ".join(there) or "none",
    )
