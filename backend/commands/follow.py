"""Follows a run in a terminal, from the queue until its process exits, and handles Ctrl-C."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from backend.commands.screen import ProgressScreen
from backend.contract.metrics import is_at_chance
from backend.contract.processes import on_interruption
from backend.contract.run import events
from backend.contract.run.comparison import format_settings
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import RunFolder, exit_code
from backend.contract.run.group import RunGroup
from backend.contract.run.queue import queue_of
from backend.contract.safe_text import one_line

CHANCE = "the model has learned nothing: its scores are no better than those of a rule without a model"
POLL_SECONDS = 0.1
FIRST_SECONDS = 5.0
"""How long a host that ended waits for the word of how the first did."""
QUEUE_POLL_SECONDS = 2.0
"""Between two looks at the locks of all runs."""
MAX_METRICS = 12
"""Of more metrics than this a line leaves out the variants, such as `f1_PER` beside `f1`."""


@dataclass
class RunOutcome:
    """How an attempt ended and what it produced."""

    folder: RunFolder
    state: str = "lost"
    message: str = ""
    hint: str = ""
    mend: RunFix | None = None
    metrics: dict[str, float | None] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The 95 % confidence intervals of metrics that have one."""
    predictions: Path | None = None

    @property
    def exit_code(self) -> int:
        """That of the command that follows the run."""
        return exit_code(self.state)

    def as_json(self) -> str:
        """The result as one line of JSON."""
        return json.dumps(
            {
                "run": str(self.folder.path),
                "name": self.folder.name,
                "state": self.state,
                "message": self.message,
                "mend": self.mend.command(self.folder.path) if self.mend else None,
                "metrics": self.metrics,
                "intervals": self.intervals,
                "predictions": str(self.predictions) if self.predictions else None,
                "model": str(self.folder.model) if self.folder.model.is_dir() else None,
            },
            ensure_ascii=False,
        )


class Follower:
    """Shows a run's events and collects its outcome."""

    def __init__(
        self, folder: RunFolder, reader: events.EventReader, screen: ProgressScreen, others: Sequence[RunFolder] = ()
    ) -> None:
        self._folder, self._reader, self._screen = folder, reader, screen
        self._run = folder.main_folder()
        self._others = others
        """Runs that are asked the same as this one, such as the others of its group."""
        self._queue = QueueReporter(self._run, screen)
        self._outcome = RunOutcome(self._run)
        self._finished: events.RunFinished | None = None
        self._total = 0
        self._is_interrupted = False
        self._trivial: dict[str, float] = {}
        self._evaluated: list[events.EvaluationFinished] = []
        """What was measured after one step, one split after another; it becomes one line."""

    def watch(self) -> RunOutcome:
        """Follow the run until the attempt is over. The first Ctrl-C asks it to stop; a second one detaches from it.

        SIGTERM and SIGUSR1 interrupt the run; a second SIGTERM ends only this process.
        """
        restore = on_interruption(self._interrupt)
        try:
            self._follow_to_end()
        except KeyboardInterrupt:
            self._stop()
            self._follow_to_end()
        finally:
            restore()
            self._screen.close()
        return self._build_outcome()

    def _interrupt(self, number: int) -> None:
        if not self._is_interrupted:
            self._is_interrupted = True
            with suppress(OSError):
                self._request("interrupt")
        if number == signal.SIGTERM and threading.current_thread() is threading.main_thread():
            signal.signal(number, signal.SIG_DFL)

    def _stop(self) -> None:
        waits = self._run.waits()
        self._request("stop")
        doing = "Leaving the queue" if waits else "Stopping after a checkpoint"
        self._screen.line(f"{doing}. Press Ctrl-C again to leave it running on its own.")

    def _request(self, kind: str) -> None:
        for run in (*(other for other in reversed(self._others) if other.life() == "alive"), self._run):
            run.request(kind)  # those behind in the queue first, else the next would start

    def _follow_to_end(self) -> None:
        alive = True
        while alive:
            self._queue.report_changes()
            alive = self._folder.life() == "alive"  # checked before the last read, so that no event is missed
            for event in self._reader.new():
                self._report_evaluation(event)
                self._show(event)
            if alive:
                time.sleep(POLL_SECONDS)

    def _report_evaluation(self, event: events.AnyEvent) -> None:
        """Print the collected evaluation, unless another split is still being evaluated at the same step."""
        goes_on = isinstance(event, events.StageProgress | events.EvaluationFinished | events.ProgramCompiled)
        if goes_on or (isinstance(event, events.StageStarted) and event.stage in ("evaluating", "compiling")):
            return
        if self._evaluated:
            self._screen.line(evaluation_line(self._evaluated, self._trivial))
            self._evaluated = []

    def _build_outcome(self) -> RunOutcome:
        outcome, finished = self._outcome, self._finished
        if finished:
            outcome.state, outcome.message, outcome.hint = finished.state, finished.message, finished.hint
            outcome.mend = finished.mend
            outcome.metrics = {**outcome.metrics, **finished.metrics}
        elif (record := self._folder.exit_record()) and record.state:
            outcome.state, outcome.message = (
                record.state,
                record.message or "it was removed from the queue before it started",
            )
        elif record:
            outcome.state, outcome.message = "failed", self._first_gone() or record.message
            outcome.hint = f"Resume it with: burnish resume {self._run.name}"
        elif not self._folder.exists():
            outcome.message = "its folder was deleted or moved while it ran, so nothing more could be saved there"
        else:
            outcome.message = "the run ended without saying how; its supervisor was killed"
            outcome.hint = f"Resume it with: burnish resume {self._run.name}"
        if outcome.state == "interrupted":
            outcome.hint = f"Resume it with: burnish resume {self._run.name}"
        return outcome

    def _first_gone(self) -> str:
        """How the first host ended, on any other host. JAX kills the others' processes without an explanation."""
        until = time.monotonic() + FIRST_SECONDS if self._run.path != self._folder.path else 0.0
        while (first := self._run.exit_record()) is None and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        return f"the first host is gone: {first.message}" if until and first and first.message else ""

    def _show(self, event: events.AnyEvent) -> None:
        match event:
            case events.StageStarted():
                self._screen.start_stage(
                    events.STAGE_WORDS.get(event.stage, event.stage),
                    event.total or self._total_of(event.stage),
                    event.unit,
                )
            case events.StageProgress():
                self._screen.advance(event.done, event.total)
            case events.PlanMade():
                self._total, self._trivial = event.total_steps, event.trivial
            case events.StepFinished():
                self._screen.advance(event.step, self._total, f"epoch {event.epoch:.2f}, loss {number(event.loss)}")
            case events.EvaluationFinished():
                self._evaluated.append(event)
            case events.DataLoaded() if event.cached:
                self._screen.line(f"{event.split}: {event.features} features, cached")
            case events.RowsSkipped():
                places = f" ({', '.join(event.places[:3])})" if event.places else ""
                self._screen.line(f"{event.split}: {event.count} rows skipped, {event.reason}{places}")
            case events.Warned():
                self._screen.line(f"note: {event.message}")
            case events.RequestAnswered():
                self._screen.line(f"{event.request} received at step {event.step}")
            case events.PredictionsWritten():
                self._keep(event)
                if event.split != "validation":
                    measured = format_metrics(event.metrics) or "no labels to evaluate with"
                    self._screen.line(f"{event.split}: {measured}; {self._run.path / event.csv}")
            case events.TrialProposed():
                self._screen.line(f"trial {event.trial}: {format_settings(event.settings)}")
            case events.TrialEnded():
                reason = f": {event.message}" if event.message else ""
                self._screen.line(
                    f"trial {event.trial} {event.state} at step {event.step}: {number(event.value)}{reason}"
                )
            case events.ModelExported():
                self._screen.line(f"the saved model is from step {event.step}")
            case events.RunFinished():
                self._finished = event
            case _:
                pass

    def _total_of(self, stage: str) -> int:
        return self._total if stage == "training" else 0

    def _keep(self, event: events.PredictionsWritten) -> None:
        if self._outcome.predictions is None or event.split == "validation":
            self._outcome.predictions = self._run.path / event.csv
            self._outcome.metrics = dict(event.metrics)
            self._outcome.intervals = event.intervals


class GroupFollower:
    """Follows the runs of a group, one after the other: that is how the queue starts them if they share a device."""

    def __init__(self, group: RunGroup) -> None:
        self.group = group
        self._runs: list[tuple[RunFolder, events.EventReader]] = []
        self._started: list[subprocess.Popen[bytes]] = []

    def add(self, run: RunFolder, start: "Callable[[], subprocess.Popen[bytes]] | None" = None) -> None:
        """The next run, with what starts it unless it is in progress or over."""
        reader = events.EventReader.at_end(run.events)
        self._started += [start()] if start is not None else []
        self._runs.append((run, reader))

    def runs_in_progress(self) -> list[RunFolder]:
        """The runs that have a process."""
        return [run for run, _ in self._runs if run.life() == "alive"]

    def leave(self) -> None:
        """Let the runs outlive this process."""
        for supervisor in self._started:
            supervisor.returncode = 0

    def watch(self) -> int:
        """Follow all that are in progress until they are over; returns the exit code. Ctrl-C asks all of them to stop."""
        codes, alive = [], self.runs_in_progress()
        for place, (run, reader) in enumerate((run, reader) for run, reader in self._runs if run in alive):
            screen = ProgressScreen()
            screen.line(f"{one_line(run.name)}: run {place + 1} of {len(alive)}")
            outcome = Follower(run, reader, screen, [other for other in alive if other is not run]).watch()
            words = format_metrics(outcome.metrics) if outcome.state == "finished" else outcome.message
            screen.line(f"{one_line(run.name)} {outcome.state}{f': {one_line(words)}' if words else ''}")
            codes.append(outcome.exit_code)
        for supervisor in self._started:
            supervisor.wait()
        return 1 if 1 in codes else max(codes, default=0)


class QueueReporter:
    """Prints what a run is waiting for, and when it starts."""

    def __init__(self, folder: RunFolder, screen: ProgressScreen) -> None:
        self._folder, self._screen = folder, screen
        self._reported, self._looked = "", 0.0

    def report_changes(self) -> None:
        """Report what has changed since the last call."""
        now = time.monotonic()
        if not self._folder.waits():
            self._report_start()
        elif now - self._looked >= QUEUE_POLL_SECONDS:
            self._looked = now
            self._report(waits_for(self._folder))

    def _report(self, words: str) -> None:
        if words and words != self._reported:
            first = not self._reported
            self._reported = words
            self._screen.line(
                f"{one_line(self._folder.name)} {words}{'; Ctrl-C removes it from the queue' if first else ''}"
            )

    def _report_start(self) -> None:
        if self._reported and self._folder.exit_record() is None:
            self._screen.line(f"{one_line(self._folder.name)} starts; Ctrl-C stops it")
        self._reported = ""


def waits_for(folder: RunFolder) -> str:
    """`waits for rte-3 and 1 more (1 of 2 in the queue)`; empty if it is not waiting."""
    if (job := folder.pending_job()) is not None:
        return one_line(job.describe_waiting())
    queue = queue_of(folder.path.parent)
    names = [run.name for run in queue.waiting]
    if folder.name not in names:
        return ""
    place = f"({names.index(folder.name) + 1} of {len(names)} in the queue)"
    awaited = queue.find_awaited_runs(folder)
    if not awaited:
        return f"is about to start {place}"
    more = f" and {len(awaited) - 1} more" if len(awaited) > 1 else ""
    return f"waits for {awaited[0].name}{more} {place}"


def report_outcome(outcome: RunOutcome, as_json: bool) -> int:
    """Print how a run ended and return the exit code. The last line on stderr says in one sentence why a run failed.

    If a command fixes the problem, it is on the line above.
    """
    if as_json:
        print(outcome.as_json(), flush=True)
    else:
        _print_outcome(outcome)
    if outcome.mend and outcome.state == "finished":
        print(f"{CHANCE}. {outcome.mend.describe()}: {outcome.mend.command(outcome.folder.path)}", file=sys.stderr)
    if outcome.exit_code:
        if outcome.mend:
            words = outcome.mend.describe()
            by = outcome.mend.command(outcome.folder.path)
            print(f"{words[0].lower()}{words[1:]} by: {by}", file=sys.stderr)
        reason = outcome.message or "no reason given"
        hint = f". {outcome.hint}" if outcome.hint else ""
        print(f"{one_line(outcome.folder.name)} {outcome.state}: {reason.rstrip('.')}{hint}", file=sys.stderr)
    return outcome.exit_code


def _print_outcome(outcome: RunOutcome) -> None:
    if outcome.exit_code == 0:
        print(
            f"{outcome.state}: {format_metrics(outcome.metrics, outcome.intervals)}"
            if outcome.metrics
            else outcome.state
        )
        if outcome.state in ("stopped", "paused"):
            print(f"resume with  burnish resume {one_line(outcome.folder.name)}")
    print(f"run          {outcome.folder.path}")
    if outcome.folder.model.is_dir():
        print(f"model        {outcome.folder.model}")
    if outcome.predictions:
        print(f"predictions  {outcome.predictions}", flush=True)


def evaluation_line(evaluated: list[events.EvaluationFinished], trivial: dict[str, float]) -> str:
    """`after step 150: validation accuracy 0.83, loss 0.42, the best so far; train accuracy 0.86, loss 0.34`.

    What is no better than a rule without a model (`trivial`) is never called the best.
    """
    parts = [
        f"{one.split} {format_metrics(one.metrics)}"
        f"{', the best so far' if one.is_best and not is_at_chance(one.metrics, trivial) else ''}"
        for one in evaluated
    ]
    return f"after step {evaluated[0].step}: {'; '.join(parts)}"


def format_metrics(
    metrics: Mapping[str, float | None],
    intervals: Mapping[str, tuple[float, float]] | None = None,
    deviations: Mapping[str, float] | None = None,
) -> str:
    """Metrics on one line: `accuracy 0.872, loss 0.31`; loss comes last. Very many are shown without variants.

    With the standard deviations between seeds: `accuracy 0.872 ± 0.013 (0.84 to 0.904)`.
    """
    names = sorted(metrics, key=lambda name: name == "loss")
    if len(names) > MAX_METRICS:
        names = [name for name in names if not any(name.startswith(f"{other}_") for other in names)]
    more = f", and {len(metrics) - len(names)} more" if len(names) < len(metrics) else ""
    known, spread = intervals or {}, deviations or {}
    return ", ".join(f"{name} {sure_number(metrics[name], known.get(name), spread.get(name))}" for name in names) + more


def sure_number(value: float | None, interval: tuple[float, float] | None, deviation: float | None = None) -> str:
    """A number, its deviation and its interval, if it has them: `0.8828 (0.855 to 0.906)`."""
    words = number(value) if deviation is None else f"{number(value)} ± {deviation:.2g}"
    return words if interval is None else f"{words} ({interval[0]:.3g} to {interval[1]:.3g})"


def number(value: float | None) -> str:
    """Four significant digits; `nan` if there is no value."""
    return "nan" if value is None else f"{value:.4g}"
