"""The far side of a connection: `burnish _agent FOLDER`, which ssh starts; it ends with its standard input.

It stores files, starts runs with this computer's own commands, and sends back whatever grows in a run's folder. Each run
has its own supervisor, so it continues when the agent ends.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, TypeVar

from backend.contract import consents
from backend.contract.errors import InputError, describe_system_error
from backend.contract.messages import message
from backend.contract.processes import STARTED_BY_AGENT, python_command
from backend.contract.run.event_summary import landmarks
from backend.contract.run.events import RunFinished
from backend.contract.run.folder import ENDS, REQUESTS, RunFolder, write_json
from backend.contract.run.job import SUBMITTING
from backend.contract.run.lock import RunLocked, take_lock
from backend.contract.safe_files import MAX_SPEC, is_file_name, open_unlinked, read_unlinked, user_path, write_whole
from backend.contract.safe_text import parse_json
from backend.contract.versions import CONTRACT_VERSION, installed_versions
from backend.data.removal import remove
from backend.remote import protocol, schedulers
from backend.remote.job import Job
from backend.remote.protocol import CHECKPOINTS, EVENTS, GROWING, PIECE, RECORDS, RESULTS, ConnectionLost
from backend.remote.store import SCRATCH, FileStore, remove_old
from backend.remote.tree import check_files

POLL_SECONDS = 0.25
"""How often a growing run is read: an event should be in the window within two seconds."""
ORIGIN = "origin.json"
"""In a run that was moved here: which run of which computer it was."""
BEAT_SECONDS = 5.0
"""How often the agent sends a sign of life when it has nothing else to send."""

Found = TypeVar("Found")


def run(folder: str) -> int:
    """Answer until standard input ends."""
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library's print must not get between the messages
    agent = _Agent(Path.home() / user_path(folder), reader, writer)
    with suppress(ConnectionLost):  # that is how it ends
        agent.serve()
    return 0


class _Agent:
    """Answers one connection."""

    def __init__(self, folder: Path, reader: IO[bytes], writer: IO[bytes]) -> None:
        self._runs = folder / "runs"
        self._aside = folder / "moving"
        """Runs that are here as a whole, but belong to nobody until the other side has recorded where they are."""
        self._starting = folder / "starting"
        """A lock for each run that was started or continued lately."""
        self._folder, self._reader, self._writer = folder, reader, writer
        self._last_sent = 0.0
        self._store = FileStore(folder, self._beat, self._beside)

    def serve(self) -> None:
        """Greet, then answer messages in order; refuse if the folder cannot be used. Raises ConnectionLost at the end."""
        self._writer.write(protocol.GREETING_LINE)
        try:
            for folder in (self._runs, self._aside, self._starting):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._store.prepare()
            remove_old([*self._starting.iterdir(), *self._aside.glob(f"{SCRATCH}*")])
        except OSError as error:
            self._send(protocol.Refused(reason=describe_system_error(error) or str(error)))
            return
        self._inbox = protocol.Inbox(self._reader)
        free = shutil.disk_usage(self._folder).free
        versions = installed_versions(("burnish", "torch", "jax", "ray"))
        self._send(protocol.Greeting(contract_version=CONTRACT_VERSION, versions=versions, folder=str(self._folder), free_bytes=free, moving=self._moving()))  # fmt: skip
        while True:
            received = self._wait_for_message()
            try:
                self._answer(*received)
            except InputError as error:
                self._send(protocol.Refused(reason=str(error)))
            except OSError as error:
                self._send(protocol.Refused(reason=describe_system_error(error) or str(error)))

    def _moving(self) -> dict[str, str]:
        return {path.name: _origin(path) for path in sorted(self._aside.iterdir()) if RunFolder(path).exists()}

    def _wait_for_message(self) -> tuple[protocol.AnyMessage, bytes]:
        while (received := self._inbox.take(BEAT_SECONDS)) is None:
            self._beat()
        return received

    def _send(self, sent: protocol.Message, content: bytes = b"") -> None:
        protocol.send(self._writer, sent, content)
        self._last_sent = time.monotonic()

    def _beat(self) -> None:
        if time.monotonic() - self._last_sent >= BEAT_SECONDS:
            self._send(protocol.Alive())

    def _beside(self, work: Callable[[], Found]) -> Found:
        """Do the work in a thread, and send signs of life meanwhile. If the connection is lost, the work is done all the same."""
        with ThreadPoolExecutor(1) as threads:
            working, is_lost = threads.submit(work), False
            while True:
                try:
                    return working.result(None if is_lost else BEAT_SECONDS / 2)
                except TimeoutError:
                    if working.done():  # it is the work's own error
                        raise
                try:
                    self._beat()
                except ConnectionLost:
                    is_lost = True

    def _answer(self, received: protocol.AnyMessage, content: bytes) -> None:
        match received:
            case protocol.GetMissing(files=files):
                self._send(protocol.Missing(files={digest: size for digest in files if (size := self._store.held(digest)) is not None}))  # fmt: skip
            case protocol.PutPiece():
                self._store.put(received, content)
            case protocol.Start():
                self._start(received)
            case protocol.Resume():
                self._resume(received)
            case protocol.Receive():
                self._receive(received)
            case protocol.Release(run=run, origin=origin, script=script):
                self._release(self._run(run), origin, script)
            case protocol.Forget(run=run):
                _remove(self._aside / RunFolder(run).name)
                self._send(protocol.Done())
            case protocol.Discard(files=files, run=run, script=script):
                if run:
                    self._withdraw(self._new_run(run), script)
                self._store.discard(files)
                self._send(protocol.Done())
            case protocol.EndNow(run=run, script=script):
                self._end_now(self._run(run), script)
            case protocol.ListDevices(script=script):
                self._send(self._beside(lambda: schedulers.check(script, self._folder)) if script else _list_devices())
            case protocol.AskConsent(code=code):
                known = {one.code for one in consents.read()}
                self._send(protocol.Consent(agreed=known.issuperset(code)))
            case protocol.Describe(run=run):
                self._send(_started(self._run(run, is_moved=False)))
            case protocol.Follow():
                self._follow(received)
            case protocol.Ask():  # the run that it followed had just ended
                pass
            case _:
                raise InputError("the agent does not know what to do with this message; update Burnish")

    # Runs

    def _start(self, asked: protocol.Start) -> None:
        for tree, files in asked.trees.items():
            self._store.build(tree, files)
        folder = self._new_run(asked.run)
        with self._alone(folder) as lock:
            if not _was_started(folder):
                if asked.script:
                    self._start_job(folder, asked)
                else:
                    self._start_here(folder, asked, lock)
            self._send(_started(folder))

    def _new_run(self, name: str) -> RunFolder:
        """The folder of a run that was not started, or only lately. Raises InputError for what is no name."""
        if not is_file_name(name):
            raise InputError("{name} is not a name of a run; update Burnish", name=repr(name))
        return RunFolder(self._runs / name)

    @contextmanager
    def _alone(self, folder: RunFolder) -> Iterator[int]:
        """Be the only one that starts this run, and hold its lock: the agent of a connection that was lost may not have finished."""
        path = self._starting / folder.name
        while True:
            try:
                lock = take_lock(path)
                break
            except RunLocked:
                self._beat()
        os.utime(path)  # it is not old
        try:
            yield lock
        finally:
            os.close(lock)

    def _start_here(self, folder: RunFolder, asked: protocol.Start, lock: int) -> None:
        if folder.path.exists():  # whoever began this was killed
            _remove(folder.path)
        with tempfile.TemporaryDirectory() as scratch:
            spec = Path(scratch) / "spec.yaml"
            spec.write_text(asked.spec, encoding="utf-8")
            self._run_command(
                ["train", str(spec), "--run-folder", str(folder.path), *asked.options, "--detach", "--json"], lock
            )

    def _start_job(self, folder: RunFolder, asked: protocol.Start) -> None:
        folder.path.mkdir(exist_ok=True)
        try:
            write_whole(folder.spec, asked.spec.encode())
            self._beside(lambda: schedulers.submit(folder, asked.script, asked.options))
        except BaseException:  # without the folder, a job that was taken all the same ends at once
            shutil.rmtree(folder.path)
            raise

    def _withdraw(self, folder: RunFolder, script: str) -> None:
        """End and delete a run that has been started just now, if it has."""
        with self._alone(folder):
            if not folder.path.exists():
                return
            if (job := schedulers.job_of(folder, script)) is not None:
                job.stop()
            elif folder.life() == "alive":
                self._run_command(["stop", str(folder.path), "--now"])
            _remove(folder.path)

    def _resume(self, asked: protocol.Resume) -> None:
        folder = self._run(asked.run)
        with self._alone(folder) as lock:
            job = schedulers.job_of(folder, asked.script)
            is_alive = self._beside(lambda: _life(folder, job)) == "alive"
            has_changes = not {"--set", "--engine"}.isdisjoint(asked.options)
            if is_alive and has_changes:
                raise InputError("{name}: this run is in progress; pause it before you change it", name=folder.name)
            if is_alive or (_has_finished(folder) and not has_changes):  # the copy still lacks what came last
                pass
            elif asked.script:
                self._beside(lambda: schedulers.submit(folder, asked.script, asked.options))
            else:
                folder.job.unlink(missing_ok=True)
                self._run_command(["resume", str(folder.path), *asked.options, "--detach", "--json"], lock)
            self._send(_started(folder))

    def _end_now(self, folder: RunFolder, script: str) -> None:
        if (job := schedulers.job_of(folder, script)) is not None:
            self._beside(job.stop)
        else:
            self._run_command(["stop", str(folder.path), "--now"])
        self._send(protocol.Done())

    def _run_command(self, arguments: list[str], *locks: int) -> None:
        """Run a command of this computer, which holds these locks as long. Raises InputError with the sentence of one that fails."""
        environment = {**os.environ, "BURNISH_RUNS": str(self._runs), STARTED_BY_AGENT: "1"}
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                python_command("backend", *arguments), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, env=environment,
                pass_fds=locks if os.name != "nt" else (),
            )  # fmt: skip
            try:
                while process.poll() is None:
                    self._beat()
                    time.sleep(POLL_SECONDS)
            except ConnectionLost:  # else a run could start that the other side knows nothing about
                process.kill()
                process.wait()
                raise
            if process.returncode == 0:
                return
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else message("burnish {name} failed without an error message", name=arguments[0])
        raise InputError("{reason}", reason=reason)

    # Moves

    def _receive(self, asked: protocol.Receive) -> None:
        from backend.models.saved_model import (
            flush_folder,
            flush_to_disk,
        )  # load numpy, for which other messages need not wait

        check_files(asked.files)
        if not is_file_name(asked.name) or not all(map(protocol.is_moved, asked.files)):
            raise InputError("this is not what a run consists of; update Burnish")
        for tree, files in asked.trees.items():
            self._store.build(tree, files)
        name = self._free_name(asked.name, asked.origin)
        with tempfile.TemporaryDirectory(dir=self._aside, prefix=SCRATCH) as scratch:
            made = RunFolder(Path(scratch) / name)
            made.path.mkdir()
            for file, digest in asked.files.items():
                path = made.path.joinpath(*file.split("/"))
                path.parent.mkdir(parents=True, exist_ok=True)
                self._store.copy(digest, path)  # not a link: the run goes on writing
            write_json(made.path / ORIGIN, {"origin": asked.origin})
            made.record_attempt_elsewhere(asked.attempt, ends_well=asked.ends_well)
            made.check(to_write=True)
            flush_to_disk(made.path)
            _remove(self._aside / name)
            made.path.rename(self._aside / name)
        flush_folder(self._aside)
        shared = {digest for files in asked.trees.values() for digest in files.values()}
        for digest in set(asked.files.values()) - shared:
            self._store.forget(digest)
        self._send(protocol.Started(run=str(self._runs / name), spec=""))

    def _free_name(self, name: str, origin: str) -> str:
        """A name that no run here has, unless an interrupted move of the same run has left that one."""
        for number in count(1):
            found = name if number == 1 else f"{name}-{number}"
            aside = self._aside / found
            if not (self._runs / found).exists() and (not aside.exists() or _origin(aside) == origin):
                return found
        raise AssertionError

    def _release(self, folder: RunFolder, origin: str, script: str) -> None:
        from backend.models.saved_model import flush_folder  # as above

        job = schedulers.job_of(folder, script)
        if folder.path.parent != self._runs:
            raise InputError("{path}: only runs in the machine's own folder can be moved", path=folder.path)
        if _life(folder, job) == "alive":
            raise InputError("{name}: this run is in progress; pause it before you move it", name=folder.name)
        try:
            lock = take_lock(folder.lock)
        except RunLocked:
            raise InputError("{name}: this run is in progress; pause it before you move it", name=folder.name) from None
        try:
            _remove(self._aside / folder.name)
            write_json(folder.path / ORIGIN, {"origin": origin})
            moved = RunFolder(folder.path.rename(self._aside / folder.name))
        finally:
            os.close(lock)
        flush_folder(self._aside)
        self._send(_started(moved))

    def _run(self, path: str, *, is_moved: bool = True) -> RunFolder:
        """The run; one that was put aside is put back, as whoever asks has recorded that it is here."""
        folder = RunFolder(self._runs / user_path(path))
        aside = self._aside / folder.name
        if is_moved and not folder.path.exists() and folder.path.parent == self._runs and aside.is_dir():
            aside.rename(folder.path)
        if not folder.exists():
            raise InputError("{path} is not a run folder there; it may have been deleted", path=folder.path)
        folder.check()
        return folder

    def _follow(self, asked: protocol.Follow) -> None:
        folder = self._run(asked.run)
        offsets, files = dict(asked.offsets), {name: tuple(at) for name, at in asked.files.items()}
        job, requests = schedulers.job_of(folder, asked.script), list[str]()
        resolved = trouble = ""
        if asked.only_ended and _life(folder, job) == "alive":
            raise InputError("{name}: this run is in progress; pause it before you move it", name=folder.name)
        while True:
            life = _life(folder, job)  # before the last look, so that nothing is missed
            if job is not None and job.has_changed:
                self._send(protocol.JobChanged(record=job.record))
            if job is not None and job.trouble != trouble:
                self._send(protocol.JobUnknown(reason=job.trouble))
                trouble = job.trouble
            if job is not None and folder.process_record() is not None and (spec := _started(folder).spec) != resolved:
                self._send(protocol.SpecResolved(spec=spec))
                resolved = spec
            for name in GROWING:
                offsets[name] = self._send_growth(folder, name, offsets.get(name, 0))
            self._send_files(folder, RECORDS, files)
            if life != "alive":
                break
            self._beat()
            if (received := self._inbox.take(POLL_SECONDS)) is not None:
                if not isinstance(received[0], protocol.Ask) or received[0].request not in REQUESTS:
                    raise InputError("the agent does not know this request; update Burnish")
                requests.append(received[0].request)
            _make_requests(folder, job, requests)
            self._beat()  # asking a scheduler may take long
        self._send_files(folder, (*RESULTS, *(CHECKPOINTS if asked.checkpoints else ())), files)
        self._send(_describe_end(folder, life, job))

    def _send_growth(self, folder: RunFolder, name: str, offset: int) -> int:
        """Send what a file has grown by, whole lines of events; returns its new position."""
        try:
            with open_unlinked(folder.path / name) as file:
                size = os.fstat(file.fileno()).st_size
                offset = offset if size >= offset else 0  # it was deleted and started again
                file.seek(offset)
                while content := file.read(min(PIECE, size - offset)):
                    if name == EVENTS and ((end := content.rfind(b"\n") + 1) or len(content) < PIECE):
                        content = content[:end]
                    if not content:
                        break
                    self._send(protocol.Piece(name=name, offset=offset), content)
                    offset += len(content)
                    file.seek(offset)
        except FileNotFoundError:
            return offset
        return offset

    def _send_files(self, folder: RunFolder, patterns: tuple[str, ...], sent: dict[str, tuple[int, ...]]) -> None:
        for path in _matching(folder.path, patterns):
            name = path.relative_to(folder.path).as_posix()
            with suppress(FileNotFoundError), open_unlinked(path) as file:
                status = os.fstat(file.fileno())
                if sent.get(name) == (status.st_size, status.st_mtime_ns):
                    continue
                self._send_file(file, name, status.st_size, status.st_mtime_ns)
                sent[name] = (status.st_size, status.st_mtime_ns)

    def _send_file(self, file: IO[bytes], name: str, total: int, modified: int) -> None:
        offset = 0
        while True:
            content = file.read(min(PIECE, total - offset))
            self._send(protocol.Piece(name=name, offset=offset, total=total, modified=modified), content)
            offset += len(content)
            if not content or offset >= total:
                return


def _was_started(folder: RunFolder) -> bool:
    """Whether a new run has a process, or a job that its scheduler has taken."""
    job = folder.job_record()
    has_job = job is not None and job.job != "" and job.state != SUBMITTING
    return has_job or folder.process_record() is not None or folder.is_carried()


def _origin(aside: Path) -> str:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(parse_json(read_unlinked(aside / ORIGIN, MAX_SPEC))["origin"])
    return ""


def _remove(folder: Path) -> None:
    if (kept := remove(folder)) is not None:
        raise InputError("{path}: {reason}", path=kept.path, reason=kept.reason)


def _matching(folder: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        yield from (path for path in sorted(folder.glob(pattern)) if path.is_file() and is_file_name(path.name))


def _has_finished(folder: RunFolder) -> bool:
    return any(isinstance(event, RunFinished) and event.state == "finished" for event in landmarks(folder.events))


def _life(folder: RunFolder, job: Job | None) -> str:
    return folder.life() if job is None else job.life(folder)


def _make_requests(folder: RunFolder, job: Job | None, requests: list[str]) -> None:
    """Make requests to the run once it can obey; one that ends a run whose job is pending cancels the job."""
    if job is not None and job.is_pending and (ending := [kind for kind in requests if kind in ENDS]):
        if job.cancel(ENDS[ending[0]]):
            requests.clear()
        return
    # Before a job's run has an engine, its supervisor would remove the request as one to an earlier attempt.
    if job is None or folder.has_engine():
        while requests:
            folder.request(requests.pop())


def _describe_end(folder: RunFolder, life: str, job: Job | None) -> protocol.Ended:
    record = folder.exit_record()
    state, reason = ("", "") if job is None else job.end(folder)
    return protocol.Ended(
        life=life if folder.exists() else "deleted",
        reason=(record.message if record else "") or reason,
        state=(record.state if record else "") or state,
        files=[path.relative_to(folder.path).as_posix() for path in _matching(folder.path, (*RECORDS, *RESULTS, *CHECKPOINTS))],
    )  # fmt: skip


def _list_devices() -> protocol.Devices:
    from backend.hardware.devices import query_devices  # loads pydantic and the engines' lists

    found = query_devices()
    return protocol.Devices(
        devices=[f"{one.kind}:{one.index} {one.name}, {one.memory_mb / 1e3:,.0f} GB" for one in found.devices],
        note=found.note,
    )


def _started(folder: RunFolder) -> protocol.Started:
    return protocol.Started(run=str(folder.path), spec=read_unlinked(folder.spec, MAX_SPEC).decode())
