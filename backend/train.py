"""Owns the training of a run from its spec to its predictions: the loop, once, for every engine and every task."""

import math
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from backend.contract.errors import RunFailed
from backend.contract.events import (
    CheckpointRemoved,
    CheckpointSaved,
    EvaluationFinished,
    MemoryMeasured,
    ModelExported,
    PredictionsWritten,
    RequestAnswered,
    RunFinished,
    StepFinished,
)
from backend.contract.run_folder import RunFolder
from backend.contract.spec import RunSpec
from backend.data.features import Features
from backend.data.order import Order
from backend.data.rows import Rows
from backend.engines.engine import StepResult
from backend.run import model_folder, predictions_file, throughput
from backend.run.checkpoints import Checkpoints
from backend.run.event_log import EventLog
from backend.run.failure import failed
from backend.run.opening import Opened, open_run
from backend.run.requests import Interrupted, Requests
from backend.run.schedule import learning_rate
from backend.run.session import Scored, Session
from backend.run.stages import Stages

READ_SECONDS = 0.5
"""Losses wait on the device at most this long."""

WORTH_REMEMBERING_SECONDS = 2.0
"""A run's speed is kept for later plans if it computed at least this long."""


def run(folder: RunFolder) -> int:
    """Train the run in `folder`, from its last checkpoint if there is one. Returns the exit code; events tell the rest."""
    log = EventLog(folder.events)
    step = 0
    try:
        requests = Requests(folder)
        stages = Stages(log, on_report=requests.interrupt)
        try:
            opened = open_run(folder, log, stages)
        except Interrupted as wish:
            log.write(RequestAnswered(time=time.time(), request=wish.request, step=0))
            requests.answered(wish.request)
            log.write(RunFinished(time=time.time(), state=_state_after(wish.request), step=0))
            return 0
        training = Training(folder, opened, log, stages, requests)
        step = opened.from_step
        try:
            state = training.run()
        finally:
            step = training.step
        log.write(training.last_event(state))
        return 0
    except Exception as error:
        traceback.print_exc()  # into process.log, for whoever mends it
        log.write(failed(error, step))
        return 1
    finally:
        log.close()


def _state_after(request: str) -> str:
    return {"stop": "stopped", "pause": "paused"}[request]


@dataclass(frozen=True)
class _Waiting:
    """A step whose numbers are still on the device."""

    event: StepFinished
    result: StepResult


class Training:
    """One attempt at a run, from its first step to its predictions."""

    def __init__(self, folder: RunFolder, opened: Opened, log: EventLog, stages: Stages, requests: Requests) -> None:
        self.step = opened.from_step
        self._folder, self._opened, self._log, self._stages, self._requests = folder, opened, log, stages, requests
        self._spec: RunSpec = opened.session.spec
        self._session: Session = opened.session
        self._engine = opened.session.engine
        self._train: Features = opened.features["train"]
        self._order: Order = opened.order
        self._checkpoints = Checkpoints(folder)
        self._best = opened.best
        self._waiting: list[_Waiting] = []
        self._last_read = time.perf_counter()
        self._last_memory = 0.0
        self._metrics: dict[str, float] = {}
        self._saved: int | None = None
        self._tokens, self._seconds = 0, 0.0
        self._process = psutil.Process()

    def run(self) -> str:
        """Train, then predict; returns how the run ended: finished, stopped or paused."""
        try:
            wish = self._train_all()
        except Interrupted as interrupted:
            wish = interrupted.request
        if wish is not None:
            return self._end_early(wish)
        try:
            self._finish()
        except Interrupted as interrupted:  # training is complete; what is left is made again at a resume
            self._answer(interrupted.request)
            return _state_after(interrupted.request)
        return "finished"

    def last_event(self, state: str) -> RunFinished:
        """How it ended, with the metrics of the weights in `model/`."""
        return RunFinished(
            time=time.time(), state=state, step=self.step, best_step=self._best_step(), metrics=dict(self._metrics)
        )

    def _train_all(self) -> str | None:
        """Every step that is left; returns the request that ended it early, if one did."""
        total = self._opened.plan.total_steps
        if self.step == 0 and self._spec.evaluation.at_start:
            self._evaluate()
        self._stages.start("training", total, "steps")
        self._last_read = time.perf_counter()
        while self.step < total and not self._best.should_stop():
            self._one_step(total)
            wish = self._requests.pending()
            if wish in ("stop", "pause"):
                return wish
            if self._is_due(self._spec.evaluation.every, total):
                self._evaluate()
            if wish == "checkpoint" or self._is_due(self._spec.training.checkpoint_every, total):
                self._checkpoint()
            if wish == "checkpoint":
                self._answer("checkpoint")
        self._read()
        return None

    def _one_step(self, total: int) -> None:
        started = time.perf_counter()
        self.step += 1
        rate = learning_rate(self.step, total, self._spec.training)
        indices = self._order.indices(self.step)
        micro_batches = self._session.micro_batches(self._train, indices, self._opened.plan.micro_batch_size)
        result = self._engine.train_step(micro_batches, self.step, rate)
        event = StepFinished(
            time=time.time(),
            step=self.step,
            epoch=self.step / self._order.steps_per_epoch,
            loss=None,
            learning_rate=rate,
            gradient_norm=None,
            rows=len(indices),
            tokens=int(self._train.lengths[indices].sum()),
            seconds=time.perf_counter() - started,
        )
        self._waiting.append(_Waiting(event, result))
        if time.perf_counter() - self._last_read >= READ_SECONDS:
            self._read()

    def _read(self) -> None:
        """Fetch the waiting losses at once and write their events. Raises RunFailed where one is not a number."""
        if not self._waiting:
            return
        numbers = self._engine.read([one.result for one in self._waiting])
        # An accelerator is still computing when a step returns; after the read the sum is true, so it is shared out.
        elapsed, dispatched = time.perf_counter() - self._last_read, sum(one.event.seconds for one in self._waiting)
        stretch = elapsed / dispatched
        self._tokens += sum(one.event.tokens for one in self._waiting)
        self._seconds += elapsed
        for one, number in zip(self._waiting, numbers, strict=True):
            self._log.append(_with_numbers(one.event, number.loss, number.gradient_norm, stretch))
            if not math.isfinite(number.loss):
                self._log.flush()
                raise RunFailed(
                    f"the loss at step {one.event.step} is not a number; the last good checkpoint is kept",
                    code="nan_loss",
                    hint="Lower training.learning_rate, add training.warmup, or compute in float32 (hardware.precision).",
                )
        self._waiting.clear()
        if time.monotonic() - self._last_memory >= 1.0:
            self._measure_memory()
        self._last_read = time.perf_counter()

    def _measure_memory(self) -> None:
        self._last_memory = time.monotonic()
        memory = self._process.memory_info().rss / 1e6
        self._log.append(
            MemoryMeasured(
                time=time.time(), step=self.step, memory_mb=memory, device_memory_mb=self._engine.device_memory_mb()
            )
        )

    def _is_due(self, often: str | int, total: int) -> bool:
        if often == "never":
            return False
        every = self._order.steps_per_epoch if often == "epoch" else int(often)
        return self.step % every == 0 or self.step == total

    def _evaluate(self) -> None:
        """Measure on the validation data (and on training rows, if asked for); keep a checkpoint of the best."""
        if not self._opened.evaluated:
            return
        self._read()
        is_best = False
        for split, (rows, features) in self._opened.evaluated.items():
            scored = self._score("evaluating", rows, features)
            if split == "validation":
                is_best = self._best.apply(dict(scored.metrics), self.step)
            self._log.write(
                EvaluationFinished(
                    time=time.time(),
                    step=self.step,
                    epoch=self.step / self._order.steps_per_epoch,
                    metrics=dict(scored.metrics),
                    rows=len(rows),
                    seconds=scored.seconds,
                    split=split,
                    is_best=is_best and split == "validation",
                )
            )
        if is_best and self._best.keeps_checkpoint and self.step > 0:
            self._checkpoint()
        if self.step < self._opened.plan.total_steps:
            self._stages.start("training", self._opened.plan.total_steps, "steps")
        self._last_read = time.perf_counter()

    def _score(self, stage: str, rows: Rows, features: Features) -> Scored:
        self._stages.start(stage, len(features), "rows")
        return self._session.score(
            rows,
            features,
            self._opened.evaluation_batch_size,
            lambda done, total: self._stages.report(done, total, "rows"),
        )

    def _checkpoint(self) -> None:
        """Save this step, then take older checkpoints away. Unread losses are read first: a bad step is never saved."""
        if self._saved == self.step:
            return
        self._read()
        started = time.perf_counter()
        path = self._checkpoints.save(self.step, self._engine.save)
        self._saved = self.step
        self._log.write(
            CheckpointSaved(
                time=time.time(),
                step=self.step,
                folder=str(path.relative_to(self._folder.path)),
                seconds=time.perf_counter() - started,
                is_best=self.step == self._best_step(),
            )
        )
        for step in self._checkpoints.remove_older(self._spec.training.keep_checkpoints, self._best_step()):
            folder = str(self._folder.checkpoint(step).relative_to(self._folder.path))
            self._log.write(CheckpointRemoved(time=time.time(), step=step, folder=folder))
        self._last_read = time.perf_counter()

    def _best_step(self) -> int | None:
        return self._best.step if self._best.keeps_checkpoint else None

    def _answer(self, request: str) -> None:
        self._log.write(RequestAnswered(time=time.time(), request=request, step=self.step))
        self._requests.answered(request)

    def _end_early(self, wish: str) -> str:
        """Pause and stop keep the last weights; stop also leaves them as `model/`."""
        self._answer(wish)
        self._stages.quiet()
        self._stages.start("saving")
        if self.step > 0:
            self._checkpoint()
        if wish == "stop":
            self._export(self.step)
        return _state_after(wish)

    def _finish(self) -> None:
        """The best weights (else the last) become `model/`, predict the validation data and score the test data once."""
        best = self._best_step()
        if best is not None and best != self.step:
            self._checkpoint()
            self._engine.restore(self._folder.checkpoint(best))
        self._export(self.step if best is None else best)
        self._remember_speed()
        for split in ("validation", "test"):
            if split in self._opened.rows:
                self._predict(split)

    def _remember_speed(self) -> None:
        if self._seconds >= WORTH_REMEMBERING_SECONDS:
            opened = self._opened
            throughput.remember(
                self._spec, opened.model_folder, opened.device, opened.precision, self._tokens / self._seconds
            )

    def _export(self, step: int) -> None:
        """Make the weights of the engine, which are those of `step`, the run's `model/`."""
        self._stages.start("saving")
        session = self._session

        def fill(folder: Path) -> None:
            self._engine.export(folder)
            session.tokenizer.save_pretrained(folder)

        note: dict[str, Any] = {
            "task": self._spec.task,
            "facts": session.facts,
            "columns": dict(session.columns),
            "step": step,
        }
        model_folder.write(self._folder.model, fill, note)
        self._log.write(ModelExported(time=time.time(), folder=self._folder.model.name, step=step))

    def _predict(self, split: str) -> None:
        rows, features = self._opened.rows[split], self._opened.features[split]
        scored = self._score("predicting", rows, features)
        csv, parquet = self._folder.predictions(split), self._folder.predictions(split, "parquet")
        predictions_file.write(predictions_file.joined(rows, scored.predictions), csv, parquet)
        if split == "validation":
            self._metrics = scored.metrics
        self._log.write(
            PredictionsWritten(
                time=time.time(),
                split=split,
                csv=csv.name,
                parquet=parquet.name,
                rows=len(rows),
                seconds=scored.seconds,
                metrics=dict(scored.metrics),
            )
        )


def _with_numbers(event: StepFinished, loss: float, gradient_norm: float, stretch: float) -> StepFinished:
    return StepFinished(
        time=event.time,
        step=event.step,
        epoch=event.epoch,
        loss=loss,
        learning_rate=event.learning_rate,
        gradient_norm=gradient_norm,
        rows=event.rows,
        tokens=event.tokens,
        seconds=event.seconds * stretch,
    )
