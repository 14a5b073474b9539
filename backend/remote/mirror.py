"""Copies what grows in a run's folder on another computer into the run's folder here, and requests the other way.

The run's supervisor here starts it in place of an engine. The window and all commands see a run like any other. Events
become visible in whole lines, and `mirror.json` says how far the copy has come, so that a new mirror continues exactly there.
"""

import errno
import os
import re
import shutil
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from backend.contract.errors import NO_ROOM, InputError, describe_system_error
from backend.contract.machines import find_machine
from backend.contract.messages import message
from backend.contract.run import events
from backend.contract.run.folder import ENDS, RemoteRun, RunFolder, write_json
from backend.contract.safe_files import is_file_name, open_inside, read_unlinked
from backend.contract.safe_text import one_line, parse_json
from backend.remote import protocol
from backend.remote.connection import Connection, connect
from backend.remote.protocol import ConnectionLost

POLL_SECONDS = 0.2
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds between two attempts to connect again."""
RECORD_BYTES = 10_000_000
MOST_FILES = 10_000
"""Of a run, with those that it has deleted meanwhile."""
EVENTS, LOG = "events.jsonl", "process.log"
_COPIED = re.compile(
    r"(plan\.json|facts\.json|predictions[^/]{0,200}\.(csv|parquet)|model/.{1,400}|checkpoints/.{1,400})"
)
"""What may be written here. All other names are the run's own records, which are written by this computer."""
_INCOMPLETE = ".part"


@dataclass
class _Position:
    """`mirror.json`: how far the copy has come."""

    events: int = 0
    """Bytes of the other computer's events."""
    events_here: int = 0
    """Bytes of the events here, which also tell of the connection. What is beyond was not yet recorded."""
    log: int = 0
    files: dict[str, list[int]] = field(default_factory=dict)


def run(folder: RunFolder) -> int:
    """Mirror the run until it has ended there, or until this computer asks to end. Returns the exit code."""
    remote = folder.remote_run()
    assert remote
    folder.claim_devices(())  # it needs none of this computer's
    mirror = _Mirror(folder, remote)
    mirror.continue_events()
    seconds = FIRST_WAIT / 2
    while True:
        try:
            return mirror.follow()
        except InputError as error:  # not to be repaired by trying again
            return mirror.fail(str(error))
        except ConnectionLost as error:
            reason = str(error) or message("the connection ended")
        except OSError as error:
            if error.errno not in NO_ROOM:
                return mirror.fail(describe_system_error(error) or str(error))
            reason = message("the disk of this computer is full")
        seconds = FIRST_WAIT if mirror.connected_seconds() > LONGEST_WAIT else min(2 * seconds, LONGEST_WAIT)
        mirror.report_loss(reason)
        if mirror.wait(seconds):
            return mirror.detach()


class _Mirror:
    """One run's copy."""

    def __init__(self, folder: RunFolder, remote: RemoteRun) -> None:
        self._folder, self._remote = folder, remote
        self._path = folder.path / "mirror.json"
        self._position = _read_position(self._path)
        self._held = b""
        """Half a line, or the one that says how the run ended, which waits for the model and the predictions."""
        self._asked: set[str] = set()
        self._reported = ""
        self._arriving = ("", 0, 0)
        """The file of which pieces arrive, how many bytes are here, and how many it has."""
        self._connected: float | None = None

    def continue_events(self) -> None:
        """If an earlier mirror said that it ends, say that the run goes on."""
        found = self._events_here()
        if found and isinstance(found[-1], events.RunFinished):
            record = self._folder.process_record()
            attempt = record.attempt if record else 1
            # At the time of the last event, because the run did not pause meanwhile: what lies before a resume does not count.
            resumed = events.RunResumed(time=found[-1].time, attempt=attempt, from_step=_last_step(found))
            self._append(events.encode(resumed))

    def follow(self) -> int:
        """Follow over one connection. Raises ConnectionLost; OSError if something cannot be written here."""
        self._connected = None
        self._held = b""
        self._asked.clear()  # whether a request arrived is unknown
        try:
            machine = find_machine(self._remote.machine)
        except InputError as error:
            raise ConnectionLost(str(error)) from None
        with connect(self._remote.machine, machine) as (connection, _):
            self._connected = time.monotonic()
            self._report_return()
            offsets = {EVENTS: self._position.events, LOG: self._position.log}
            connection.send(protocol.Follow(run=self._remote.run, offsets=offsets, files=self._position.files, checkpoints=machine.checkpoints))  # fmt: skip
            while True:
                received, content = connection.receive(POLL_SECONDS) or (None, b"")
                match received:
                    case protocol.Piece():
                        self._take(received, content)
                    case protocol.Ended():
                        return self._end(received)
                    case protocol.Refused():
                        return self._finish("failed", f"{self._remote.machine}: {one_line(received.reason)}")
                    case _:
                        pass
                if self._pass_requests_on(connection):
                    return self.detach()

    def connected_seconds(self) -> float:
        """How long the last connection lasted; 0 if there was none."""
        return 0.0 if self._connected is None else time.monotonic() - self._connected

    def wait(self, seconds: float) -> bool:
        """Wait before the next attempt; True if this computer asks to end meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if "interrupt" in self._folder.requests() or not self._folder.exists():
                return True
            time.sleep(POLL_SECONDS)
        return False

    def detach(self) -> int:
        """End here, and leave the run going on there."""
        sentence = message(
            "Burnish no longer follows this run, which continues on {machine}; resume it to see what it has done",
            machine=self._remote.machine,
        )
        return self._finish("interrupted", sentence)

    def fail(self, reason: str) -> int:
        """End here because the copy cannot go on, whatever the network does."""
        return self._finish("failed", reason)

    def report_loss(self, reason: str) -> None:
        """Say once that there is no connection, and why."""
        sentence = message(
            "no connection to {machine}: {reason}", machine=self._remote.machine, reason=one_line(reason)
        )
        if sentence != self._reported:
            self._reported = sentence
            with suppress(OSError):  # the disk may be what is full
                _log(f"{sentence}\n")
                self._append(events.encode(events.Warned(time=time.time(), code="connection_lost", message=sentence)))

    def _report_return(self) -> None:
        if self._reported:
            self._reported = ""
            sentence = message("connected to {machine} again", machine=self._remote.machine)
            self._append(events.encode(events.Warned(time=time.time(), code="connected", message=sentence)))

    def _pass_requests_on(self, connection: Connection) -> bool:
        """Pass new requests on, each once; True if this computer asks to end."""
        requests = self._folder.requests()
        if "interrupt" in requests or not self._folder.exists():
            return True
        for kind in requests:
            if kind not in self._asked:
                self._asked.add(kind)
                connection.send(protocol.Ask(request=kind))
        return False

    def _take(self, piece: protocol.Piece, content: bytes) -> None:
        if piece.name == EVENTS:
            self._take_events(piece, content)
        elif piece.name == LOG:
            _log(content.decode(errors="replace"))
            self._position.log = piece.offset + len(content)
            self._write_position()
        elif piece.total is not None and _is_copied(piece.name):
            self._take_file(piece, content, piece.total)
        else:
            raise InputError(
                "{machine} sent a file that is no part of a run ({name}); is it still your machine?",
                machine=self._remote.machine,
                name=repr(piece.name[:100]),
            )

    def _take_events(self, piece: protocol.Piece, content: bytes) -> None:
        """Append whole lines, but hold a last one that ends the run until everything else is here."""
        if piece.offset < self._position.events:  # its events were deleted there, and started again
            self._held, self._position.events_here = b"", 0
        lines = self._held + content
        end = lines.rfind(b"\n") + 1
        if len(lines) - end > events.LONGEST_LINE_BYTES:
            raise InputError(
                "{machine} sent an event that never ends; update Burnish there", machine=self._remote.machine
            )
        found = [*events.decode_all(lines[:end].split(b"\n"))]
        if end == len(lines) and found and isinstance(found[-1], events.RunFinished):
            end = lines.rfind(b"\n", 0, -1) + 1
        self._held = lines[end:]
        self._append(lines[:end], piece.offset + len(content) - len(self._held))
        for event in found:
            if isinstance(event, events.RequestAnswered):
                self._asked.discard(event.request)
                if event.request in self._folder.requests():
                    self._folder.clear_request(event.request)

    def _append(self, lines: bytes, position: int | None = None) -> None:
        """Append whole lines, then record how far the copy has come. What was not recorded is written again."""
        if lines:
            descriptor = open_inside(self._folder.path, EVENTS, os.O_WRONLY | os.O_CREAT)
            with os.fdopen(descriptor, "wb") as file:
                file.seek(min(self._position.events_here, os.fstat(descriptor).st_size))
                file.truncate()  # a line of which only a part found room
                file.write(lines)
                file.flush()
                self._position.events_here = file.tell()
        if position is not None:
            self._position.events = position
        self._write_position()

    def _take_file(self, piece: protocol.Piece, content: bytes, total: int) -> None:
        if piece.offset == 0:
            self._expect_file(piece.name, total)
        if (piece.name, piece.offset, total) != self._arriving or piece.offset + len(content) > total:
            raise InputError("{machine} sent the pieces of a file out of order; update Burnish there", machine=self._remote.machine)  # fmt: skip
        self._arriving = (piece.name, piece.offset + len(content), total)
        beside = f"{piece.name}{_INCOMPLETE}"
        flags = os.O_WRONLY | os.O_CREAT | (0 if piece.offset else os.O_TRUNC)
        with os.fdopen(open_inside(self._folder.path, beside, flags), "wb") as file:
            file.seek(piece.offset)
            file.write(content)
            if piece.offset + len(content) < total:
                return
            file.flush()
            os.fsync(file.fileno())
        (self._folder.path / beside).replace(self._folder.path / piece.name)
        self._position.files[piece.name] = [total, piece.modified]
        self._write_position()

    def _expect_file(self, name: str, total: int) -> None:
        """Make room for a file. Raises OSError if there is none, InputError if there are too many files."""
        if len(self._position.files) >= MOST_FILES:
            raise InputError("{machine} sent more files than a run has; is it still your machine?", machine=self._remote.machine)  # fmt: skip
        if total > shutil.disk_usage(self._folder.path).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        *folders, _ = name.split("/")
        for depth in range(len(folders)):  # not the run's own folder, which may have been deleted meanwhile
            self._folder.path.joinpath(*folders[: depth + 1]).mkdir(exist_ok=True)
        self._arriving = (name, 0, total)

    def _remove_vanished(self, there: Collection[str]) -> None:
        """Remove copies of files that are no longer there, such as the weights of an earlier attempt."""
        for name in sorted(self._position.files.keys() - set(there)) if there else ():
            if _is_copied(name):  # who sends a run's folder around writes this record too
                (self._folder.path / name).unlink(missing_ok=True)
            del self._position.files[name]

    def _end(self, ended: protocol.Ended) -> int:
        self._remove_vanished(ended.files)
        if self._held.endswith(b"\n"):
            self._append(self._held, self._position.events + len(self._held))
            return 0
        machine = self._remote.machine
        if ended.state in ENDS.values():  # before there was an engine that could say so
            sentence = one_line(ended.reason) or message("it was removed from the queue before it started")
            return self._finish(ended.state, sentence)
        if ended.life == "deleted":
            return self._finish("failed", message("the run's folder on {machine} was deleted", machine=machine))
        if ended.life == "lost":
            return self._finish("failed", message("the run ended on {machine} without saying how; resume it to continue from its last checkpoint", machine=machine))  # fmt: skip
        reason = one_line(ended.reason) or message("the run ended before it could say how")
        return self._finish("failed", f"{machine}: {reason}")

    def _finish(self, state: str, sentence: str) -> int:
        """Say by an event of this computer how it ends here."""
        _log(f"{sentence}\n")
        step = _last_step(self._events_here())
        finished = events.RunFinished(time=time.time(), state=state, step=step, message=sentence, code="mirror")
        with suppress(FileNotFoundError):  # without a folder there is nobody to tell
            self._append(events.encode(finished))
        return int(state == "failed")

    def _events_here(self) -> list[events.AnyEvent]:
        try:
            with (self._folder.path / EVENTS).open("rb") as file:
                return [*events.decode_all(events.lines_of(file, self._position.events_here))]
        except OSError:
            return []

    def _write_position(self) -> None:
        write_json(self._path, asdict(self._position))


def _is_copied(name: str) -> bool:
    return _COPIED.fullmatch(name) is not None and all(map(is_file_name, name.split("/")))


def _log(text: str) -> None:
    """Write to `process.log`, which the supervisor has made the standard output of this process."""
    sys.stdout.write(text)
    sys.stdout.flush()


def _last_step(found: list[events.AnyEvent]) -> int:
    return next((event.step for event in reversed(found) if isinstance(event, events.StepFinished)), 0)


def _read_position(path: Path) -> _Position:
    try:
        values = parse_json(read_unlinked(path, RECORD_BYTES))
        return _Position(int(values["events"]), int(values["events_here"]), int(values["log"]), dict(values["files"]))
    except FileNotFoundError:
        return _Position()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            "{path} is damaged; delete the run here, then bring it back with burnish adopt", path=path
        ) from error
