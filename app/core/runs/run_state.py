"""The state of one run as a fold over its events; everything that the window shows about a run comes from here."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from app.core import formatting
from app.core.backend_messages import translate_messages
from app.core.backend_words import SPLITS, capitalize, translate_word
from app.core.i18n import fill, inside, thin, tr, trn
from app.core.runs.series import Resume, Series, StepClock, StepRate
from app.core.setting_titles import in_titles
from backend.contract.messages import learn
from backend.contract.metrics import base_metric, is_at_chance
from backend.contract.run import events
from backend.contract.run.comparison import format_settings
from backend.contract.run.events import AnyEvent

STEP_LINE_SECONDS = 2.0
"""At most one journal line about steps in this time of the run."""
KEPT_SAMPLES = 60
"""Evaluations whose sample rows are held."""
STARTING = ("", "finding model", "loading data", "tokenising", "loading model")
"""Stages before the first step."""
COMPILING_LINE_SECONDS = 1.0
"""A program that was compiled in less gets no journal line."""


REQUEST_LINES = {
    "checkpoint": tr("Checkpoint requested at step {step}"),
    "pause": tr("Pause requested at step {step}"),
    "stop": tr("Stop requested at step {step}"),
    "interrupt": tr("Interruption requested at step {step}"),
}
"""Kind of a request → its line in the journal."""


@dataclass(frozen=True)
class JournalLine:
    """One sentence about what happened, for the log."""

    time: float
    text: str
    kind: str = "info"


@dataclass
class RunState:
    """The result of a run's events so far. `apply` takes about three microseconds per event."""

    name: str = ""
    task: str = ""
    model: str = ""
    engine: str = ""
    device: str = ""
    precision: str = ""
    contract_version: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    attempt: int = 0
    started: float | None = None
    last_time: float | None = None
    stage: str = ""
    stage_done: int = 0
    stage_total: int = 0
    stage_unit: str = ""
    step: int = 0
    epoch: float = 0.0
    plan: events.PlanMade | None = None
    """The latest; at a resume that of the attempt before, until there is a new one."""
    planned_attempt: int = 0
    """Whose plan it is."""
    finished: events.RunFinished | None = None
    memory: events.MemoryMeasured | None = None
    best: events.EvaluationFinished | None = None
    series: dict[str, Series] = field(default_factory=dict)
    metric_series: dict[str, Series] = field(default_factory=dict)
    data: dict[str, events.DataLoaded] = field(default_factory=dict)
    evaluations: list[events.EvaluationFinished] = field(default_factory=list)
    samples: dict[int, events.RowsSampled] = field(default_factory=dict)
    """Step → the rows that its evaluation shows; of many steps the first and the latest."""
    warnings: list[events.Warned] = field(default_factory=list)
    skipped: list[events.RowsSkipped] = field(default_factory=list)
    checkpoints: dict[int, events.CheckpointSaved] = field(default_factory=dict)
    predictions: dict[str, events.PredictionsWritten] = field(default_factory=dict)
    exported: events.ModelExported | None = None
    """The latest `model/` that was written."""
    answered: list[events.RequestAnswered] = field(default_factory=list)
    resumes: list[Resume] = field(default_factory=list)
    journal: list[JournalLine] = field(default_factory=list)
    compilations: int = 0
    """Programs that the engine has compiled in all attempts."""
    compiling_seconds: float = 0.0
    pace: StepRate = field(default_factory=StepRate)
    clock: StepClock = field(default_factory=StepClock)
    _idle_seconds: float = 0.0
    _step_line_time: float = 0.0

    def __post_init__(self) -> None:
        self._apply: dict[type, Callable[[Any], None]] = {
            events.RunStarted: self._run_started,
            events.RunResumed: self._run_resumed,
            events.StageStarted: self._stage_started,
            events.StageProgress: self._stage_progress,
            events.ProgramCompiled: self._program_compiled,
            events.DataLoaded: self._data_loaded,
            events.RowsSkipped: self._rows_skipped,
            events.ModelLoaded: self._model_loaded,
            events.PlanMade: self._plan_made,
            events.StepFinished: self._step_finished,
            events.MemoryMeasured: self._memory_measured,
            events.EvaluationFinished: self._evaluation_finished,
            events.RowsSampled: self._rows_sampled,
            events.CheckpointSaved: self._checkpoint_saved,
            events.CheckpointRemoved: self._checkpoint_removed,
            events.RequestAnswered: self._request_answered,
            events.Warned: self._on_warned,
            events.ModelExported: self._model_exported,
            events.PredictionsWritten: self._predictions_written,
            events.TrialProposed: self._trial_proposed,
            events.TrialEnded: self._trial_ended,
            events.RunFinished: self._run_finished,
        }

    def apply(self, event: AnyEvent) -> None:
        """Apply one event, in file order. An unknown event type changes nothing."""
        handler = self._apply.get(type(event))
        if handler is not None:
            learn(event.messages)
            handler(event)
            self.last_time = event.time

    def apply_all(self, many: Iterable[AnyEvent]) -> None:
        """Take several events."""
        for event in many:
            self.apply(event)

    # What is derived

    @property
    def state(self) -> str:
        """The state according to the events alone: starting, running, or how the last attempt ended."""
        if self.finished is not None:
            return self.finished.state
        return "running" if self.step or self.stage not in STARTING else "starting"

    @property
    def total_steps(self) -> int:
        """Optimizer steps of the whole run, 0 while unknown."""
        return self.plan.total_steps if self.plan else 0

    @property
    def fraction(self) -> float | None:
        """Progress of the current stage between 0 and 1; of all steps while training; None if unknown."""
        if self.stage in ("training", "") or self.finished is not None:
            return self.fraction_of_steps
        return min(1.0, self.stage_done / self.stage_total) if self.stage_total else None

    @property
    def fraction_of_steps(self) -> float | None:
        """Progress of the whole run between 0 and 1; None before its plan is known."""
        if self.finished is not None and self.finished.state == "finished":
            return 1.0
        return min(1.0, self.step / self.total_steps) if self.total_steps else None

    @property
    def eta_seconds(self) -> float | None:
        """Remaining seconds of training, from recent steps and the time of evaluations and checkpoints."""
        left, seconds = self.total_steps - self.step, self.pace.seconds_per_step
        return None if self.finished is not None or seconds is None or left <= 0 else left * seconds

    @property
    def seconds_spent(self) -> float | None:
        """How long the run has been active; the time between its attempts does not count."""
        if self.started is None or self.last_time is None:
            return None
        return max(0.0, self.last_time - self.started - self._idle_seconds)

    @property
    def main_metric(self) -> str:
        """The name of the most important metric; empty before the first evaluation."""
        if self.plan and self.plan.best_metric:
            return self.plan.best_metric
        return next(iter(self.metric_names), "loss" if "loss" in self.metric_series else "")

    @property
    def metric_names(self) -> list[str]:
        """The validation metrics but the loss: the task's own in its order, else whatever was measured."""
        return self._own_metrics([name for name in self.metric_series if name.rpartition("/")[2] != "loss"])

    def _own_metrics(self, names: list[str]) -> list[str]:
        order = [*self.plan.metrics] if self.plan else []
        own = [name for name in names if name.rpartition("/")[2] in order]  # not of a label, as `f1_PER`
        return sorted(own, key=lambda name: order.index(name.rpartition("/")[2])) or names

    def greater_is_better(self, metric: str) -> bool | None:
        """Whether a greater value of a metric, or of a variant such as `f1_PER`, is better; None if unknown."""
        known = self.plan.metrics if self.plan else {}
        if not known:  # the run is of an older Burnish, of whose metrics only these two were better when smaller
            known = {metric.rpartition("/")[2]: True, "loss": False, "perplexity": False}
            if self.plan is not None and self.plan.best_metric:
                known[self.plan.best_metric] = self.plan.greater_is_better
        base = base_metric(metric, known)
        return None if base is None else known[base]

    @property
    def at_chance(self) -> bool:
        """Whether it was evaluated, and never better than a rule without a model."""
        measured = [one.metrics for one in self.evaluations if one.split == "validation"]
        if self.finished is not None and self.finished.metrics:
            measured.append(self.finished.metrics)
        return bool(measured) and all(is_at_chance(metrics, self.trivial) for metrics in measured)

    @property
    def trivial(self) -> dict[str, float]:
        """What a rule without a model reaches on the validation rows."""
        return self.plan.trivial if self.plan is not None else {}

    def best_of(self, metric: str) -> tuple[int, float] | None:
        """The step and value of a metric's best evaluation, the earliest if tied; None if its direction is unknown."""
        series, greater = self.metric_series.get(metric), self.greater_is_better(metric)
        if series is None or greater is None:
            return None
        points = [point for point in zip(series.xs, series.ys, strict=True) if not math.isnan(point[1])]
        if not points:
            return None
        step, value = (max if greater else min)(points, key=lambda point: point[1])
        return int(step), value

    @property
    def training_data(self) -> events.DataLoaded | None:
        """The training split, once it has been read."""
        return self.data.get("train")

    def last_metric(self, name: str) -> float | None:
        """The newest value of a validation metric."""
        series = self.metric_series.get(name)
        return series.last if series and not math.isnan(series.last or 0.0) else None

    @property
    def has_model(self) -> bool:
        """Whether `model/` was written."""
        return self.exported is not None

    @property
    def model_origin(self) -> str:
        """Which step's weights `model/` has, and why those; empty before there are any."""
        if self.exported is None:
            return ""
        step, decides = self.exported.step, self.plan.best_metric if self.plan else None
        shown = formatting.group_digits(step)
        if decides and self.best is not None and self.best.step == step:
            if decides == "loss":
                return tr("from step {step} (lowest evaluation loss)", step=shown)
            metric = inside(formatting.metric_title(decides))
            return tr("from step {step} (best {metric})", step=shown, metric=metric)
        if step == self.step and decides and self.best is not None:  # as when it was stopped
            best = formatting.group_digits(self.best.step)
            return tr("from step {step} (last step; the best was step {best})", step=shown, best=best)
        if step == self.step:
            return tr("from step {step} (last step)", step=shown)
        return tr("from step {step}", step=shown)

    # One method per event

    def _run_started(self, event: events.RunStarted) -> None:
        self.name, self.task, self.model = event.name, event.task, event.model
        self.engine, self.device, self.precision = event.engine, event.device, event.precision
        self.contract_version, self.versions = event.contract_version, event.versions
        self.attempt, self.started = event.attempt, event.time
        self._note(event, tr("Run {name} started", name=event.name))

    def _run_resumed(self, event: events.RunResumed) -> None:
        self.attempt = event.attempt
        down = max(0.0, event.time - (self.last_time or event.time))
        self._idle_seconds += down
        self.versions = event.versions or self.versions
        self.device, self.precision = event.device or self.device, event.precision or self.precision
        self.resumes.append(Resume(event.attempt, event.from_step, max(0, self.step - event.from_step), down))
        self._forget_after(event.from_step)
        self.finished, self.memory = None, None
        self.stage, self.stage_done, self.stage_total, self.stage_unit = "", 0, 0, ""
        self.pace = StepRate()
        other = tr(" with the {engine} engine", engine=event.engine) if event.engine not in ("", self.engine) else ""
        self.engine = event.engine or self.engine
        self._note(
            event,
            tr(
                "Attempt {attempt}: resumed after step {from_step}{other}",
                attempt=event.attempt,
                from_step=event.from_step,
                other=other,
            ),
        )

    def _forget_after(self, step: int) -> None:
        for series in (*self.series.values(), *self.metric_series.values()):
            series.truncate_after(step)
        self.clock.truncate_after(step)
        self.evaluations = [evaluation for evaluation in self.evaluations if evaluation.step <= step]
        self.samples = {at: event for at, event in self.samples.items() if at <= step}
        self.checkpoints = {saved: event for saved, event in self.checkpoints.items() if saved <= step}
        self.predictions = {}
        self.best = next((one for one in reversed(self.evaluations) if self._is_best(one)), None)
        self.step = min(self.step, step)
        if self.plan and self.plan.steps_per_epoch:
            self.epoch = self.step / self.plan.steps_per_epoch

    def _stage_started(self, event: events.StageStarted) -> None:
        self.stage, self.stage_done = event.stage, 0
        self.stage_total, self.stage_unit = event.total, event.unit
        self._note(event, capitalize(translate_word(event.stage)))

    def _stage_progress(self, event: events.StageProgress) -> None:
        self.stage, self.stage_done = event.stage, event.done
        self.stage_total = event.total or self.stage_total

    def _program_compiled(self, event: events.ProgramCompiled) -> None:
        self.compilations += 1
        self.compiling_seconds += event.seconds
        if event.seconds >= COMPILING_LINE_SECONDS:
            self._note(event, tr("Compiled in {seconds}", seconds=formatting.duration(event.seconds)))

    def _data_loaded(self, event: events.DataLoaded) -> None:
        self.data[event.split] = event
        self._note(event, f"{SPLITS.get(event.split, event.split)}: {trn('{count} row', '{count} rows', event.rows)}")

    def _rows_skipped(self, event: events.RowsSkipped) -> None:
        self.skipped.append(event := translate_messages(event))
        text = tr(
            "{split}: {count} skipped, {reason}",
            split=event.split,
            count=trn("{count} row", "{count} rows", event.count),
            reason=thin(event.reason),
        )
        self._note(event, f"{text} ({', '.join(event.places[:3])})" if event.places else text, "warning")

    def _model_loaded(self, event: events.ModelLoaded) -> None:
        self._note(
            event,
            tr(
                "{architecture}: {parameters} parameters",
                architecture=event.architecture,
                parameters=formatting.short_count(event.parameters),
            ),
        )

    def _plan_made(self, event: events.PlanMade) -> None:
        self.plan, self.planned_attempt = event, self.attempt
        self._note(
            event,
            tr(
                "{total_steps} steps of {batch_size} rows, {epochs:g} epochs",
                total_steps=event.total_steps,
                batch_size=event.batch_size,
                epochs=event.epochs,
            ),
        )

    def _step_finished(self, event: events.StepFinished) -> None:
        step, seconds = event.step, event.seconds
        self.step, self.epoch = step, event.epoch
        self.clock.add(event, self.started)
        self._add("learning_rate", step, event.learning_rate)
        if event.loss is not None:
            self._add("loss", step, event.loss)
        if event.gradient_norm is not None:
            self._add("gradient_norm", step, event.gradient_norm)
        if seconds > 0:
            self._add("rows_per_second", step, event.rows / seconds)
            self._add("tokens_per_second", step, event.tokens / seconds)
        self.pace.add_step(event)
        if event.time - self._step_line_time >= STEP_LINE_SECONDS:
            self._step_line_time = event.time
            self._note(event, formatting.step_line(event))

    def _add(self, name: str, step: int, value: float) -> None:
        series = self.series.get(name)
        if series is None:
            series = self.series[name] = Series()
        series.append(step, value)

    def _memory_measured(self, event: events.MemoryMeasured) -> None:
        self.memory = event
        self._add("memory_mb", event.step, event.memory_mb)
        if event.device_memory_mb is not None:
            self._add("device_memory_mb", event.step, event.device_memory_mb)

    def _evaluation_finished(self, event: events.EvaluationFinished) -> None:
        self.pace.add_other(event.seconds)
        self.evaluations.append(event)
        for name, value in event.metrics.items():
            key = name if event.split == "validation" else f"{event.split}/{name}"
            if value is not None and math.isfinite(value):
                self.metric_series.setdefault(key, Series()).append(event.step, value)
            elif key in self.metric_series:
                self.metric_series[key].append(event.step, math.nan)  # a line across would be made up
        if self._is_best(event):
            self.best = event
        is_best = event.is_best and not self._is_at_chance(event)
        self._note(event, formatting.evaluation_line(event, self._own_metrics([*event.metrics]), is_best=is_best))

    def _rows_sampled(self, event: events.RowsSampled) -> None:
        self.samples[event.step] = translate_messages(event)
        if len(self.samples) > KEPT_SAMPLES:
            del self.samples[sorted(self.samples)[1]]

    def _checkpoint_saved(self, event: events.CheckpointSaved) -> None:
        self.pace.add_other(event.seconds)
        self.checkpoints[event.step] = event
        words = (
            tr("Saved checkpoint at step {step} (best)", step=event.step)
            if event.is_best and self.best
            else tr("Saved checkpoint at step {step}", step=event.step)
        )
        self._note(event, words)

    def _checkpoint_removed(self, event: events.CheckpointRemoved) -> None:
        self.checkpoints.pop(event.step, None)

    def _request_answered(self, event: events.RequestAnswered) -> None:
        self.answered.append(event)
        words = REQUEST_LINES.get(event.request)
        self._note(event, fill(words, step=event.step) if words else event.request)

    def _on_warned(self, event: events.Warned) -> None:
        self.warnings.append(event := translate_messages(event))
        self._note(event, in_titles(event.message), "warning")

    def _model_exported(self, event: events.ModelExported) -> None:
        self.exported = event
        self._note(event, tr("Saved model to {folder}, {origin}", folder=event.folder, origin=self.model_origin))

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """The 95 % confidence intervals of a finished run's metrics."""
        written = self.predictions.get("validation", self.predictions.get("test"))
        is_over = self.finished is not None and self.finished.state == "finished"
        return written.intervals if is_over and written is not None else {}

    def _predictions_written(self, event: events.PredictionsWritten) -> None:
        self.predictions[event.split] = event
        rows = trn("{count} prediction", "{count} predictions", event.rows)
        self._note(event, f"{event.csv}: {rows}")

    def _trial_proposed(self, event: events.TrialProposed) -> None:
        self._note(
            event, tr("Trial {number}: {settings}", number=event.trial, settings=format_settings(event.settings))
        )

    def _trial_ended(self, event: events.TrialEnded) -> None:
        state = translate_word(event.state)
        words = tr(
            "Trial {number} {state} at step {step}",
            number=event.trial,
            state=state,
            step=formatting.group_digits(event.step),
        )
        reason = in_titles(event.message) or ("" if event.value is None else formatting.number(event.value))
        self._note(event, f"{words}: {reason}" if reason else words)

    def _run_finished(self, event: events.RunFinished) -> None:
        self.finished = event = translate_messages(event)
        kind = "error" if event.state == "failed" else "info"
        self._note(event, event.message or tr("Run {state}", state=translate_word(event.state)), kind)

    def _note(self, event: events.Event, text: str, kind: str = "info") -> None:
        self.journal.append(JournalLine(event.time, text, kind))

    def _is_best(self, event: events.EvaluationFinished) -> bool:
        return event.is_best and event.split == "validation" and not self._is_at_chance(event)

    def _is_at_chance(self, event: events.EvaluationFinished) -> bool:
        return self.plan is not None and is_at_chance(event.metrics, self.plan.trivial)
