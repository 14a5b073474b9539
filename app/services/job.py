"""Starts, resumes and stops runs through the same commands as on a terminal, without waiting for them."""

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QProcess, Signal

from app.core.backend_messages import translate_message
from app.core.i18n import tr
from app.services.backend_client import backend_process, last_line
from backend.contract.errors import InputError
from backend.contract.run import queue
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import REQUESTS, RunFolder
from backend.contract.run.group import RunGroup
from backend.contract.run.lock import RunLocked

OnStarted = Callable[[str], None]
OnError = Callable[[str], None]
CLOSE_MS = 600_000
"""How long a window that was closed waits, out of sight, for a run that is just being started: reading large data takes minutes."""
SLICE_MS = 100
"""Between two moments at which Python hears Ctrl-C meanwhile."""
QUEUE = "--queue"


@dataclass(frozen=True)
class Consent:
    """This user's consents for one run; those to run code are stored where the backend looks them up."""

    convert_weights: bool = False

    def options(self) -> list[str]:
        """The consents as command-line options."""
        return ["--convert-weights"] if self.convert_weights else []


NO_CONSENT = Consent()


@dataclass(frozen=True)
class _Start:
    """A run that is being started: its name, and the temporary file of its spec, if any."""

    name: str
    spec: Path | None = None

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
    ) -> None:
        """Start a run from a complete spec; `on_error` gets the sentence that the command line would print.

        With `queue` it starts when the others are over, with `machine` on another computer.
        """
        path, options = _write_spec(spec), [*consent.options(), *([QUEUE] if queue else [])]
        options += ["--on", machine] if machine else []
        start = _Start(str(spec.get("name") or tr("The new run")), path)
        self._launch(["train", str(path), "--detach", "--json", *options], on_started, on_error, start)

    def resume(self, run: Path | str, on_started: OnStarted, on_error: OnError, engine: str = "") -> None:
        """Resume a run from its last checkpoint; with another engine, the user has agreed to its new optimizer."""
        other = ["--engine", engine, "--new-optimizer"] if engine else []
        start = _Start(RunFolder(run).name)
        self._launch(["resume", str(run), "--detach", "--json", *other], on_started, on_error, start)

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

    def _launch(self, arguments: list[str], on_started: OnStarted, on_error: OnError, start: _Start) -> None:
        process = backend_process(arguments, self._environment(), self)
        self._starting[process] = start

        def on_ended() -> None:
            if process not in self._starting:
                return
            del self._starting[process]
            start.clean_up()
            run, sentence = _result(process)
            process.deleteLater()
            if run:
                self.started.emit(run)
                on_started(run)
            else:
                on_error(sentence)

        process.finished.connect(on_ended)
        process.errorOccurred.connect(
            lambda error: on_ended() if error == QProcess.ProcessError.FailedToStart else None
        )
        process.start()


def _write_spec(spec: Mapping[str, Any]) -> Path:
    """The spec in a temporary file; JSON is YAML 1.2, so no YAML writer is needed here."""
    with tempfile.NamedTemporaryFile("w", prefix="burnish-", suffix=".yaml", delete=False, encoding="utf-8") as file:
        json.dump(spec, file, ensure_ascii=False)
    return Path(file.name)


def _result(process: QProcess) -> tuple[str, str]:
    """The run's folder, or the sentence that says why there is none."""
    printed = bytes(process.readAllStandardOutput().data()).decode("utf-8", "replace")
    output = bytes(process.readAllStandardError().data()).decode("utf-8", "replace")
    try:
        return str(json.loads(last_line(printed))["run"]), ""
    except (ValueError, KeyError, TypeError):
        return "", translate_message(last_line(output)) or tr(
            "Couldn't start the run, for an unknown reason. Run `burnish doctor` to check your setup."
        )
