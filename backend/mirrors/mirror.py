"""Sends a run's curves to a tracker while the run grows, from its events alone; the run knows nothing of it.

Which trackers a user has is described in `trackers.yaml` in the configuration folder. It holds no secrets: tokens come from
where each tracker's own library looks for them. What has been sent is kept in the cache, by run and tracker.
"""

import hashlib
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from filelock import FileLock, Timeout
from pydantic import Field

from backend import registry
from backend.contract import places, spec_file
from backend.contract.errors import InputError, RunFailed
from backend.contract.messages import message
from backend.contract.processes import STARTED_BY_AGENT, python_command
from backend.contract.redaction import redact
from backend.contract.run import events
from backend.contract.run.comparison import flatten
from backend.contract.run.curves import CurveEvent
from backend.contract.run.events import LONGEST_LINE_BYTES, EventReader
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import open_unlinked, read_regular, write_whole
from backend.contract.spec.section import Section, validate

POLL_SECONDS = 1.0
RETRY_SECONDS = (1.0, 60.0)
"""The first wait after a problem, which doubles each time up to the second."""
PATIENCE_SECONDS = 300.0
"""How long a tracker that does not answer is tried again after the run has ended."""
LOCK_SECONDS = 1.0
"""How long to wait for another sender, which may be about to end."""
MAX_STATE = 100_000
_NAME_SAFE = re.compile(r"[^\w./ -]")


class TrackerSettings(Section):
    """The settings that every tracker has."""

    every_run: bool = Field(False, title="Every run")
    """Send every run that is started on this computer, from its first step."""


@dataclass(frozen=True)
class RunDescription:
    """A run as a tracker is told of it."""

    name: str
    settings: dict[str, Any]
    """Its spec as dotted key → number or text."""
    started: float
    """Seconds since 1970."""


class Writer(Protocol):
    """A run that is open in a tracker. Its methods may raise any exception; the curves are sent again later."""

    id: str
    """By which the tracker's run is found again."""

    def write(self, step: int, time: float, values: Mapping[str, float]) -> None:
        """Add a point to some curves; values may be NaN or infinite."""
        ...

    def rewind(self, step: int) -> bool:
        """Drop all points after this step, from which a resumed run continues; False if the tracker cannot."""
        ...

    def flush(self) -> None:
        """Return when everything that was written has been sent."""
        ...

    def close(self, state: str) -> None:
        """End the run in the tracker, in a state of `RunFinished`; empty if it is unknown."""
        ...


class Tracker(Protocol):
    """A tracker; a module of `backend.mirrors` exports it as `MIRROR`, another package as entry point `burnish.mirrors`."""

    title: ClassVar[str]
    description: ClassVar[str]
    Settings: ClassVar[type[TrackerSettings]]

    def check(self, settings: Any) -> None:
        """Raises InputError if the library is missing or the settings cannot work."""
        ...

    def open(self, run: RunDescription, settings: Any, run_id: str) -> Writer:
        """Start this run in the tracker, or continue the one with this id. Raises InputError, or what the library raises."""
        ...


@dataclass
class SendingState:
    """How much of a run has been sent to a tracker; kept as JSON."""

    beginning: str = ""
    """The digest of the first event: a new run may have the folder of a deleted one."""
    offset: int = 0
    """Bytes of events.jsonl."""
    run_id: str = ""
    sent: dict[str, int] = field(default_factory=dict)
    """Curve → its last step."""
    problem: str = ""
    """Why nothing can be sent at present."""


def trackers_file() -> Path:
    """The file that describes the user's trackers."""
    return places.config_folder() / "trackers.yaml"


def read_trackers() -> dict[str, TrackerSettings]:
    """The settings of every tracker that is set up, by name. Raises InputError that names the mistake."""
    path = trackers_file()
    if not path.exists():
        return {}
    values = spec_file.read(path)
    return {name: _validate(name, values[name] or {}) for name in sorted(values)}


def check_settings(name: str, values: Any) -> TrackerSettings:
    """These settings of a tracker, if they can work now. Raises InputError."""
    settings = _validate(name, values)
    _find(name).check(settings)
    return settings


def _find(name: str) -> Tracker:
    return registry.find("mirror", name, "tracker")


def _validate(name: str, values: Any) -> TrackerSettings:
    tracker = _find(name)
    if not isinstance(values, dict):
        raise InputError("{name}: write its settings as key: value", name=name)
    return validate(tracker.Settings, values, name)


def write_trackers(trackers: Mapping[str, TrackerSettings]) -> None:
    """Replace the file; whatever equals a default is left out."""
    path = trackers_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {name: settings.model_dump(exclude_defaults=True) for name, settings in sorted(trackers.items())}
    write_whole(path, spec_file.dump(values).encode(), 0o600)


def find_tracker(name: str) -> TrackerSettings:
    """The settings of a tracker. Raises InputError that names those there are."""
    trackers = read_trackers()
    if name not in trackers:
        _find(name)
        raise InputError("{name} is not set up; run: burnish trackers add {name}", name=name)
    return trackers[name]


def start_sending(folder: RunFolder) -> list[str]:
    """Start a process for each tracker that gets every run; returns what is wrong, a sentence each."""
    if not trackers_file().exists() or _is_sent_elsewhere(folder):
        return []
    try:
        names = [name for name, settings in read_trackers().items() if settings.every_run]
    except InputError as error:
        return [message("nothing is sent to a tracker: {error}", error=error)]
    for name in names:
        subprocess.Popen(
            python_command("backend", "trackers", "send", str(folder.path), name),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        ).returncode = 0  # it outlives this process on purpose
    return []


def _is_sent_elsewhere(folder: RunFolder) -> bool:
    """Whether another process sends the run: that of its copy, if it was started from another computer, or its first host's."""
    is_in_job = folder.job_record() is not None and folder.remote_run() is None
    return is_in_job or STARTED_BY_AGENT in os.environ or folder.main_folder().path != folder.path


def send(folder: RunFolder, name: str, report: Callable[[str], None] = lambda _: None) -> SendingState:
    """Send what a run has recorded and will record, until it ends; what was sent before is not sent again.

    `report` takes sentences. Raises InputError if there is nothing to send or someone else is sending it, RunFailed if
    the tracker does not answer for minutes after the run has ended.
    """
    settings = find_tracker(name)
    tracker = _find(name)
    tracker.check(settings)
    try:
        with FileLock(_state_path(folder, name).with_suffix(".lock"), timeout=LOCK_SECONDS):
            return _Sender(folder, name, settings, report).follow()
    except Timeout:
        raise InputError("{run} is already being sent to {title}", run=folder.name, title=tracker.title) from None


def sending_state(folder: RunFolder, name: str) -> SendingState:
    """How much of the run was sent to this tracker; nothing if the record cannot be read."""
    try:
        return SendingState(**json.loads(read_regular(_state_path(folder, name), MAX_STATE)))
    except (OSError, ValueError, TypeError):
        return SendingState()


def _state_path(folder: RunFolder, name: str) -> Path:
    place = hashlib.sha256(os.fsencode(folder.path.absolute())).hexdigest()[:32]
    return places.private_folder("trackers") / f"{place}-{name}.json"


class _Sender:
    """Reads new events, writes them to the tracker, and remembers how far it came."""

    def __init__(self, folder: RunFolder, name: str, settings: TrackerSettings, report: Callable[[str], None]) -> None:
        self._folder, self._name, self._settings, self._report = folder, name, settings, report
        self._tracker = _find(name)
        self._state = sending_state(folder, name)
        self._writer: Writer | None = None
        self._is_open = False
        """Whether the run is open in the tracker, be it that its writer has failed since."""
        self._ended = ""
        """The state that the last attempt ended with."""

    def follow(self) -> SendingState:
        """Send until the run is over and everything has arrived."""
        wait, deadline = RETRY_SECONDS[0], None
        while True:
            is_alive = self._folder.life() == "alive"  # looked at before the last read, so that no event is missed
            try:
                if not self._send_new() and not is_alive:
                    self._close()  # meanwhile an attempt may have started, whose own sender gave way to this one
                    if self._folder.life() != "alive" and not self._send_new():
                        return self._state
            except InputError:
                raise
            except Exception as error:  # other people's libraries raise anything, and the network does
                self._note(error)
                if is_alive:
                    deadline = None
                elif deadline is None:
                    deadline = time.monotonic() + PATIENCE_SECONDS
                elif time.monotonic() > deadline:
                    raise RunFailed(
                        "{title} does not answer: {problem}; send the rest later with: burnish trackers send {run} {name}",
                        "tracker",
                        title=self._tracker.title,
                        problem=self._state.problem,
                        run=self._folder.name,
                        name=self._name,
                    ) from None
                time.sleep(wait)
                wait = min(2 * wait, RETRY_SECONDS[1])
                continue
            wait, deadline = RETRY_SECONDS[0], None
            if is_alive:
                time.sleep(POLL_SECONDS)

    def _send_new(self) -> int:
        """Send the events since the last call; returns how many bytes they took."""
        self._restart_if_replaced()
        reader = EventReader(self._folder.events, self._state.offset)
        for event in reader.read():
            self._send(event)
        taken = reader.offset - self._state.offset
        if not taken:
            return 0
        self._open().flush()
        self._state.offset = reader.offset
        self._state.problem = ""
        self._save()
        return taken

    def _restart_if_replaced(self) -> None:
        try:
            with open_unlinked(self._folder.events) as file:
                beginning = hashlib.sha256(file.readline(LONGEST_LINE_BYTES)).hexdigest()
                if beginning != self._state.beginning or self._state.offset > file.seek(0, os.SEEK_END):
                    self._state, self._writer = SendingState(beginning), None
        except FileNotFoundError:
            return

    def _send(self, event: events.AnyEvent) -> None:
        if isinstance(event, events.RunResumed):
            if self._state.sent and self._open().rewind(event.from_step):
                self._state.sent = {curve: min(step, event.from_step) for curve, step in self._state.sent.items()}
        elif isinstance(event, events.RunFinished):
            self._ended = event.state
        elif isinstance(event, CurveEvent):
            # A resumed run repeats steps; a tracker that cannot forget keeps what it has.
            curve = event.split if isinstance(event, events.EvaluationFinished) else type(event).__name__
            if event.step > self._state.sent.get(curve, -1):
                self._write(event.step, event.time, scalars(event))
                self._state.sent[curve] = event.step
        elif isinstance(event, events.PredictionsWritten) and event.metrics:
            self._write(max(self._state.sent.values(), default=0), event.time, _final_scalars(event))

    def _write(self, step: int, at: float, values: Iterator[tuple[str, float | None]]) -> None:
        self._open().write(
            step, at, {_NAME_SAFE.sub("_", name): float("nan") if value is None else value for name, value in values}
        )

    def _open(self) -> Writer:
        if self._writer is None:
            self._writer = self._tracker.open(_describe_run(self._folder), self._settings, self._state.run_id)
            self._state.run_id = self._writer.id
            self._is_open = True
            self._save()
        return self._writer

    def _close(self) -> None:
        if self._is_open:
            self._open().close(self._ended)
            self._writer, self._is_open = None, False
            self._state.problem = ""
            self._save()
        elif not self._state.offset:
            raise InputError("{run}: this run has recorded nothing yet; start it first", run=self._folder.name)

    def _note(self, error: Exception) -> None:
        reason = next(iter(redact(str(error)).splitlines()), "") or type(error).__name__
        if reason != self._state.problem:
            self._report(message("{title}: {reason}; trying again", title=self._tracker.title, reason=reason))
        # Whatever was written since the last flush is written again.
        kept = sending_state(self._folder, self._name)
        self._state, self._writer = kept if kept.beginning else self._state, None
        self._state.problem = reason
        self._save()

    def _save(self) -> None:
        path = _state_path(self._folder, self._name)
        write_whole(path, json.dumps(asdict(self._state)).encode(), 0o600, durable=False)


def _describe_run(folder: RunFolder) -> RunDescription:
    first = next(iter(EventReader(folder.events).read()), None)
    settings: dict[str, Any] = {}
    with suppress(InputError):
        for key, value in flatten(spec_file.read_run(folder.spec)):
            if value not in (None, "", [], {}):
                settings[key] = value if isinstance(value, int | float | str) else json.dumps(value, default=str)
    return RunDescription(folder.path.name, settings, first.time if first is not None else time.time())


def scalars(event: CurveEvent) -> Iterator[tuple[str, float | None]]:
    """Values by curve, such as `train/loss` and `validation/accuracy`."""
    if isinstance(event, events.StepFinished):
        yield "train/loss", event.loss
        yield "train/learning_rate", event.learning_rate
        yield "train/epoch", event.epoch
        if event.gradient_norm is not None:
            yield "train/gradient_norm", event.gradient_norm
        if event.seconds > 0:
            yield "speed/rows_per_second", event.rows / event.seconds
            yield "speed/tokens_per_second", event.tokens / event.seconds
    elif isinstance(event, events.EvaluationFinished):
        for name, value in event.metrics.items():
            yield f"{event.split}/{name}", value
    else:
        yield "memory/process_mb", event.memory_mb
        if event.device_memory_mb is not None:
            yield "memory/device_mb", event.device_memory_mb


def _final_scalars(event: events.PredictionsWritten) -> Iterator[tuple[str, float | None]]:
    """The scores of the final predictions, with the 95 % interval of each: `final/validation/accuracy_low`."""
    for name, value in event.metrics.items():
        yield f"final/{event.split}/{name}", value
        if name in event.intervals:
            low, high = event.intervals[name]
            yield f"final/{event.split}/{name}_low", low
            yield f"final/{event.split}/{name}_high", high


def check_address(address: str, key: str) -> None:
    """Raises InputError for an address that contains a password, or that offline mode forbids."""
    parts = urlsplit(address)
    if parts.password or parts.username:
        raise InputError(
            "{key}: leave name and password out of the address; the tracker's library reads them from the environment",
            key,
            key=key,
        )
    if places.is_offline() and parts.hostname not in (None, "localhost", "127.0.0.1", "::1"):
        raise InputError("{key}: offline mode is on; turn it off, or use an address on this computer", key, key=key)


def import_library(module: str, title: str) -> Any:
    """A module of a tracker's library, which the extra `trackers` installs. Raises InputError."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            "{title} needs a package that is not installed ({error}); install it with: pip install 'burnish[{extra}]'",
            title=title,
            error=error,
            extra="trackers",
        ) from None
