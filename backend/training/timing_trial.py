"""Measures how long a run takes: it trains some of its rows, in a process and a folder that are gone afterwards."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from backend import process_tree
from backend.contract import places, spec_file
from backend.contract.catalog import Device
from backend.contract.errors import InputError, RunFailed
from backend.contract.messages import message
from backend.contract.processes import python_command
from backend.contract.redaction import redact
from backend.contract.rpc.protocol import Progress
from backend.contract.run.cost import MeasuredTime
from backend.contract.run.event_summary import EventSummary
from backend.contract.run.events import AnyEvent, ProgramCompiled, RunFinished, StageStarted, StepFinished
from backend.contract.run.folder import ProcessRecord, RunFolder, boot_id, host_id
from backend.contract.spec import RunSpec
from backend.hardware.devices import count_hosts, count_processes
from backend.preflight import auto_settings, cost
from backend.training.failures.failure import UNKNOWN
from backend.training.failures.out_of_memory import MESSAGE

KILLED = -9
"""The exit code of a killed process: if Burnish did not kill it, memory ran out."""
STAGES = ("", "finding model", "loading data", "tokenising", "loading model", "training", "evaluating", "saving")
SETTINGS = {
    "training.max_steps": 10**9,
    "training.checkpoint_every": "never",
    "training.early_stopping": None,
    "evaluation.every": "never",
    "evaluation.at_start": False,
    "evaluation.best_metric": None,
    "evaluation.max_rows": None,
    "evaluation.train_rows": 0,
}
"""It trains until it is asked to stop; then it saves a checkpoint, evaluates some rows and saves the model."""
LEAST_STEPS, TRAINING_SECONDS = 4, 5.0
"""The steps and seconds that a trial trains at least, compiling excluded."""
MAX_SECONDS = 30.0
"""A trial trains no longer than this, compiling included, once there are two steps."""
POLL_SECONDS = 0.1


def measure(spec: RunSpec, devices: list[Device], report: Callable[[Progress], None]) -> MeasuredTime:
    """Measure `spec` in a separate process; if its memory is not enough, find what would need less.

    It inherits the caller's priority, so a low-priority caller measures too long a time.
    Raises InputError for a spec that cannot be trained or does not fit, RunFailed if training fails. However it ends,
    by an exception of `report` too, neither a process nor a file is left.
    """
    if count_processes(spec.hardware) > 1 or count_hosts(spec.hardware) > 1:
        raise InputError(
            "training on several processes or hosts cannot be measured with a single process; the first run shows "
            "how long it takes",
            "hardware.processes",
        )
    planned = cost.plan(spec, devices)
    if planned.problems:
        raise InputError(planned.problems[0])
    with _start_process(auto_settings.with_chosen(spec, planned.auto)) as (process, folder):
        end = _follow(process, folder, report)
        code, words = process.wait(), _last_line(folder)
    if end is None and code != KILLED:
        raise RunFailed(
            "the measuring process exited with code {code}: {words}",
            code=code,
            words=words or message("no reason given"),
        )
    if end is None or end.code == "out_of_memory":
        remedies = cost.plan(spec, devices, is_too_much=True).remedies
        return MeasuredTime(shortage=end.message if end else MESSAGE, remedies=remedies)
    if end.state == "failed":
        raise as_error(end)
    return MeasuredTime()


def as_error(end: RunFinished) -> InputError | RunFailed:
    """The exception for a failed trial: invalid input as it was found, with its setting.

    Without hints about resuming or the log: a trial leaves neither a checkpoint nor a folder.
    """
    if end.code == "input":
        return InputError(end.message, end.field or None, at_line=end.line or None)
    is_of_a_run = end.code == UNKNOWN or (end.mend is not None and end.mend.resume)
    return RunFailed(end.message, end.code, hint="" if is_of_a_run else end.hint)


@contextmanager
def _start_process(spec: RunSpec) -> "Iterator[tuple[subprocess.Popen[bytes], RunFolder]]":
    places.remove_leftover_scratch({process.pid for process in process_tree.processes()})
    places.remove_scratch(os.getpid())  # of a killed process that had the same number
    folder = RunFolder(places.scratch_folder(os.getpid()))
    folder.path.mkdir(parents=True)
    try:
        values = spec_file.set_values(spec.model_dump(mode="json"), SETTINGS)
        folder.spec.write_text(spec_file.dump(values), encoding="utf-8")
        folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), os.getpid(), 0, time.time()))
        with folder.log.open("wb") as log:
            process = subprocess.Popen(
                python_command("backend", "_measure", str(folder.path)),
                stdin=subprocess.PIPE,  # it ends when this is closed, because no one is waiting for it
                stdout=log,
                stderr=log,
                start_new_session=True,  # as a run: Linux shares the processor out by sessions
                env={**os.environ, **spec.hardware.environment},
            )
        try:
            yield process, folder
        finally:
            for pid in process_tree.descendants(process.pid):
                process_tree.kill(pid)
            process.kill()
            process.wait()
            assert process.stdin
            process.stdin.close()
    finally:
        places.remove_scratch(os.getpid())


def _follow(
    process: "subprocess.Popen[bytes]", folder: RunFolder, report: Callable[[Progress], None]
) -> RunFinished | None:
    """Report progress until the process ends, and request a stop when enough was trained.

    Returns the event that ends it; None if the process was killed or crashed.
    """
    summary, trial = EventSummary(folder.events), TrialProgress()
    is_over = stop_requested = False
    while not is_over:
        is_over = process.poll() is not None  # before the last events are read
        for event in summary.read():
            trial.apply(event)
        report(trial.progress())
        if trial.has_trained_enough() and not stop_requested:
            stop_requested = True
            folder.request("stop")
        if not is_over:
            time.sleep(POLL_SECONDS)
    return trial.end


class TrialProgress:
    """How far the run is, by its events."""

    def __init__(self) -> None:
        self.end: RunFinished | None = None
        self._stage, self._step = "", 0
        self._since = self._now = self._compiling = 0.0

    def apply(self, event: AnyEvent) -> None:
        """Update the progress by the next event."""
        self._now = event.time
        match event:
            case StageStarted(stage=stage) if stage in STAGES:
                self._stage = stage
                self._since = self._since or (event.time if stage == "training" else 0.0)
            case ProgramCompiled(seconds=seconds) if self._since:
                self._compiling += seconds
            case StepFinished(step=step):
                self._step = step
            case RunFinished():
                self.end = event
            case _:
                pass

    @property
    def _trained(self) -> float:
        return self._now - self._since if self._stage == "training" else 0.0

    def has_trained_enough(self) -> bool:
        """Whether the steps tell how long others will take."""
        if self._step >= LEAST_STEPS and self._trained - self._compiling >= TRAINING_SECONDS:
            return True
        return self._step >= 2 and self._trained >= MAX_SECONDS

    def progress(self) -> Progress:
        """The stage, and the seconds of training."""
        seconds = (min(self._trained, TRAINING_SECONDS), TRAINING_SECONDS) if self._stage == "training" else (0, 0)
        return Progress(STAGES.index(self._stage), len(STAGES), "", "", self._stage, *seconds)


def _last_line(folder: RunFolder) -> str:
    lines = folder.log.read_text(encoding="utf-8", errors="replace").splitlines()
    return redact(next((line.strip() for line in reversed(lines) if line.strip()), ""))
