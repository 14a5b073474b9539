"""Starts, resumes and stops runs through the same commands as on a terminal, without waiting for them."""

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QProcess, QTimer, Signal

from app.core import formatting
from app.core.backend_messages import translate_message
from app.core.i18n import tr
from app.services.backend_client import backend_process, last_line
from backend.contract.errors import InputError
from backend.contract.rpc.protocol import Progress
from backend.contract.run import queue
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import HERE, REQUESTS, RunFolder
from backend.contract.run.group import RunGroup
from backend.contract.run.lock import RunLocked

OnStarted = Callable[[str], None]
OnError = Callable[[str], None]
OnProgress = Callable[[Progress], None]
Cancel = Callable[[], None]
"""Ends what has not started yet; `on_error` is called with an empty sentence once that is over."""
CLOSE_MS = 600_000
"""How long a window that was closed waits, out of sight, for a run that is just being started: reading large data takes minutes."""
SLICE_MS = 100
"""Between two moments at which Python hears Ctrl-C meanwhile."""
CANCEL_MS = 30_000
"""How long a cancelled command may take to remove what it has sent."""
QUEUE, REPORT_PROGRESS = "--queue", "--report-progress"


def describe_sending(progress: Progress, machine: str) -> str:
    """`Sending data: 120 of 300 MB`."""
    stages = {
        "read": tr("Reading the files"),
        "send": tr("Sending data"),
        "fetch": tr("Copying from {machine}", machine=machine),
        "start": tr("Starting…") if machine == HERE else tr("Starting on {machine}…", machine=machine),
    }
    stage = stages.get(progress.part, progress.part)
    if not progress.done or progress.unit != "bytes":
        return stage
    if not progress.total:
        return tr("{stage}: {size}", stage=stage, size=formatting.megabytes(progress.done / 1e6))
    unit, size, digits = ("GB", 1e9, 1) if progress.total >= 1e9 else ("MB", 1e6, 0)
    done, total = (formatting.group_digits(value / size, digits) for value in (progress.done, progress.total))
    return tr("{stage}: {done} of {total} {unit}", stage=stage, done=done, total=total, unit=unit)


@dataclass(frozen=True)
class Consent:
    """This user's consents for one run; those to run code are stored where the backend looks them up."""

    convert_weights: bool = False
    code_there: bool = False
    """To run the model's own code on the machine where the run starts: those are kept there."""

    def options(self) -> list[str]:
        """The consents as command-line options."""
        given = (("--convert-weights", self.convert_weights), ("--trust-remote-code", self.code_there))
        return [option for option, is_given in given if is_given]


NO_CONSENT = Consent()


@dataclass
class _Start:
    """A run that is being started: its name, and the temporary file of its spec, if any."""

    name: str
    spec: Path | None = None
    is_cancelled: bool = False

    def clean_up(self) -> None:
        if self.spec is not None:
            self.spec.unlink(missing_ok=True)


class Jobs(QObject):
    """Starts runs. Each run belongs to its own supervisor: closing the window does not affect it."""

    started = Signal(str)
    """The folder of a run that was started or resumed."""

    def __init__(self, environment: Callable[[], Mapping[str, str]] = dict, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._environment = environment
        self._starting: dict[QProcess, _Start] = {}

    @property
    def busy(self) -> bool:
        """Whether a run is being started."""
        return bool(self._starting)

    def unfinished(self) -> str:
        """What would go unreported if the window were closed, as a sentence; empty if nothing."""
        names = [start.name for start in self._starting.values()]
        if not names:
            return ""
        return tr(
            "“{name}” is starting. It will start even if you close Burnish now; you'll find it under Runs.",
            name=tr(" and ").join(names),
        )

    def start(
        self,
        spec: Mapping[str, Any],
        on_started: OnStarted,
        on_error: OnError,
        consent: Consent = NO_CONSENT,
        *,
        queue: bool = False,
        machine: str = "",
        on_progress: OnProgress | None = None,
    ) -> Cancel:
        """Start a run, or a search, from a complete spec; `on_error` gets the sentence that the command line would print.

        With `queue` it starts when the others are over, with `machine` on another computer: then `on_progress` gets how much has
        been sent there.
        """
        path, options = _write_spec(spec), [*consent.options(), *([QUEUE] if queue else [])]
        options += ["--on", machine, REPORT_PROGRESS] if machine else []
        start = _Start(str(spec.get("name") or tr("The new run")), path)
        return self._launch(
            [_command(spec), str(path), "--detach", "--json", *options], on_started, on_error, start, on_progress
        )

    def extend(self, search: Path | str, trials: int, on_started: OnStarted, on_error: OnError) -> None:
        """Continue a search until it has tried so many combinations of settings in all."""
        start = _Start(RunFolder(search).name)
        arguments = ["search", str(search), "--trials", str(trials), "--detach", "--json"]
        self._launch(arguments, on_started, on_error, start)

    def resume(
        self,
        run: Path | str,
        on_started: OnStarted,
        on_error: OnError,
        engine: str = "",
        *,
        machine: str = "",
        consent: Consent = NO_CONSENT,
        on_progress: OnProgress | None = None,
    ) -> Cancel:
        """Resume a run from its last checkpoint; with another engine, the user has agreed to its new optimizer.

        With `machine` it is moved there first, or here (`contract.machines.HERE`).
        """
        options = ["--engine", engine, "--new-optimizer"] if engine else []
        options += ["--on", machine, REPORT_PROGRESS, *consent.options()] if machine else []
        start = _Start(RunFolder(run).name)
        return self._launch(
            ["resume", str(run), "--detach", "--json", *options], on_started, on_error, start, on_progress
        )

    def fix(
        self,
        run: Path | str,
        fix: RunFix,
        on_started: OnStarted,
        on_error: OnError,
        consent: Consent = NO_CONSENT,
    ) -> None:
        """Apply a fix to a failed run: resume it with other settings, or start a new one from its spec."""
        options = [one for one in consent.options() if one not in fix.arguments(Path(run))]
        start = _Start(RunFolder(run).name)
        self._launch([*fix.arguments(Path(run)), "--detach", "--json", *options], on_started, on_error, start)

    def request(self, run: Path | str, kind: str) -> str:
        """Ask an active run, or all of a group, to stop, pause or checkpoint; returns why that failed, or empty."""
        assert kind in REQUESTS, kind
        group = RunGroup(run)
        try:
            runs = [one for one in group.made_runs() if one.life() == "alive"] if group.exists() else [RunFolder(run)]
            for one in sorted(
                runs, key=RunFolder.waits, reverse=True
            ):  # those in the queue first, else the next would start
                one.request(kind)
        except InputError as error:
            return translate_message(str(error))
        except OSError as error:
            return tr("Couldn't {kind} the run: {strerror}: {run}", kind=kind, strerror=error.strerror, run=run)
        return ""

    def waits(self, run: Path | str) -> bool:
        """Whether a run is queued."""
        return RunFolder(run).is_queued()

    def find_awaited_runs(self, run: Path | str) -> list[RunFolder]:
        """What a queued run is waiting for."""
        return queue.queue_of(Path(run).parent).find_awaited_runs(RunFolder(run))

    def start_now(self, run: Path | str) -> str:
        """Start a queued run regardless of others; returns why that failed, or empty."""
        try:
            queue.start_now(RunFolder(run))
        except OSError as error:
            return tr("Couldn't start the run: {strerror}: {run}", strerror=error.strerror, run=run)
        return ""

    def move_in_queue(self, run: Path | str, places: int) -> str:
        """Move a queued run by as many places, forward by negative ones; returns why that failed, or empty."""
        try:
            place = queue.move(RunFolder(run), places)
        except RunLocked:
            return tr("Another run is about to start. Try again.")
        except OSError as error:
            return tr("Couldn't move the run: {strerror}: {run}", strerror=error.strerror, run=run)
        return "" if place is not None else tr("The run is not queued.")

    def close(self) -> None:
        """Let runs that are being started continue; wait for nothing else and report nothing."""
        starting, self._starting = self._starting, {}
        end = time.monotonic() + CLOSE_MS / 1000
        for process, start in starting.items():
            while not process.waitForFinished(SLICE_MS):
                if time.monotonic() >= end:
                    process.kill()  # a supervisor that it has started survives in its own session
                    process.waitForFinished()
                    break
            start.clean_up()

    def _launch(
        self,
        arguments: list[str],
        on_started: OnStarted,
        on_error: OnError,
        start: _Start,
        on_progress: OnProgress | None = None,
    ) -> Cancel:
        process = backend_process(arguments, self._environment(), self)
        self._starting[process] = start
        printed: list[str] = []

        def read() -> None:
            while process.canReadLine():
                line = bytes(process.readLine().data()).decode("utf-8", "replace")
                progress = _progress(line)
                if progress is None:
                    printed.append(line)
                elif on_progress is not None and not start.is_cancelled:
                    on_progress(progress)

        def cancel() -> None:
            if process in self._starting and not start.is_cancelled:
                start.is_cancelled = True
                process.terminate()
                QTimer.singleShot(CANCEL_MS, process, process.kill)

        def on_ended() -> None:
            if process not in self._starting:
                return
            del self._starting[process]
            start.clean_up()
            read()
            printed.append(bytes(process.readAllStandardOutput().data()).decode("utf-8", "replace"))
            run, sentence = _result("".join(printed), process)
            process.deleteLater()
            if run:
                self.started.emit(run)
                on_started(run)
            else:
                on_error("" if start.is_cancelled else sentence)

        process.readyReadStandardOutput.connect(read)
        process.finished.connect(on_ended)
        process.errorOccurred.connect(
            lambda error: on_ended() if error == QProcess.ProcessError.FailedToStart else None
        )
        process.start()
        return cancel


def _write_spec(spec: Mapping[str, Any]) -> Path:
    """The spec in a temporary file; JSON is YAML 1.2, so no YAML writer is needed here."""
    with tempfile.NamedTemporaryFile("w", prefix="burnish-", suffix=".yaml", delete=False, encoding="utf-8") as file:
        json.dump(spec, file, ensure_ascii=False)
    return Path(file.name)


def _command(spec: Mapping[str, Any]) -> str:
    return "search" if spec.get("search") else "train"


def _progress(line: str) -> Progress | None:
    """What a line of a command says of its progress; None for any other line."""
    try:
        return msgspec.convert(json.loads(line)["progress"], Progress)
    except (ValueError, KeyError, TypeError):
        return None


def _result(printed: str, process: QProcess) -> tuple[str, str]:
    """The run's folder, or the sentence that says why there is none."""
    output = bytes(process.readAllStandardError().data()).decode("utf-8", "replace")
    try:
        found = json.loads(last_line(printed))
        return str(found["run"] if "run" in found else found["search"]), ""
    except (ValueError, KeyError, TypeError):
        return "", translate_message(last_line(output)) or tr(
            "Couldn't start the run, for an unknown reason. Run `burnish doctor` to check your setup."
        )
