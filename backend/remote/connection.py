"""The near side of a connection: the system's `ssh` with the agent at its other end."""

import os
import shlex
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import TypeVar

from backend.contract.errors import InputError
from backend.contract.machines import Machine, find_machine
from backend.contract.messages import message
from backend.contract.rpc.machines import MachineState
from backend.contract.run.folder import RunFolder, host_id
from backend.contract.run.lock import RunLocked, hold_lock
from backend.contract.safe_files import MB, open_regular, user_path
from backend.contract.safe_text import one_line
from backend.contract.versions import same_major
from backend.remote import protocol, schedulers
from backend.remote.protocol import PIECE, ConnectionLost, Report

CONNECT_SECONDS = 20
ASK_AGAIN_SECONDS = (1.0, 5.0, 20.0)
"""Before each new connection to ask whether a run has started, if the connection was lost meanwhile."""
SILENCE_SECONDS = 45.0
"""The agent sends something every five seconds. If nothing arrives for this long, the connection counts as lost."""
END_SECONDS = 5.0
MAX_LINES, LONGEST_ERROR = 100, 10_000
"""Of what is printed to stderr, the last lines are kept."""
_NOT_FOUND = (126, 127)
"""What a shell exits with if a command is not there, or is not a program."""
_SSH_FAILED = 255
AnyReply = TypeVar("AnyReply", bound=protocol.Message)

UNKNOWN_KEY = message("its host key is unknown; burnish machines check shows its fingerprint, to compare and accept")
_REASONS = (
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", message("its host key has changed, so it may be another computer; ask who runs it, then remove the old key with ssh-keygen -R")),
    ("Host key verification failed", UNKNOWN_KEY),
    ("Permission denied", message("it does not accept your key; try ssh in a terminal, and load the key into your agent with ssh-add")),
    ("Could not resolve hostname", message("its name is unknown; check the address and the network")),
    ("Connection refused", message("nothing answers there; check the address, the port and whether its ssh server is running")),
    ("No route to host", message("the network does not reach it; check the network or the VPN")),
    ("Network is unreachable", message("the network does not reach it; check the network or the VPN")),
    ("timed out", message("it does not answer; check the network, the VPN and whether it is switched on")),
)  # fmt: skip
"""What ssh prints → why there is no connection, and what to do."""


class NoConnection(InputError):
    """A machine cannot be reached, at least not now."""


class UnknownKey(NoConnection):
    """ssh does not know the machine's host key."""


class Refusal(InputError):
    """What a machine answers to a question that it refuses."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__("{name}: {reason}", name=name, reason=reason)
        self.reason = reason


class Connection:
    """An open connection to a machine's agent."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin
        assert process.stdout
        self.name = name
        self._process = process
        self._writer = process.stdin
        self._inbox = protocol.Inbox(process.stdout, after=protocol.GREETING_LINE)
        self._last_received = time.monotonic()
        self._errors: deque[str] = deque(maxlen=MAX_LINES)
        self._error_reader = threading.Thread(target=self._read_errors, daemon=True)
        self._error_reader.start()

    def greet(self) -> protocol.Greeting:
        """The agent's greeting. Raises ConnectionLost (FolderUnusable), or InputError if its version does not fit."""
        try:
            greeting = self.expect(protocol.Greeting)
        except Refusal as error:
            raise protocol.FolderUnusable(error.reason) from None
        if not same_major(greeting.contract_version):
            raise InputError(
                "{name} has another version of Burnish ({theirs}); install the same one there",
                name=self.name,
                theirs=one_line(greeting.versions.get("burnish", message("unknown"))),
            )
        return greeting

    def ask(self, question: protocol.Message, kind: type[AnyReply]) -> AnyReply:
        """The reply to a question. Raises InputError if it is refused."""
        self.send(question)
        return self.expect(kind)

    def send(self, sent: protocol.Message, content: bytes = b"") -> None:
        """Send a message. Raises ConnectionLost."""
        try:
            protocol.send(self._writer, sent, content)
        except ConnectionLost as error:
            raise self._lost(error) from None
        self._last_received = time.monotonic()  # it took this, so it is there; nothing is received while much is sent

    def expect(self, kind: type[AnyReply]) -> AnyReply:
        """The next message, which must be of this kind. Raises InputError if something is refused instead."""
        while True:
            received = self._next_reply(1.0)
            if isinstance(received, kind):
                return received
            if received is not None:
                raise InputError("{name} did not answer the question; update Burnish there", name=self.name)

    def _next_reply(self, seconds: float) -> protocol.AnyMessage | None:
        """The next message, unless it is only a sign of life. Raises InputError for a refusal."""
        received, _ = self.receive(seconds) or (None, b"")
        if isinstance(received, protocol.Refused):
            raise Refusal(self.name, one_line(received.reason))
        return None if isinstance(received, protocol.Alive) else received

    def receive(self, seconds: float = 1.0) -> tuple[protocol.AnyMessage, bytes] | None:
        """The next message; None if there is none for so long. Raises ConnectionLost."""
        try:
            received = self._inbox.take(seconds)
        except ConnectionLost as error:
            raise self._lost(error) from None
        if received is not None:
            self._last_received = time.monotonic()
        elif time.monotonic() - self._last_received > SILENCE_SECONDS:
            raise ConnectionLost(message("it has sent nothing for {seconds:.0f} s", seconds=SILENCE_SECONDS))
        return received

    def put_files(self, files: Mapping[str, Path], free_bytes: int, report: Report) -> None:
        """Send the files, by digest, that are not there yet; a half-sent one continues where it stopped.

        Raises InputError if they are larger than what is free there.
        """
        sizes = {digest: path.stat().st_size for digest, path in files.items()}
        missing = self.ask(protocol.GetMissing(files=sizes), protocol.Missing).files
        total, done = sum(sizes[digest] - held for digest, held in missing.items() if digest in sizes), 0
        if total > free_bytes:
            raise InputError(
                "{name}: the files of this run have {needed:,.0f} MB, but only {free:,.0f} MB are free there; free up "
                "some space, or choose another folder with: burnish machines add {name} --folder DIR",
                name=self.name,
                needed=total / MB,
                free=free_bytes / MB,
            )
        for digest, held in missing.items():
            if digest not in files:
                continue
            for sent in self._put(digest, files[digest], min(max(held, 0), sizes[digest]), sizes[digest]):
                done += sent
                self._next_reply(0.0)  # if its disk is full, nothing more is sent
                report(done, total, "bytes")
        still = self.ask(protocol.GetMissing(files=sizes), protocol.Missing).files  # also waits until all is written
        if still:
            raise InputError("{name}: {count} files did not arrive; try again", name=self.name, count=len(still))

    def _put(self, digest: str, path: Path, offset: int, total: int) -> Iterator[int]:
        with open_regular(path) as file:
            file.seek(offset)
            while True:
                content = file.read(min(PIECE, total - offset))
                self.send(protocol.PutPiece(digest=digest, offset=offset, total=total), content)
                offset += len(content)
                yield len(content)
                if not content or offset >= total:
                    return

    def close(self) -> None:
        """End ssh; the agent ends with it."""
        with suppress(OSError):
            self._writer.close()
        self._inbox.drain(END_SECONDS)
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:  # the other side keeps it
            self._process.kill()
            self._process.wait()
            self._inbox.drain(END_SECONDS)

    def _read_errors(self) -> None:
        """Keep the last lines that ssh and the shell print as errors."""
        assert self._process.stderr
        with self._process.stderr as errors:
            while line := errors.readline(LONGEST_ERROR):
                self._errors.append(line.decode(errors="replace"))

    def _lost(self, error: ConnectionLost) -> ConnectionLost:
        """Why the connection was lost, from what ssh and the shell printed, and how they ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
            self._error_reader.join(END_SECONDS)
        return ConnectionLost(describe_failure(self._process.poll(), "".join(self._errors)) or str(error))


def describe_failure(returncode: int | None, printed: str) -> str:
    """Why ssh ended, as a clause that follows the machine's name; empty if it does not say."""
    if returncode == _SSH_FAILED:
        for said, reason in _REASONS:
            if said in printed:
                return reason
    if returncode in _NOT_FOUND:
        return message("burnish is not installed there, or its set-up commands do not make it available")
    if returncode == 2 and "_agent" in printed:
        return message("the Burnish there is too old; install this version there")
    lines = [line for line in printed.splitlines() if line.strip()]
    if lines or not returncode or returncode < 0:
        return one_line(lines[-1].strip()) if lines else ""
    return message("its set-up commands end the shell there with code {code}; correct them", code=returncode)


def agent_script(machine: Machine) -> str:
    """The shell's command that starts the agent there."""
    return f"exec {shlex.quote(machine.command)} _agent {shlex.quote(machine.folder)}"


def remote_command(machine: Machine, script: str) -> tuple[list[str], dict[str, str]]:
    """The command that runs a shell script there, and its environment. Raises InputError if there is no ssh here."""
    if machine.address and shutil.which("ssh") is None:
        raise InputError("there is no ssh on this computer; install OpenSSH's client")
    return _command(machine, script), {**os.environ, "LC_ALL": "C"}  # the reasons are recognised in English


def _command(machine: Machine, script: str) -> list[str]:
    """Whatever a shell there reads is quoted by `shlex`."""
    script = "\n".join(filter(None, [machine.setup, script]))
    if not machine.address:  # this computer, from which jobs are submitted
        return ["sh", "-c", script]
    options = [
        "BatchMode=yes",  # no password is ever asked
        f"ConnectTimeout={CONNECT_SECONDS}",
        "ServerAliveInterval=15",
        "ServerAliveCountMax=3",
        "ForwardAgent=no",
        "ForwardX11=no",
        "ClearAllForwardings=yes",
    ]
    own = ["-F", str(user_path(machine.ssh_config))] if machine.ssh_config else []
    return ["ssh", *own, "-T", *(part for option in options for part in ("-o", option)), "--", machine.address, f"exec sh -c {shlex.quote(script)}"]  # fmt: skip


@contextmanager
def connect(name: str, machine: Machine) -> Iterator[tuple[Connection, protocol.Greeting]]:
    """A connection, and the agent's greeting. Raises ConnectionLost with the reason, or InputError."""
    command, environment = remote_command(machine, agent_script(machine))
    process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment)
    connection = Connection(name, process)
    try:
        yield connection, connection.greet()
    except (KeyboardInterrupt, SystemExit):  # what is still on its way is no longer wanted
        process.kill()
        raise
    finally:
        connection.close()


class StartUnknown(Exception):
    """Whether a run has started there is not known, because of this."""


@dataclass
class Sending:
    """What a machine is sent."""

    files: Collection[str]
    """By digest."""
    run: str = ""
    """The name of the run that is about to start there."""
    script: str = ""
    """Its job; see `protocol.Start`."""


@contextmanager
def discarding(name: str, files: Collection[str]) -> Iterator[Sending]:
    """If the user cancels what is sent meanwhile, delete it there: what is incomplete of these files, by digest, and what nothing uses.

    A run that has started there meanwhile is ended and deleted. Raises StartUnknown if that cannot be done.
    """
    sent = Sending(files)
    try:
        yield sent
    except (KeyboardInterrupt, SystemExit):
        try:
            with connect_by_name(name) as (machine, _):
                machine.ask(protocol.Discard(files=sorted(sent.files), run=sent.run, script=sent.script), protocol.Done)
        except InputError as error:
            if sent.run:
                raise StartUnknown(str(error)) from None
        raise


def start(name: str, connection: Connection, question: protocol.Start) -> protocol.Started:
    """Start a run. If the connection is lost before the answer, ask again over another one, which starts no second run.

    Raises InputError if the run is refused, StartUnknown if there is no connection any more.
    """
    try:
        return connection.ask(question, protocol.Started)
    except ConnectionLost as error:
        reason = str(error)
    for seconds in ASK_AGAIN_SECONDS:
        time.sleep(seconds)
        try:
            with connect(name, find_machine(name)) as (again, _):
                return again.ask(question, protocol.Started)
        except ConnectionLost as error:
            reason = str(error) or reason
    raise StartUnknown(reason or message("the connection ended"))


def is_approved(name: str, code: Collection[str]) -> bool:
    """Whether the user has approved this code on the machine, by the digests of its files. Raises InputError."""
    with connect_by_name(name) as (machine, _):
        return machine.ask(protocol.AskConsent(code=sorted(code)), protocol.Consent).agreed


@contextmanager
def connect_by_name(name: str) -> Iterator[tuple[Connection, protocol.Greeting]]:
    """As `connect`, for commands: finds the machine, and every failure is an InputError with one sentence."""
    machine = find_machine(name)
    try:
        with connect(name, machine) as (connection, greeting):
            for run, origin in greeting.moving.items():
                if _has_left(origin, f"{greeting.folder}/runs/{run}"):
                    with suppress(InputError):
                        connection.ask(protocol.Forget(run=run), protocol.Done)
            yield connection, greeting
    except protocol.FolderUnusable as error:
        sentence = message(
            "{name}: {reason}, or choose another folder with: burnish machines add {name} --folder DIR",
            name=name,
            reason=str(error),
        )
        raise NoConnection(sentence) from None
    except ConnectionLost as error:
        reason = str(error) or message("the connection ended")
        sentence = message("no connection to {name}: {reason}", name=name, reason=reason)
        raise (UnknownKey if reason == UNKNOWN_KEY else NoConnection)(sentence) from None


def _has_left(origin: str, place: str) -> bool:
    """Whether a run that is put aside at `place` is needed no more: its move has ended here, or has failed, and nobody could say so."""
    host, _, path = origin.partition(":")
    folder = RunFolder(path)
    if host != host_id() or not path or not folder.exists():
        return False
    with suppress(RunLocked, OSError), hold_lock(folder.lock):  # else it is being moved just now
        remote = folder.remote_run()
        return remote is None or remote.run != place
    return False


def check(name: str) -> MachineState:
    """Try every step of a connection. Raises InputError with the first that fails; UnknownKey has no fingerprint."""
    script = schedulers.script_of(find_machine(name), {})
    with connect_by_name(name) as (connection, greeting):
        found = connection.ask(protocol.ListDevices(script=script), protocol.Devices)
    return MachineState(
        greeting.versions, greeting.folder, greeting.free_bytes, found.devices, found.note, found.partitions
    )
