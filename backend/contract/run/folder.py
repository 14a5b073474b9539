"""The run folder: its file names, lock, requests, and what can be derived from them (stdlib only)."""

import json
import os
import platform
import re
import time
import unicodedata
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.run.job import PENDING, JobRecord
from backend.contract.run.lock import LOCK_TRIES, is_locked
from backend.contract.safe_files import (
    LINK,
    NOT_REGULAR,
    check_folder,
    open_inside,
    read_unlinked,
    user_path,
    write_whole,
)
from backend.contract.safe_text import parse_json

ENDS = {"interrupt": "interrupted", "stop": "stopped", "pause": "paused"}
"""Request that ends a run → the state in which it ends, the most urgent first: who interrupts gives little time."""
REQUESTS = (*ENDS, "checkpoint")
INTERRUPTED_EXIT_CODE = 75
"""EX_TEMPFAIL of sysexits: the run was interrupted from outside, and a script can resume it."""
GROWTH_SECONDS = 60.0
"""On another host or boot a run whose events have not grown for this long is lost."""

RECORD_BYTES = 1_000_000
"""A record of a run is a few lines; a larger one is not read."""

HERE = "local"
"""The name of this computer as the place where a run continues."""
_HOST = "host-"
Life = Literal["new", "alive", "ended", "lost"]


def exit_code(state: str) -> int:
    """The exit code of a process whose run ended in this state."""
    return {"failed": 1, "lost": 1, ENDS["interrupt"]: INTERRUPTED_EXIT_CODE}.get(state, 0)


@dataclass(frozen=True)
class ProcessRecord:
    """`process.json`: the process that runs the current attempt; written only by the supervisor."""

    attempt: int
    host: str
    boot: str
    supervisor_pid: int
    engine_pid: int
    started: float
    checkpoint: int = 0
    """Step of the newest checkpoint when it started."""
    max_restarts: int = 0
    restarts: int = 0
    """How many attempts in a row, this one included, the supervisor has started by itself without reaching a new checkpoint."""
    died_of: int = 0
    """Signal that ended the attempt before this one, if the supervisor restarted the run because of it."""
    killed_by: str = ""
    """See `ExitRecord.killed_by`; of the attempt before this one."""
    preemptions: int = 0
    """How many restarts in a row, not counted in `restarts`, had no other reason than that a cluster took its node back."""


@dataclass(frozen=True)
class DeviceRequest:
    """How many of which devices a queued run needs; without names, the whole computer."""

    count: int = 1
    devices: tuple[str, ...] = ()

    @property
    def takes_all(self) -> bool:
        """Whether it needs each of its devices."""
        return self.count >= len(self.devices)


WHOLE_COMPUTER = DeviceRequest()


@dataclass(frozen=True)
class DeviceClaim:
    """`devices.json`: the devices on which an attempt computes; written only by the engine."""

    attempt: int
    devices: tuple[str, ...]


@dataclass(frozen=True)
class ExitRecord:
    """`exit.json`: how an attempt's process ended; `returncode` is negative for a signal, as in subprocess."""

    attempt: int
    returncode: int
    ended: float
    message: str = ""
    state: str = ""
    """A value of ENDS if the attempt ended before there was an engine that could say so by an event."""
    killed_by: str = ""
    """Of a process that was killed: `memory` if that was for want of memory, else `signal`; empty if that is not known.

    If it was on another computer, a cluster may have taken that back (`preemption`), or it may be gone (`node`).
    """

    @property
    def has_failed(self) -> bool:
        """Whether the process ended in another way than asked."""
        return self.returncode not in (0, INTERRUPTED_EXIT_CODE)


@dataclass(frozen=True)
class RemoteRun:
    """`remote.json`: the machine on which a run was started, and its folder there; written by whoever starts the run."""

    machine: str
    run: str
    is_started: bool = True
    """False as long as it is not known whether it has started there."""
    is_adopted: bool = False
    """Whether it was started by somebody there: then the files that its spec names are not of this computer."""


class RunFolder:
    """One run on disk. Every file has one writer; readers may read at any time."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).absolute()
        self.spec = self.path / "spec.yaml"
        self.started_spec = self.path / "spec.started.yaml"
        self.lock = self.path / "run.lock"
        self.process = self.path / "process.json"
        self.log = self.path / "process.log"
        self.exit = self.path / "exit.json"
        self.queued = self.path / "queued"
        self.remote = self.path / "remote.json"
        self.job = self.path / "job.json"
        self.devices = self.path / "devices.json"
        self.events = self.path / "events.jsonl"
        self.plan = self.path / "plan.json"
        self.pause_after = self.path / "pause-after.json"
        self.search = self.path / "search.yaml"
        self.trials = self.path / "trials"
        self.facts = self.path / "facts.json"
        self.checkpoints = self.path / "checkpoints"
        self.model = self.path / "model"

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    @property
    def name(self) -> str:
        """The folder's name, by which commands find the run."""
        return self.path.name

    def exists(self) -> bool:
        """Whether this is a run folder at all."""
        return os.path.isfile(self.spec)  # noqa: PTH113 (Path.is_file fails in a folder that is closed to this user)

    def fault(self) -> str:
        """Why a folder that looks like a run is unusable, and what to do; empty for a run and for any other folder."""
        if self.exists():
            return ""
        if os.path.lexists(self.spec):
            return f"{self.spec}: {LINK if self.spec.is_symlink() else NOT_REGULAR}"
        if os.path.lexists(self.started_spec):
            return message(
                "{path}: this run's {name} is missing; copy {name_2} from the same folder to {name}; it "
                "is the spec as it was when the run started",
                path=self.path,
                name=self.spec.name,
                name_2=self.started_spec.name,
            )
        return ""

    def check(self, *, to_write: bool = False) -> None:
        """Raises InputError if the untrusted folder contains links; with `to_write`, also hard links to be written."""
        appended = (self.lock, self.log, self.events) if to_write else ()
        check_folder(self.path, [path.name for path in appended])

    def predictions(self, split: str = "validation", suffix: str = "csv") -> Path:
        """`predictions.csv` for validation data, `predictions_test.csv` for test data; likewise `.parquet`."""
        stem = "predictions" if split == "validation" else f"predictions_{split}"
        return self.path / f"{stem}.{suffix}"

    def prediction_names(self) -> list[str]:
        """The available predictions: `validation`, `test`, then other files, newest first."""
        found: dict[str, float] = {}
        for path in self.path.glob("predictions*.parquet"):
            name = path.stem.removeprefix("predictions").removeprefix("_") or "validation"
            try:
                found[name] = path.stat().st_mtime
            except OSError:
                continue  # it has just been taken away
        own = [name for name in ("validation", "test") if name in found]
        return own + sorted(found.keys() - set(own), key=lambda name: (-found[name], name))

    def has_results(self) -> bool:
        """Whether model and predictions exist, which only a finished run leaves."""
        return self.model.is_dir() and any(self.predictions(split).exists() for split in ("validation", "test"))

    def checkpoint(self, step: int) -> Path:
        """The folder of the checkpoint after `step` optimizer steps."""
        return self.checkpoints / f"step-{step:06d}"

    def checkpoint_steps(self) -> list[int]:
        """Steps with a checkpoint folder, ascending, verified or not."""
        return sorted(int(path.name[5:]) for path in self.checkpoints.glob("step-*") if path.name[5:].isdigit())

    # Several hosts: each but the first has a folder of its own in the run's, with what it says and how it ended.

    def host(self, number: int) -> "RunFolder":
        """The folder of host `number`; the first host writes to the run folder itself."""
        return RunFolder(self.path / f"{_HOST}{number}") if number else self

    def main_folder(self) -> "RunFolder":
        """The main run of this folder: itself, or the run that this host folder belongs to."""
        run = RunFolder(self.path.parent)
        number = self.path.name.removeprefix(_HOST)
        return run if number.isdecimal() and self.path.name != number and run.process_record() else self

    # Requests: the user or the app creates the file, the backend deletes it after answering with an event.

    def request(self, kind: str) -> None:
        """Ask the backend for one of REQUESTS."""
        assert kind in REQUESTS, kind
        os.close(open_inside(self.path, kind, os.O_WRONLY | os.O_CREAT))

    def open_request(self) -> str | None:
        """The most urgent pending request."""
        return next(iter(self.requests()), None)

    def requests(self) -> list[str]:
        """All pending requests, most urgent first."""
        return [kind for kind in REQUESTS if (self.path / kind).exists()]

    def request_time(self, kind: str) -> float:
        """When the request was last made; 0 if never."""
        try:
            return (self.path / kind).stat().st_mtime
        except OSError:
            return 0.0

    def clear_request(self, kind: str) -> None:
        """Delete an answered request. Raises OSError if another user's file cannot be deleted."""
        (self.path / kind).unlink(missing_ok=True)

    def clear_requests(self) -> None:
        """Delete old requests before a new attempt."""
        for kind in REQUESTS:
            self.clear_request(kind)

    # The queue: while `queued` is there, the run's supervisor waits for its turn. Whoever takes it away lets it begin.

    def join_queue(self, after: float = 0.0, request: DeviceRequest = WHOLE_COMPUTER) -> None:
        """Called by the supervisor, which holds the lock: queue the run behind any run that joined until `after`."""
        write_json(self.queued, {"joined": max(time.time(), after + 0.001), **asdict(request)})

    def rejoin_queue(self, joined: float) -> None:
        """Called by whoever holds the queue's lock: give a queued run another place."""
        write_json(self.queued, {"joined": joined, **asdict(self.device_request())})

    def leave_queue(self) -> None:
        """Leave the queue. Windows keeps a file while someone reads it, and runs further back in the queue do."""
        for _ in range(LOCK_TRIES):
            try:
                return self.queued.unlink(missing_ok=True)
            except PermissionError:
                time.sleep(0.01)
        return self.queued.unlink(missing_ok=True)

    def queued_since(self) -> float | None:
        """When the run joined the queue in which it is waiting, or was waiting when it was lost."""
        try:
            return float(parse_json(read_unlinked(self.queued, RECORD_BYTES))["joined"])
        except OSError:
            return None
        except (ValueError, KeyError, TypeError):
            return 0.0

    def device_request(self) -> DeviceRequest:
        """The devices that the run waits for in the queue."""
        found = _read_record(self.queued, DeviceRequest) or WHOLE_COMPUTER
        return DeviceRequest(max(1, found.count), tuple(map(str, found.devices)))

    # A trial of a search ends as paused where its search wants to compare it with others, however fast it gets there.

    def set_pause(self, fraction: float | None) -> None:
        """Called by whoever starts the next attempt: let it pause at the first evaluation after this fraction of its steps."""
        if fraction is None:
            self.pause_after.unlink(missing_ok=True)
        else:
            write_json(self.pause_after, {"fraction": fraction})

    def pause_fraction(self) -> float | None:
        """After which fraction of its steps the run pauses by itself, at its next evaluation; None if it does not."""
        try:
            return float(parse_json(read_unlinked(self.pause_after, RECORD_BYTES))["fraction"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def claim_devices(self, names: Iterable[str]) -> None:
        """Called by the engine: keep others in the queue from these devices until the attempt is over."""
        record = self.process_record()
        write_json(self.devices, asdict(DeviceClaim(record.attempt if record else 0, tuple(names))))

    def claimed_devices(self) -> frozenset[str] | None:
        """The devices of the current attempt; None as long as it has not chosen any."""
        claim, record = _read_record(self.devices, DeviceClaim), self.process_record()
        return frozenset(map(str, claim.devices)) if claim and record and claim.attempt == record.attempt else None

    def is_queued(self) -> bool:
        """Whether the run is waiting now; a lost run is not."""
        return self.queued.exists() and self.is_carried()

    def waits(self) -> bool:
        """Whether the run, if it is alive, has not started yet: it is in the queue, or the job of its original is pending."""
        return self.queued.exists() or self.pending_job() is not None

    # Records

    def process_record(self) -> ProcessRecord | None:
        """The process of the last attempt, or None before the first."""
        return _read_record(self.process, ProcessRecord)

    def remote_run(self) -> RemoteRun | None:
        """Where the run really is, if this folder is the copy of one on another machine."""
        return _read_record(self.remote, RemoteRun)

    def job_record(self) -> JobRecord | None:
        """The job of a run on a cluster."""
        return _read_record(self.job, JobRecord)

    def pending_job(self) -> JobRecord | None:
        """The job on another machine for which this copy waits."""
        job = self.job_record() if self.remote.exists() else None
        return job if job and job.state == PENDING else None

    def exit_record(self) -> ExitRecord | None:
        """How the last attempt ended, or None if it has not (or nothing was left to record it)."""
        record, process = _read_record(self.exit, ExitRecord), self.process_record()
        return record if record and process and record.attempt == process.attempt else None

    def has_engine(self) -> bool:
        """Whether the last attempt's engine was started and has not ended, as far as the records say."""
        record = self.process_record()
        return record is not None and record.engine_pid != 0 and self.exit_record() is None

    def next_attempt(self) -> int:
        """The number of the next attempt."""
        record = self.process_record()
        return record.attempt + 1 if record else 1

    def has_later_attempt(self, number: int, ended: float) -> bool:
        """Whether a later attempt has started since that one ended."""
        if self.remote.exists():  # the events bear another computer's clock, and its count of attempts
            return False
        record = self.process_record()
        return record is not None and record.attempt > number and record.started > ended

    def write_process_record(self, record: ProcessRecord) -> None:
        """Written by the supervisor, once per attempt."""
        write_json(self.process, asdict(record))

    def write_job_record(self, record: JobRecord) -> None:
        """Written by whoever submits the job; in a run's copy by the mirror."""
        write_json(self.job, asdict(record))

    def write_exit_record(self, record: ExitRecord) -> None:
        """Written by the supervisor, when the engine's whole process tree is gone."""
        write_json(self.exit, asdict(record))

    def record_attempt_elsewhere(self, attempt: int, *, ends_well: bool) -> None:
        """Written when the run arrives from another computer, where its last attempt has ended."""
        state = "" if ends_well else ENDS["interrupt"]
        self.write_exit_record(ExitRecord(attempt, 0, time.time(), state=state))
        self.write_process_record(ProcessRecord(attempt, "", "", 0, 0, 0.0))  # not later than what its events say

    def is_carried(self) -> bool:
        """Whether a process is running it. If this user cannot read its lock: whether there is no exit record."""
        found = is_locked(self.lock)
        return self.exit_record() is None if found is None else found

    def life(self, now: float | None = None) -> Life:
        """Whether the run is running, has ended, is lost, or has never been started.

        Derived, never guessed: on this host and boot from the kernel's lock and `exit.json`; elsewhere the lock says
        nothing, so there a run without an exit is lost if its events have not grown for `GROWTH_SECONDS`.
        """
        # The lock is checked before the exit record, which is written before the lock is released.
        if self.is_carried():
            return "alive"
        process = self.process_record()
        if process is None:
            return "new"
        if self.exit_record():
            return "ended"
        if (process.host, process.boot) == (host_id(), boot_id()):
            return "alive" if self.is_carried() else "lost"  # another attempt may just have begun
        return "alive" if (now or time.time()) - self._last_growth() < GROWTH_SECONDS else "lost"

    def _last_growth(self) -> float:
        try:
            return self.events.stat().st_mtime
        except OSError:
            return 0.0


def _read_record(path: Path, kind: type[Any]) -> Any:
    try:
        values = parse_json(read_unlinked(path, RECORD_BYTES))
        kinds = {name: one.type for name, one in kind.__dataclass_fields__.items() if name in values}
        return kind(**{name: convert(values[name]) for name, convert in kinds.items()})
    except (OSError, ValueError, TypeError, OverflowError):
        return None


def write_json(path: Path, values: dict[str, Any], mode: int = 0o666) -> None:
    """Write the values as JSON, using `write_whole`."""
    write_whole(path, json.dumps(values, indent=1).encode(), mode)


def new_run_folder(root: Path, name: str, when: datetime | None = None) -> RunFolder:
    """Make `2026-11-21-1530-name` under `root`; a second one in the same minute gets `-2`."""
    stem = f"{(when or datetime.now()):%Y-%m-%d-%H%M}-{slug(name)}"
    root.mkdir(parents=True, exist_ok=True)
    for number in range(1, 10_000):
        path = root / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return RunFolder(path)
    raise RuntimeError(message("{root} already contains ten thousand runs named {stem}", root=root, stem=stem))


def slug(name: str) -> str:
    """A file name that is valid on every file system: letters of any script, digits, dots and hyphens."""
    kept = "".join(sign if _is_part_of_a_word(sign) else "-" for sign in name)
    return re.sub("-+", "-", kept).strip("-._")[:60] or "run"


def _is_part_of_a_word(sign: str) -> bool:
    # Vowel signs of many scripts are marks, which \w does not match.
    return sign.isalnum() or sign in "._" or unicodedata.category(sign)[0] == "M"


def run_folders(root: Path) -> list[RunFolder]:
    """Every run under `root`, newest name first."""
    return [folder for folder in _folders(root) if folder.exists()]


def run_faults(root: Path) -> list[str]:
    """What is wrong with each folder under `root` that looks like a run but cannot be used as one."""
    return [fault for folder in _folders(root) if (fault := folder.fault())]


def _folders(root: Path) -> list[RunFolder]:
    try:
        return [RunFolder(path) for path in sorted((path for path in root.iterdir() if path.is_dir()), reverse=True)]
    except OSError:
        return []


def find_run(name_or_path: str, root: Path) -> RunFolder | None:
    """The run with that name under `root`, or the run folder at that path. Raises InputError if it is unusable."""
    for path in (root / name_or_path, user_path(name_or_path)):
        folder = RunFolder(path)
        if folder.exists():
            folder.check()
            return folder
        if fault := folder.fault():
            raise InputError(fault)
    return None


def host_id() -> str:
    """This computer's name, as stored in `process.json`."""
    return platform.node()


def boot_id() -> str:
    """An id that changes at every boot; empty if the system does not provide one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
