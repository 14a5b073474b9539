"""Copies what grows in a run's folder on another computer into the run's folder here, and passes requests to that run.

The run's supervisor here starts it in place of an engine, so the window and all commands see a run like any other. Events
appear in whole lines, and `mirror.json` records how much has been copied, so that a new mirror continues exactly there.
"""

import errno
import json
import os
import shutil
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from backend.contract import spec_file
from backend.contract.errors import NO_ROOM, InputError, describe_system_error
from backend.contract.machines import Machine, find_machine
from backend.contract.messages import message
from backend.contract.run import events
from backend.contract.run.folder import ENDS, RemoteRun, RunFolder, exit_code
from backend.contract.safe_files import open_inside, read_unlinked, write_whole
from backend.contract.safe_text import one_line, parse_json
from backend.remote import protocol, schedulers
from backend.remote.connection import Connection, connect
from backend.remote.protocol import EVENTS, INCOMPLETE, LOG, ConnectionLost, Report, is_copied
from backend.remote.upload import restore_local

POLL_SECONDS = 0.2
MIRRORED = "mirror"
"""The code of an end that this computer has written, not the run itself."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds between two attempts to connect again."""
RECORD_BYTES = 10_000_000
MAX_FILES = 10_000
"""Of a run, with those that it has deleted meanwhile."""


_STATE = "mirror.json"


@dataclass
class MirrorState:
    """`mirror.json`: how much has been copied. If it is lost, everything is copied again."""

    events: int = 0
    """Bytes of the other computer's events."""
    events_here: int = 0
    """Bytes of the events here, which also report on the connection. Anything beyond is written again."""
    log: int = 0
    files: dict[str, list[int]] = field(default_factory=dict)
    """Size and time of modification (ns) there of each copied file."""
    step: int = 0
    """The last step, which the event of an end needs."""


def write_state(folder: RunFolder, state: MirrorState) -> None:
    """Record how much of the run is here, before there is a mirror."""
    write_whole(folder.path / _STATE, json.dumps(asdict(state)).encode())


def forget_state(folder: RunFolder) -> None:
    """The folder is no longer a copy."""
    (folder.path / _STATE).unlink(missing_ok=True)


def fetch(folder: RunFolder, remote: RemoteRun, connection: Connection, report: Report) -> list[str]:
    """Copy everything that is missing here of a run that has ended, checkpoints too; returns the names of its files there.

    Raises InputError if it is running, or cannot be copied.
    """
    return _Mirror(folder, remote).fetch(connection, report)


def run(folder: RunFolder) -> int:
    """Mirror the run until it has ended there, or until this computer asks to end. Returns the exit code."""
    remote = folder.remote_run()
    assert remote
    folder.claim_devices(())  # it needs none of this computer's
    mirror = _Mirror(folder, remote)
    mirror.continue_events()
    folder.job.unlink(missing_ok=True)  # what an earlier mirror knew
    seconds = FIRST_WAIT / 2
    while True:
        try:
            return mirror.follow()
        except InputError as error:  # trying again would not help
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
        self._log = sys.stdout
        """`process.log`, which the supervisor has made the standard output of this process."""
        self._path = folder.path / _STATE
        self._state = _read_state(self._path)
        self._held = b""
        """Half a line, or the one that says how the run ended, which waits for the model and the predictions."""
        self._asked: set[str] = set()
        self._reported = ""
        self._job_trouble = ""
        self._arriving = ("", 0, 0)
        """The file of which pieces arrive, how many bytes are here, and how many it has."""
        self._connected: float | None = None
        self._restarts, self._lost_at = 0, 0
        """How often in a row the run was lost there without a new step, and at which."""

    def continue_events(self) -> None:
        """If the last event here is the end of an earlier mirror or attempt, add that the run continues."""
        last = self._last_event()
        if isinstance(last, events.RunFinished):
            record = self._folder.process_record()
            attempt = record.attempt if record else 1
            # With the time of the last event: the run did not pause, and time before a resume would not be counted.
            self._append(events.encode(events.RunResumed(time=last.time, attempt=attempt, from_step=self._state.step)))

    def follow(self) -> int:
        """Follow over one connection. Raises ConnectionLost; OSError if something cannot be written here."""
        self._connected = None
        self._asked.clear()  # a request may have been lost with the connection
        try:
            machine = find_machine(self._remote.machine)
        except InputError as error:
            raise ConnectionLost(str(error)) from None
        with connect(self._remote.machine, machine) as (connection, _):
            self._connected = time.monotonic()
            self._report_return()
            self._ask_to_follow(connection, machine)
            while True:
                received, content = connection.receive(POLL_SECONDS) or (None, b"")
                match received:
                    case protocol.Piece():
                        self._take(received, content)
                    case protocol.JobChanged(record=record):
                        self._folder.write_job_record(record)
                        self._asked.clear()  # a job that is queued again starts without the requests to the one before
                    case protocol.JobUnknown(reason=reason):
                        self._report_job(one_line(reason))
                    case protocol.SpecResolved(spec=spec):
                        self._take_spec(spec)
                    case protocol.Ended(life="lost") if self._may_restart():
                        self._restart(connection, machine)
                        self._ask_to_follow(connection, machine)
                    case protocol.Ended():
                        return self._end(received)
                    case protocol.Refused():
                        return self._finish("failed", f"{self._remote.machine}: {one_line(received.reason)}")
                    case _:
                        pass
                if self._pass_requests_on(connection):
                    return self.detach()

    def fetch(self, connection: Connection, report: Report) -> list[str]:
        """See the function `fetch`."""
        last = self._last_event()
        if isinstance(last, events.RunFinished) and last.code == MIRRORED:
            self.continue_events()
        self._ask_to_follow(connection, find_machine(self._remote.machine), only_ended=True)
        done = 0
        with self._folder.log.open("a", encoding="utf-8") as log:
            self._log = log
            while True:
                received, content = connection.receive() or (None, b"")
                match received:
                    case protocol.Piece():
                        self._take(received, content)
                        done += len(content)
                        report(done, 0, "bytes")
                    case protocol.SpecResolved(spec=spec):
                        self._take_spec(spec)
                    case protocol.Ended():
                        self._remove_vanished(received.files)
                        self._append(self._held, self._state.events + len(self._held))
                        return received.files
                    case protocol.Refused(reason=reason):
                        raise InputError("{name}: {reason}", name=self._remote.machine, reason=one_line(reason))
                    case _:
                        pass

    def _ask_to_follow(self, connection: Connection, machine: Machine, *, only_ended: bool = False) -> None:
        self._held = b""  # it is sent again
        offsets = {EVENTS: self._state.events, LOG: self._state.log}
        script = schedulers.script_of(machine, {})  # only to say which cluster it is
        connection.send(
            protocol.Follow(
                run=self._remote.run,
                offsets=offsets,
                files=self._state.files,
                checkpoints=machine.checkpoints or only_ended,
                script=script,
                only_ended=only_ended,
            )
        )

    def _may_restart(self) -> bool:
        """Whether to continue a run whose supervisor there is gone, as after a restart of that computer."""
        if self._held or self._folder.open_request() in ENDS:  # it has said how it ended, or is not to continue
            return False
        if self._state.step > self._lost_at:
            self._restarts = 0
        hardware = spec_file.read_run(self._folder.spec).get("hardware")
        most = hardware.get("max_restarts") if isinstance(hardware, dict) else None
        return isinstance(most, int) and self._restarts < most

    def _restart(self, connection: Connection, machine: Machine) -> None:
        """Continue the run there. Raises InputError if that is refused."""
        self._restarts, self._lost_at = self._restarts + 1, self._state.step
        script = schedulers.script_of(machine, spec_file.read_run(self._folder.spec))
        connection.ask(protocol.Resume(run=self._remote.run, script=script), protocol.Started)
        sentence = message(
            "the processes of the run on {machine} were gone. Restarted from its last checkpoint",
            machine=self._remote.machine,
        )
        self._append(events.encode(events.Warned(time=time.time(), code="restarted", message=sentence)))

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
        """End here and let the run continue there."""
        sentence = message(
            "Burnish no longer follows this run, which continues on {machine}; resume it to see what it has done",
            machine=self._remote.machine,
        )
        return self._finish("interrupted", sentence)

    def fail(self, reason: str) -> int:
        """End here because copying cannot continue, even with a connection."""
        return self._finish("failed", reason)

    def report_loss(self, reason: str) -> None:
        """Say once that there is no connection, and why."""
        sentence = message(
            "no connection to {machine}: {reason}", machine=self._remote.machine, reason=one_line(reason)
        )
        if sentence != self._reported:
            self._reported = sentence
            with suppress(OSError):  # the disk may be what is full
                self._write_log(f"{sentence}\n")
                self._append(events.encode(events.Warned(time=time.time(), code="connection_lost", message=sentence)))

    def _report_job(self, reason: str) -> None:
        """Say once that the cluster refuses to tell of the job, and once that it does so again."""
        if reason == self._job_trouble:
            return
        self._job_trouble = reason
        machine = self._remote.machine
        sentence = (
            message(
                "{machine}: {reason}. The run goes on; Burnish keeps asking", machine=machine, reason=reason.rstrip(".")
            )
            if reason
            else message("{machine}: the cluster answers again", machine=machine)
        )
        code = "job_unknown" if reason else "job_known"
        self._append(events.encode(events.Warned(time=time.time(), code=code, message=sentence)))

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
            self._write_log(content.decode(errors="replace"))
            self._state.log = piece.offset + len(content)
            self._write_state()
        elif piece.total is not None and is_copied(piece.name):
            self._take_file(piece, content, piece.total)
        else:
            raise InputError(
                "{machine} sent a file that does not belong to a run ({name}); is it still your machine?",
                machine=self._remote.machine,
                name=repr(piece.name[:100]),
            )

    def _take_spec(self, text: str) -> None:
        """Take the other computer's spec, but with the data and the model of this one."""
        spec = restore_local(text, spec_file.read_run(self._folder.spec))
        write_whole(self._folder.spec, spec.encode())

    def _take_events(self, piece: protocol.Piece, content: bytes) -> None:
        """Append whole lines, but hold back a last one that ends the run until all files are here."""
        if piece.offset < self._state.events:  # the events were deleted there and began anew
            self._held, self._state.events_here = b"", 0
        lines = self._held + content
        end = lines.rfind(b"\n") + 1
        if len(lines) - end > events.LONGEST_LINE_BYTES:
            raise InputError(
                "{machine} sent a line that is too long for an event; update Burnish there",
                machine=self._remote.machine,
            )
        found = [*events.decode_all(lines[:end].split(b"\n"))]
        self._state.step = _last_step(found, self._state.step)
        if end == len(lines) and found and isinstance(found[-1], events.RunFinished):
            end = lines.rfind(b"\n", 0, -1) + 1
        self._held = lines[end:]
        self._append(lines[:end], piece.offset + len(content) - len(self._held))
        for event in found:
            if isinstance(event, events.RequestAnswered):
                self._asked.discard(event.request)
                if event.request in self._folder.requests():
                    self._folder.clear_request(event.request)

    def _append(self, lines: bytes, offset: int | None = None) -> None:
        """Append whole lines, then record it. Lines that were not recorded are written again."""
        if lines:
            descriptor = open_inside(self._folder.path, EVENTS, os.O_WRONLY | os.O_CREAT)
            with os.fdopen(descriptor, "wb") as file:
                file.seek(min(self._state.events_here, os.fstat(descriptor).st_size))
                file.truncate()  # a line of which only a part found room
                file.write(lines)
                file.flush()
                self._state.events_here = file.tell()
        if offset is not None:
            self._state.events = offset
        self._write_state()

    def _take_file(self, piece: protocol.Piece, content: bytes, total: int) -> None:
        if piece.offset == 0:
            self._expect_file(piece.name, total)
        if (piece.name, piece.offset, total) != self._arriving or piece.offset + len(content) > total:
            raise InputError("{machine} sent the pieces of a file out of order; update Burnish there", machine=self._remote.machine)  # fmt: skip
        self._arriving = (piece.name, piece.offset + len(content), total)
        beside = f"{piece.name}{INCOMPLETE}"
        flags = os.O_WRONLY | os.O_CREAT | (0 if piece.offset else os.O_TRUNC)
        with os.fdopen(open_inside(self._folder.path, beside, flags), "wb") as file:
            file.seek(piece.offset)
            file.write(content)
            if piece.offset + len(content) < total:
                return
            file.flush()
            os.fsync(file.fileno())
        (self._folder.path / beside).replace(self._folder.path / piece.name)
        self._state.files[piece.name] = [total, piece.modified]
        self._write_state()

    def _expect_file(self, name: str, total: int) -> None:
        """Make room for a file. Raises OSError if there is none, InputError if there are too many files."""
        if len(self._state.files) >= MAX_FILES:
            raise InputError("{machine} sent more files than a run has; is it still your machine?", machine=self._remote.machine)  # fmt: skip
        if total > shutil.disk_usage(self._folder.path).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        *folders, _ = name.split("/")
        for depth in range(len(folders)):  # not the run's own folder, which may have been deleted meanwhile
            self._folder.path.joinpath(*folders[: depth + 1]).mkdir(exist_ok=True)
        self._arriving = (name, 0, total)

    def _remove_vanished(self, there: Collection[str]) -> None:
        """Remove copies of files that are no longer there, such as the weights of an earlier attempt."""
        for name in sorted(self._state.files.keys() - set(there)) if there else ():
            if is_copied(name):  # this record, too, may come from a stranger
                (self._folder.path / name).unlink(missing_ok=True)
            del self._state.files[name]

    def _end(self, ended: protocol.Ended) -> int:
        self._remove_vanished(ended.files)
        if self._held.endswith(b"\n"):
            last = events.decode(self._held)
            self._append(self._held, self._state.events + len(self._held))
            state = last.state if isinstance(last, events.RunFinished) else ""
            if (
                not ended.state or state != ENDS["interrupt"]
            ):  # else its job was queued again, and ended before it started
                return exit_code(state)
        machine = self._remote.machine
        if ended.state in ENDS.values():  # before there was an engine that could say so
            sentence = one_line(ended.reason) or message("it was removed from the queue before it started")
            return self._finish(ended.state, sentence)
        if ended.life == "deleted":
            return self._finish("failed", message("the run's folder on {machine} was deleted", machine=machine))
        if ended.life == "lost":
            return self._finish("failed", message("the run ended on {machine} without saying how; resume it to continue from its last checkpoint", machine=machine))  # fmt: skip
        reason = one_line(ended.reason) or message("the run ended without giving a reason")
        return self._finish("failed", f"{machine}: {reason}")

    def _finish(self, state: str, sentence: str) -> int:
        """Append an end of this computer's own."""
        self._write_log(f"{sentence}\n")
        finished = events.RunFinished(
            time=time.time(), state=state, step=self._state.step, message=sentence, code=MIRRORED
        )
        with suppress(FileNotFoundError):  # the folder was deleted
            self._append(events.encode(finished))
        return exit_code(state)

    def _write_log(self, text: str) -> None:
        self._log.write(text)
        self._log.flush()

    def _last_event(self) -> events.AnyEvent | None:
        """The last recorded event here."""
        try:
            with (self._folder.path / EVENTS).open("rb") as file:
                file.seek(max(0, self._state.events_here - events.LONGEST_LINE_BYTES))
                lines = file.read(self._state.events_here - file.tell())
        except FileNotFoundError:
            return None
        return events.decode(lines[lines.rfind(b"\n", 0, -1) + 1 :])

    def _write_state(self) -> None:
        # Not flushed to the disk, as this happens several times per second.
        write_whole(self._path, json.dumps(asdict(self._state)).encode(), durable=False)


def _last_step(found: list[events.AnyEvent], before: int) -> int:
    for event in reversed(found):
        if isinstance(event, events.StepFinished):
            return event.step
        if isinstance(event, events.RunResumed):
            return event.from_step
    return before


def _read_state(path: Path) -> MirrorState:
    try:
        values = parse_json(read_unlinked(path, RECORD_BYTES))
        return MirrorState(**{name: type(default)(values[name]) for name, default in asdict(MirrorState()).items()})
    except (OSError, ValueError, KeyError, TypeError):  # lost or damaged, for example when the power failed
        return MirrorState()
