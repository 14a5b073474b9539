"""What two computers say to each other over ssh: a line of JSON each, followed by as many bytes as it announces."""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import IO

import msgspec

from backend.contract.errors import InputError
from backend.contract.run.job import JobRecord
from backend.contract.safe_files import is_file_name
from backend.contract.safe_text import one_line

GREETING_LINE = b"burnish agent 1\n"
"""The first line of the agent. Whatever a login shell prints before it is skipped."""
MAX_NOISE = 1_000_000
"""Bytes that a login shell may print before the agent greets."""
LONGEST_LINE = 16_000_000
"""Of a message: a model's folder has hundreds of files, a data folder thousands."""
PIECE = 4_000_000
"""Bytes of a file that are sent at once."""

RUN_FILES = ("spec.yaml", "spec.*.yaml", "events.jsonl", "plan.json", "facts.json")
"""What a run takes along to another computer, beside its checkpoints."""
# The files of a run that are copied. All others are the run's own records, which each computer writes itself.
EVENTS, LOG = "events.jsonl", "process.log"
GROWING = (EVENTS, LOG)
RECORDS = ("plan.json", "facts.json")
RESULTS = ("model/*", "model/*/*", "predictions*.csv", "predictions*.parquet")
CHECKPOINTS = tuple("checkpoints/*" + "/*" * levels for levels in range(1, 6))
"""Those of JAX have a file of the state in `state/ocdbt.process_0/d/`."""
INCOMPLETE = ".part"
"""The suffix of a file of which some pieces have not arrived yet."""

Report = Callable[[int, int, str], None]
"""Called with what is done, of how much, and the unit."""


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="message", omit_defaults=True):
    """The field of every message."""

    size: int = 0
    """Bytes that follow the line."""


class GetMissing(Message, frozen=True, tag=True):
    """Which of these files, by digest and size, are not there yet?"""

    files: dict[str, int]


class PutPiece(Message, frozen=True, tag=True):
    """A piece of a file. Pieces come in order; the last one completes `total` bytes."""

    digest: str
    offset: int
    total: int


class Start(Message, frozen=True, tag=True):
    """Start a run of this spec, unless it has been started. `trees` are the folders that it names: tree → relative name → digest."""

    spec: str
    trees: dict[str, dict[str, str]]
    run: str
    """The name of its folder, which no other run has: so whoever asks again, because an answer was lost, starts no second run."""
    options: list[str] = []
    script: str = ""
    """The job that starts the run (`schedulers.script_of`); empty to start it directly."""


class Resume(Message, frozen=True, tag=True):
    """Continue a run, unless it is running or has finished."""

    run: str
    options: list[str] = []
    script: str = ""
    """As in Start."""


class Receive(Message, frozen=True, tag=True):
    """Take a run that has been somewhere else, and keep it aside until it is asked for: only then is it recorded to be there."""

    name: str
    origin: str
    """Which run it is; what an interrupted move of the same run has left is replaced."""
    files: dict[str, str]
    """Relative name in the run's folder → digest."""
    trees: dict[str, dict[str, str]]
    """As in Start."""
    attempt: int = 0
    """Number of its last attempt."""
    ends_well: bool = True
    """Whether its events say how that ended."""


class Release(Message, frozen=True, tag=True):
    """Put a run that is not running aside, because another computer takes it; whatever asks for it brings it back."""

    run: str
    origin: str = ""
    """As in Receive."""
    script: str = ""
    """As in Start."""


class Forget(Message, frozen=True, tag=True):
    """Delete a run that was put aside and has been taken."""

    run: str


class Discard(Message, frozen=True, tag=True):
    """Delete what has arrived of these incomplete files, by digest: they are no longer wanted. End and delete the run that needed them."""

    files: list[str]
    run: str = ""
    """As in Start."""
    script: str = ""
    """As in Start."""


class EndNow(Message, frozen=True, tag=True):
    """End a run's processes there without a checkpoint."""

    run: str
    script: str = ""
    """As in Start."""


class ListDevices(Message, frozen=True, tag=True):
    """Which devices can train there, or which partitions are there for jobs?"""

    script: str = ""
    """A job as in Start, of which the scheduler says whether it would accept it."""


class Devices(Message, frozen=True, tag=True):
    """The devices or partitions, a line each, and a remark, such as why there are no others."""

    devices: list[str]
    partitions: list[str] = []
    note: str = ""


class AskConsent(Message, frozen=True, tag=True):
    """Has the user approved this code there? By the digest of its files, as in `contract.consents`."""

    code: list[str]


class Consent(Message, frozen=True, tag=True):
    """Whether all of it is approved there."""

    agreed: bool


class Done(Message, frozen=True, tag=True):
    """What was asked is done."""


class Describe(Message, frozen=True, tag=True):
    """Which run is this? It need not be running."""

    run: str


class Follow(Message, frozen=True, tag=True):
    """Send what grows in a run's folder, from these positions on, until the run has ended."""

    run: str
    offsets: dict[str, int] = {}
    """Bytes of the growing files that have arrived."""
    files: dict[str, list[int]] = {}
    """Size and time of modification (ns) of the other files that have arrived."""
    checkpoints: bool = False
    script: str = ""
    """As in Start."""
    only_ended: bool = False
    """Refuse if the run is in progress."""


class Ask(Message, frozen=True, tag=True):
    """Make a request to the run that is being followed; see `contract.run.folder.REQUESTS`."""

    request: str


class Greeting(Message, frozen=True, tag=True):
    """The agent's first message."""

    contract_version: str
    versions: dict[str, str]
    folder: str
    """The machine's folder, absolute."""
    free_bytes: int
    moving: dict[str, str] = {}
    """Name of each run that was put aside → its origin, as in Receive."""


class Missing(Message, frozen=True, tag=True):
    """Of the files asked about, those that are not there, and how many bytes of each are."""

    files: dict[str, int]


class Started(Message, frozen=True, tag=True):
    """The run's folder, and its spec with everything resolved."""

    run: str
    spec: str


class Refused(Message, frozen=True, tag=True):
    """Why something was not done, as one sentence."""

    reason: str


class Piece(Message, frozen=True, tag=True):
    """A piece of a file of the run. A growing file has no `total`; another one is complete with its last byte."""

    name: str
    offset: int
    total: int | None = None
    modified: int = 0


class JobChanged(Message, frozen=True, tag=True):
    """What is known of the run's job is no longer the same."""

    record: JobRecord


class JobUnknown(Message, frozen=True, tag=True):
    """Why the scheduler refuses to say anything about the run's job, which may be well; empty once it answers again."""

    reason: str


class SpecResolved(Message, frozen=True, tag=True):
    """The run's spec with the automatic values that its job has chosen."""

    spec: str


class Alive(Message, frozen=True, tag=True):
    """The agent is still there; sent when it has had nothing else to say for a while."""


class Ended(Message, frozen=True, tag=True):
    """The run has ended and everything is sent. `reason` says why, and `state` how, if no event did."""

    life: str
    reason: str = ""
    state: str = ""
    files: list[str] = []
    """All files of the run that may be copied; others that were are no longer there."""


AnyMessage = (
    GetMissing
    | PutPiece
    | Start
    | Resume
    | Receive
    | Release
    | Forget
    | Discard
    | EndNow
    | Describe
    | ListDevices
    | Follow
    | Ask
    | Greeting
    | Missing
    | Started
    | Refused
    | Devices
    | AskConsent
    | Consent
    | Done
    | Piece
    | JobChanged
    | JobUnknown
    | SpecResolved
    | Alive
    | Ended
)
_decoder = msgspec.json.Decoder(AnyMessage)


class ConnectionLost(Exception):
    """The other side is gone; the message says why, as far as that is known."""


class FolderUnusable(ConnectionLost):
    """The agent cannot use its folder, at least not now."""


def is_copied(name: str) -> bool:
    """Whether a file with this relative name may be copied from one computer to another as a whole."""
    return _matches(name, (*RECORDS, *RESULTS, *CHECKPOINTS))


def is_moved(name: str) -> bool:
    """Whether a run that is moved to another computer may have a file with this relative name."""
    return _matches(name, (*RUN_FILES, *CHECKPOINTS))


def _matches(name: str, allowed: tuple[str, ...]) -> bool:
    parts = name.split("/")
    patterns = (pattern.split("/") for pattern in allowed)
    return all(map(is_file_name, parts)) and any(
        len(parts) == len(pattern) and all(map(fnmatchcase, parts, pattern)) for pattern in patterns
    )


def send(stream: IO[bytes], message: Message, content: bytes | memoryview = b"") -> None:
    """Send a message with its content. Raises ConnectionLost."""
    if content:
        message = msgspec.structs.replace(message, size=len(content))
    try:
        stream.write(msgspec.json.encode(message) + b"\n")
        stream.write(content)
        stream.flush()
    except (OSError, ValueError) as error:  # ValueError: the stream was closed meanwhile
        raise ConnectionLost(str(error)) from None


def receive(stream: IO[bytes]) -> tuple[AnyMessage, bytes]:
    """The next message and its content. Raises ConnectionLost at the end, InputError if it is not understood."""
    line = stream.readline(LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise ConnectionLost("")
    try:
        message = _decoder.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(
            "the other computer sent something unknown ({error}); update Burnish there",
            error=one_line(str(error))[:200],
        ) from None
    if not 0 <= message.size <= PIECE:
        raise InputError("the other computer announced {size:,} bytes at once; update Burnish there", size=message.size)
    content = stream.read(message.size)
    if len(content) < message.size:
        raise ConnectionLost("")
    return message, content


class Inbox:
    """The messages of a stream, received by a thread, so that waiting for one can time out."""

    def __init__(self, stream: IO[bytes], *, after: bytes = b"") -> None:
        """Whatever comes before the line `after` is skipped."""
        self._stream, self._after = stream, after
        self._messages: queue.Queue[tuple[AnyMessage, bytes] | Exception] = queue.Queue(maxsize=8)
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def take(self, seconds: float) -> tuple[AnyMessage, bytes] | None:
        """The next message and its content; None if none arrives in time. Raises as `receive`."""
        try:
            message = self._messages.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(message, Exception):
            raise message
        return message

    def drain(self, seconds: float) -> None:
        """Drop what still arrives until the stream ends, so that the other side is not blocked."""
        until = time.monotonic() + seconds
        while self._thread.is_alive() and time.monotonic() < until:
            with suppress(queue.Empty):
                self._messages.get(timeout=0.05)

    def _receive(self) -> None:
        with self._stream:
            try:
                self._skip_noise()
                while True:
                    self._messages.put(receive(self._stream))
            except (ConnectionLost, InputError) as error:
                self._messages.put(error)
            except OSError as error:
                self._messages.put(ConnectionLost(str(error)))

    def _skip_noise(self) -> None:
        skipped = 0
        while self._after and (line := self._stream.readline(MAX_NOISE)) != self._after:
            skipped += len(line)
            if not line or skipped > MAX_NOISE:
                raise ConnectionLost("")
