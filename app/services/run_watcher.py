"""Watches run folders: one with its new events, log lines and state, or several being compared."""

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.backend_messages import translate_message
from app.core.i18n import tr
from app.core.runs.diagnosis import doubt
from app.core.runs.run_library import changed_at, file_stamp, has_settled
from app.core.runs.run_state import RunState
from app.core.runs.run_status import RunStatus, look_at
from backend.contract.errors import InputError
from backend.contract.run import events
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import open_unlinked

DRAIN_SECONDS = 0.005
"""The longest time a tick spends on events, so that the window stays smooth."""
CHUNK_BYTES = 16_000
"""About a hundred events, half a millisecond."""
IDLE_MS = 100
BUSY_MS = 8
OVER_MS = 1000
"""Of a run that is over, until it is resumed."""
LIFE_SECONDS = 1.0
LOG_BYTES = 64_000
"""At most so much of `process.log` is read at a time; of an old log only the tail."""


class RunWatcher(QObject):
    """Watches a run. A finished run is one that has stopped growing."""

    advanced = Signal()
    """New events are in `state`."""
    restarted = Signal()
    """`state` is another object, as `events.jsonl` was replaced by a shorter file."""
    logged = Signal(list)
    """New lines of `process.log`."""
    outcome_changed = Signal(object)
    """A `RunStatus`."""
    caught_up = Signal()
    """Everything that was on disk is in `state`; once."""
    settled = Signal()
    """The run is over, and everything of it has been read."""
    vanished = Signal(str)
    """The folder is gone, or is not one that can be watched; one sentence."""

    def __init__(self, path: Path | str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.folder = RunFolder(path)
        self.state = RunState()
        self.outcome = RunStatus("starting")
        self.is_caught_up = False
        self.is_gone = self._is_checked = False
        self._offset = 0
        self._log_offset: int | None = None
        self._life_looked = 0.0
        self._settled: tuple[int, ...] = ()
        """When folder, events and log had last changed, if the run was over and nothing of it unread."""
        self._timer = QTimer(self, interval=BUSY_MS)
        self._timer.timeout.connect(self._on_tick)
        self._timer.start()

    def stop(self) -> None:
        """Stop watching."""
        self._timer.stop()

    def continue_watching(self) -> None:
        """Read what has come since `stop`."""
        self.refresh_now()
        self._timer.start()

    def refresh_now(self) -> None:
        """Check whether the run is alive at the next tick, for example after a request."""
        self._life_looked, self._settled = 0.0, ()
        self._timer.setInterval(BUSY_MS)

    def _on_tick(self) -> None:
        stamps = self._stamps()
        if stamps == self._settled:
            return
        if reason := self._why_unwatchable():
            self._timer.stop()
            self.is_gone = True
            if self.outcome.alive:
                self.outcome = RunStatus("lost")  # whatever still runs there can no longer be followed
            self.vanished.emit(reason)
            return
        more = self._drain()
        logged = self._read_log()
        if not more and not self.is_caught_up:
            self.is_caught_up = True
            self._life_looked = 0.0
            self._check_alive()
            self.caught_up.emit()
        self._check_alive()
        self._timer.setInterval(BUSY_MS if more else IDLE_MS if self.outcome.alive else OVER_MS)
        is_over = not more and not logged and not self.outcome.alive
        self._settled = stamps if is_over and has_settled(stamps[0]) else ()
        if self._settled:
            self.settled.emit()

    def _stamps(self) -> tuple[int, ...]:
        """Timestamps of folder and files: a resume changes the folder's, and manual edits show in the files."""
        return (changed_at(self.folder.path), *file_stamp(self.folder.events), *file_stamp(self.folder.log))

    def _why_unwatchable(self) -> str:
        if not self.folder.exists():
            fault = self.folder.fault()
            return translate_message(fault) if fault else tr("Run folder not found: {path}", path=self.folder.path)
        try:
            if not self._is_checked:
                self.folder.check()
        except InputError as error:
            return translate_message(str(error))
        self._is_checked = True
        return ""

    # Events

    def _drain(self) -> bool:
        """Read events until the time is up or the file ends; returns whether there is more."""
        end = time.perf_counter() + DRAIN_SECONDS
        took_any = False
        try:
            with open_unlinked(self.folder.events) as file:
                self._restart_if_shorter(file.seek(0, 2))
                file.seek(self._offset)
                while True:
                    took = self._take(file.read(CHUNK_BYTES), file)
                    took_any = took_any or took > 0
                    if took == 0 or time.perf_counter() >= end:
                        break
        except OSError:  # missing, or replaced by a link
            took = 0
            self._restart_if_shorter(0)
        if took_any:
            self.advanced.emit()
        return took > 0

    def _take(self, chunk: bytes, file: IO[bytes]) -> int:
        """Apply the complete lines of a chunk; a half-written last line stays on disk and is read again.

        So nothing outdated is kept: a half-written line that a resumed run removes is just not there at the next read.
        """
        while chunk and b"\n" not in chunk and len(chunk) < events.LONGEST_LINE_BYTES:
            longer = file.read(len(chunk))
            if not longer:
                break
            chunk += longer
        many, used = events.decode_lines(chunk)
        if used == 0 and len(chunk) >= events.LONGEST_LINE_BYTES:
            used = len(chunk)
        self.state.apply_all(many)
        self._offset += used
        file.seek(self._offset)
        return used

    def _restart_if_shorter(self, size: int) -> None:
        if size < self._offset:
            self._offset = 0
            self.state = RunState()
            self.restarted.emit()

    # The log

    def _read_log(self) -> bool:
        """Read a portion of new lines; returns whether there were any."""
        try:
            size = self.folder.log.stat().st_size
            if self._log_offset is None or size < self._log_offset:
                self._log_offset = max(0, size - LOG_BYTES)
            if size == self._log_offset:
                return False
            with open_unlinked(self.folder.log) as file:
                file.seek(self._log_offset)
                data = file.read(LOG_BYTES)
        except OSError:
            self._log_offset = None
            return False
        used = data.rfind(b"\n") + 1 or (len(data) if len(data) == LOG_BYTES else 0)
        if used:
            self._log_offset += used
            self.logged.emit(_lines(data[:used]))
        return used > 0

    # Life

    def _check_alive(self) -> None:
        now = time.monotonic()
        if now - self._life_looked < LIFE_SECONDS or not self.is_caught_up:
            return
        self._life_looked = now
        outcome = look_at(self.folder, self.state)
        if outcome.state == "finished":
            known = self.outcome.doubt if self.outcome.state == "finished" else doubt(self.state)
            outcome = replace(outcome, doubt=known)
        if outcome != self.outcome:
            self.outcome = outcome
            self.outcome_changed.emit(outcome)


def _lines(data: bytes) -> list[str]:
    """Whole lines; of a progress bar redrawn with carriage returns only the last state."""
    lines = (
        data.decode("utf-8", "replace").split("\n")[:-1] if data.endswith(b"\n") else [data.decode("utf-8", "replace")]
    )
    return [line.rstrip("\r").rpartition("\r")[2] for line in lines]


def trials_stamp(search: Path) -> tuple[int, ...]:
    """A value that changes whenever a search or one of its trials writes an event, or ends without one."""
    folders = [search, *sorted((search / "trials").glob("*"))]
    return tuple(part for folder in folders for name in ("events.jsonl", "exit.json") for part in file_stamp(folder / name))  # fmt: skip


SPEC_MS = 15
"""Between two settings files, each of which takes some milliseconds to parse."""


class ComparedStates(QObject):
    """Reads several runs one after another, so that the window stays responsive.

    Active runs stay watched; others are not, once they have been read.
    """

    advanced = Signal()
    """There are new points in some state."""
    specs_read = Signal()
    """The settings of all runs are in `specs`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.states: dict[Path, RunState] = {}
        self.specs: dict[Path, dict[str, Any]] = {}
        self.problems: list[str] = []
        """Settings that could not be read, a sentence each."""
        self._waiting: list[Path] = []
        self._unread: list[Path] = []
        self._watchers: dict[Path, RunWatcher] = {}
        self._specs_timer = QTimer(self, interval=SPEC_MS)
        self._specs_timer.timeout.connect(self._read_spec)

    @property
    def unread(self) -> int:
        """How many runs have not been read completely."""
        return len(self._waiting) + sum(_is_unread(watcher) for watcher in self._watchers.values())

    @property
    def reading(self) -> bool:
        """Whether a run has not been read completely."""
        return self.unread > 0

    def read(self, paths: Sequence[Path]) -> None:
        """Forget the previous runs and read these, with their settings."""
        self.stop()
        self.states, self.specs, self.problems = {}, {}, []
        self.follow(paths)
        self._unread = list(paths)
        self._specs_timer.start()

    def follow(self, paths: Sequence[Path], changed: Collection[Path] = ()) -> None:
        """Read these instead; of those read before, only what is new in the `changed` ones."""
        for path in [path for path in self._watchers if path not in paths]:
            self._forget(path)
        self.states = {path: self.states.get(path) or RunState() for path in paths}
        for path in changed:
            if path in self._watchers:
                self._watchers[path].continue_watching()
        self._waiting = [path for path in paths if path not in self._watchers]
        if not any(map(_is_unread, self._watchers.values())):
            self._begin_next()

    def stop(self) -> None:
        """Stop watching."""
        for path in list(self._watchers):
            self._forget(path)
        self._waiting, self._unread = [], []
        self._specs_timer.stop()

    def _forget(self, path: Path) -> None:
        watcher = self._watchers.pop(path)
        watcher.stop()
        watcher.deleteLater()

    def _begin_next(self) -> None:
        if not self._waiting:
            return
        watcher = RunWatcher(self._waiting.pop(0), self)
        self._watchers[watcher.folder.path] = watcher
        self.states[watcher.folder.path] = watcher.state
        watcher.advanced.connect(lambda: self._on_advanced(watcher))
        watcher.restarted.connect(lambda: self._on_restarted(watcher))
        watcher.caught_up.connect(lambda: self._on_caught_up(watcher))
        watcher.vanished.connect(lambda _: self._on_caught_up(watcher))
        watcher.settled.connect(watcher.stop)

    def _on_advanced(self, watcher: RunWatcher) -> None:
        # While a run is being read, each update would redraw all curves; they are drawn at the end.
        if watcher.is_caught_up:
            self.advanced.emit()

    def _on_restarted(self, watcher: RunWatcher) -> None:
        self.states[watcher.folder.path] = watcher.state
        self.advanced.emit()

    def _on_caught_up(self, watcher: RunWatcher) -> None:
        if self._watchers.get(watcher.folder.path) is watcher:
            self.advanced.emit()
            self._begin_next()

    def _read_spec(self) -> None:
        from backend.contract import spec_file  # the YAML reader is not wanted before a page is shown

        if not self._unread:
            self._specs_timer.stop()
            self.specs_read.emit()
            return
        path = self._unread.pop(0)
        try:
            self.specs[path] = spec_file.read_run(RunFolder(path).spec)
        except InputError as error:
            self.specs[path] = {}
            self.problems.append(translate_message(str(error)))


def _is_unread(watcher: RunWatcher) -> bool:
    return not watcher.is_caught_up and not watcher.is_gone
