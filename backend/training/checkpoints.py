"""A run's checkpoints: written during training, flushed, renamed, announced; the latest is the highest valid step."""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from backend.contract.messages import message
from backend.contract.run.events import CheckpointRemoved, CheckpointSaved, Warned
from backend.contract.run.folder import RunFolder, write_json
from backend.contract.safe_files import MB, open_inside, read_unlinked
from backend.data.removal import ASIDE, RemovalFailure, delete, remove
from backend.engines.engine import Engine, Finish
from backend.models.saved_model import NOTE, flush_folder, flush_to_disk
from backend.training.event_log import EventLog
from backend.training.hosts import ALONE, Hosts

MANIFEST = "checkpoint.json"
"""Last file of a checkpoint to be written: the step, the engine, and size and digest of every other file."""
MANIFEST_BYTES = 10 * MB
"""A line for each file, of which the largest checkpoints have some thousands."""


class Blocked(Exception):
    """A damaged checkpoint cannot be moved out of the way of its replacement."""

    def __init__(self, kept: RemovalFailure) -> None:
        super().__init__(message("{path}: {reason}", path=kept.path, reason=kept.reason))
        self.kept = kept


@dataclass(frozen=True)
class RemovedCheckpoints:
    """Steps whose checkpoints were removed, and what could not be deleted."""

    steps: list[int]
    kept: list[RemovalFailure]


@dataclass(frozen=True)
class SavedCheckpoint:
    """A saved checkpoint, and what was removed afterwards."""

    path: Path
    removal: RemovedCheckpoints


class Checkpoints:
    """All checkpoints of one run. Several hosts write their own parts; the first publishes and removes them."""

    def __init__(self, folder: RunFolder, hosts: Hosts = ALONE, engine: str = "") -> None:
        self._folder, self._hosts, self._engine = folder, hosts, engine
        self._writer = ThreadPoolExecutor(1, "checkpoint")  # its thread begins with the first that is written beside
        self._hashed: set[int] = set()
        """Steps whose files were found to be whole: hashing gigabytes again would tell nothing new."""

    def save(self, step: int, write: Callable[[Path], Finish | None]) -> Path:
        """Let `write` fill a temporary folder, then rename it as a whole. An earlier checkpoint of this step is kept.

        Raises OSError (disk full), or Blocked, after removing the half-written folder; older checkpoints are untouched.
        """
        return self.start_save(step, write).result().path

    def start_save(
        self, step: int, write: Callable[[Path], Finish | None], keep: int | None = None, best_step: int | None = None
    ) -> "Future[SavedCheckpoint]":
        """The same in the background: `write` returns once training may continue, and its result finishes the writing.

        On the writer's thread the files are finished, hashed, flushed and renamed; then older checkpoints except the
        newest `keep` and the best one are removed.
        """
        final = self._folder.checkpoint(step)
        name = self._hosts.agree(lambda: None if self._is_whole(step) else _make_scratch(final).name)
        if name is None:
            return self._writer.submit(self._finish_save, step, final, keep, best_step)
        beside = final.with_name(name)
        with _remove_on_error(beside):
            finish = write(beside)
        put = self._put_in_place if self._hosts.is_first else _wait_for_own_part

        def complete() -> SavedCheckpoint:
            put(step, beside, final, finish)
            return self._finish_save(step, final, keep, best_step)

        return self._writer.submit(complete)

    def _finish_save(self, step: int, final: Path, keep: int | None, best_step: int | None) -> SavedCheckpoint:
        return SavedCheckpoint(
            final, self.remove_older(step, keep, best_step) if keep is not None else RemovedCheckpoints([], [])
        )

    def steps(self) -> list[int]:
        """Steps with a checkpoint folder, ascending, verified or not."""
        return self._folder.checkpoint_steps()

    def latest(self) -> int | None:
        """The highest step whose checkpoint verifies, or None."""
        return next((step for step in reversed(self.steps()) if self._is_whole(step)), None)

    def _is_whole(self, step: int) -> bool:
        folder = self._folder.checkpoint(step)
        if step in self._hashed:
            return has_sizes(folder)
        if verify(folder):
            self._hashed.add(step)
        return step in self._hashed

    def engine_of(self, step: int) -> str:
        """The engine that saved the step; empty for older checkpoints, which do not record it."""
        return str(_manifest(self._folder.checkpoint(step)).get("engine", ""))

    def remove_older(self, step: int, keep: int, best_step: int | None) -> RemovedCheckpoints:
        """Of the checkpoints up to `step` keep the newest `keep` and the best one; failed deletions raise no error.

        A later one must be damaged, or the run would have continued from it; it does not count.
        """
        if not self._hosts.is_first:
            return RemovedCheckpoints([], [])
        kept = delete(self._folder.checkpoints.glob(f".step-*{ASIDE}*"))  # tried in vain before
        steps = [each for each in self.steps() if each <= step]
        removed = []
        for each in steps[:-keep]:
            if each == best_step:
                continue
            problem = remove(self._folder.checkpoint(each))
            kept += [problem] if problem else []
            if problem is None or problem.path != self._folder.checkpoint(each):
                removed.append(each)
        return RemovedCheckpoints(removed, kept)

    def clear_leftovers(self) -> None:
        """Remove what a process that died while saving left behind."""
        if not self._hosts.is_first:
            return
        delete(self._folder.checkpoints.glob(".step-*"))

    def _put_in_place(self, step: int, beside: Path, final: Path, finish: Finish | None) -> None:
        with _remove_on_error(beside):
            if finish is not None:
                finish()
            flush_to_disk(beside)
            write_json(beside / MANIFEST, {"step": step, "engine": self._engine, "files": _digests(beside)})
            # What is there did not verify: it is damaged, and now replaced.
            if (kept := remove(final)) is not None and kept.path == final:
                raise Blocked(kept)
            beside.rename(final)
        flush_folder(final.parent)


def _make_scratch(final: Path) -> Path:
    beside = final.with_name(f".{final.name}.{os.getpid()}")
    final.parent.mkdir(exist_ok=True)  # never the run folder itself: if that was deleted, it stays deleted
    beside.mkdir()
    return beside


def _wait_for_own_part(step: int, beside: Path, final: Path, finish: Finish | None) -> None:
    if finish is not None:
        finish()


@contextmanager
def _remove_on_error(beside: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def verify(folder: Path) -> bool:
    """Whether every file exists with the size and digest in the manifest."""
    try:
        # Sizes first, which cost nothing.
        return has_sizes(folder) and all(
            _digest(folder, name) == known for name, known in _manifest(folder)["files"].items()
        )
    except (OSError, LookupError):  # gone meanwhile
        return False


def has_sizes(folder: Path) -> bool:
    """Whether every file exists with the size in the manifest."""
    try:
        return all(_size(folder, name) == known[0] for name, known in _manifest(folder)["files"].items())
    except (OSError, LookupError, TypeError, AttributeError):  # gone, another folder's, or JSON of another shape
        return False


def _manifest(folder: Path) -> dict[str, Any]:
    """The checkpoint's manifest; empty if it is missing or unreadable."""
    try:
        found = json.loads(read_unlinked(folder / MANIFEST, MANIFEST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _digests(folder: Path) -> dict[str, list[object]]:
    return {name: _digest(folder, name) for name in (path.relative_to(folder).as_posix() for path in _files(folder))}


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _size(folder: Path, name: str) -> int:
    with _open(folder, name) as file:
        return os.fstat(file.fileno()).st_size


def _digest(folder: Path, name: str) -> list[object]:
    with _open(folder, name) as file:
        return [os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest()]


def _open(folder: Path, name: str) -> BufferedReader:
    return os.fdopen(open_inside(folder, name, os.O_RDONLY), "rb")


@dataclass(frozen=True)
class _PendingSave:
    step: int
    best_step: int | None
    saved: "Future[SavedCheckpoint]"
    seconds: float


class CheckpointWriter:
    """Saves the engine's state, keeps `keep` checkpoints and the best one, and writes the events."""

    def __init__(
        self,
        folder: RunFolder,
        log: EventLog,
        engine: Engine,
        checkpoints: Checkpoints,
        keep: int,
        note: dict[str, Any] | None = None,
    ) -> None:
        self._folder, self._log, self._engine, self._keep = folder, log, engine, keep
        self._note = note
        """Files saved next to the weights, so that a checkpoint can be used while the run is in progress."""
        self._checkpoints = checkpoints
        self._pending: _PendingSave | None = None
        self._last: int | None = None
        self._warned: set[Path] = set()

    def has(self, step: int) -> bool:
        """Whether this step was the last one saved, or is pending."""
        return step == self._last

    def start_save(self, step: int, best_step: int | None) -> None:
        """Save this step while training continues. Waits for the previous save, and raises OSError if that failed."""
        self.finish()
        started = time.perf_counter()
        saved = self._checkpoints.start_save(step, self._save, self._keep, best_step)
        self._pending = _PendingSave(step, best_step, saved, time.perf_counter() - started)
        self._last = step

    def _save(self, path: Path) -> Finish:
        if self._note is not None:
            write_json(path / NOTE, self._note)
        return self._engine.save(path)

    def report_finished(self) -> None:
        """Report the last save if it is complete."""
        if self._pending is not None and self._pending.saved.done():
            self.finish()

    def finish(self) -> None:
        """Wait until the last save is complete and older ones are removed. Raises OSError if it could not be written.

        The best checkpoint at the time this save started is kept: a newer best may not be complete yet.
        """
        if self._pending is None:
            return
        started, pending, self._pending = time.perf_counter(), self._pending, None
        try:
            saved = pending.saved.result()
        except Blocked as problem:
            self._warn_of_blocked(pending.step, problem.kept)
            return
        self._log.write(
            CheckpointSaved(
                time=time.time(),
                step=pending.step,
                folder=str(saved.path.relative_to(self._folder.path)),
                seconds=pending.seconds + time.perf_counter() - started,
                is_best=pending.step == pending.best_step,
            )
        )
        self._write_removal(saved.removal)

    def remove_older(self, step: int, best_step: int | None) -> None:
        """Remove what is not needed besides this step's checkpoint, which is complete."""
        self._write_removal(self._checkpoints.remove_older(step, self._keep, best_step))

    def _write_removal(self, removal: RemovedCheckpoints) -> None:
        for old in removal.steps:
            removed = str(self._folder.checkpoint(old).relative_to(self._folder.path))
            self._log.write(CheckpointRemoved(time=time.time(), step=old, folder=removed))
        for kept in removal.kept:
            self._warn_of_kept(kept)

    def _warn_of_kept(self, kept: RemovalFailure) -> None:
        """Warn once per folder: deletion is retried at every later checkpoint."""
        if kept.path in self._warned:
            return
        self._warned.add(kept.path)
        sentence = message(
            "{path} is an old checkpoint that could not be deleted ({reason}); the run continues and tries again later",
            path=kept.path,
            reason=kept.reason,
        )
        self._log.write(Warned(time=time.time(), code="not_deleted", message=sentence))

    def _warn_of_blocked(self, step: int, kept: RemovalFailure) -> None:
        sentence = message(
            "no checkpoint was saved at step {step}, because a damaged one there could not be moved away "
            "({reason}); the run continues",
            step=step,
            reason=kept.reason,
        )
        self._log.write(Warned(time=time.time(), code="checkpoint_blocked", message=sentence))
