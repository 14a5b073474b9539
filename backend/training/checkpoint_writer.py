"""Owns the checkpoints of an attempt as they come to be: at most one is written beside training, then an event says so."""

import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.contract.run.events import CheckpointRemoved, CheckpointSaved, Warned
from backend.contract.run.folder import RunFolder, write_json
from backend.data.removal import Leftover
from backend.engines.engine import Engine, Finish
from backend.models.saved_model import NOTE
from backend.training.checkpoints import Blocked, Checkpoints, Removal, Saved
from backend.training.event_log import EventLog


@dataclass(frozen=True)
class _PendingSave:
    step: int
    best_step: int | None
    saved: "Future[Saved]"
    seconds: float


class Saving:
    """Saves what an engine holds, keeps `keep` checkpoints and the best one, and writes the events."""

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
        """What is put beside the weights, by which a checkpoint can be asked while the run goes on."""
        self._checkpoints = checkpoints
        self._pending: _PendingSave | None = None
        self._last: int | None = None
        self._warned: set[Path] = set()

    def has(self, step: int) -> bool:
        """Whether this step was the last to be saved, or pending."""
        return step == self._last

    def begin(self, step: int, best_step: int | None) -> None:
        """Save this step while training continues. Waits for the one before, and raises OSError where that failed."""
        self.finish()
        started = time.perf_counter()
        saved = self._checkpoints.begin(step, self._save, self._keep, best_step)
        self._pending = _PendingSave(step, best_step, saved, time.perf_counter() - started)
        self._last = step

    def _save(self, path: Path) -> Finish:
        if self._note is not None:
            write_json(path / NOTE, self._note)
        return self._engine.save(path)

    def look(self) -> None:
        """Say so where the last one is whole by now."""
        if self._pending is not None and self._pending.saved.done():
            self.finish()

    def finish(self) -> None:
        """Wait until the last one is whole and older ones are removed. Raises OSError where it could not be written.

        The best one stays that was the best when this one was begun: a newer best may not be whole yet.
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
        """Take away what need not be kept beside the checkpoint of this step, which is whole."""
        self._write_removal(self._checkpoints.remove_older(step, self._keep, best_step))

    def _write_removal(self, removal: Removal) -> None:
        for old in removal.steps:
            removed = str(self._folder.checkpoint(old).relative_to(self._folder.path))
            self._log.write(CheckpointRemoved(time=time.time(), step=old, folder=removed))
        for kept in removal.kept:
            self._warn_of_kept(kept)

    def _warn_of_kept(self, kept: Leftover) -> None:
        """Once for each folder: it is tried again at every later checkpoint."""
        if kept.path in self._warned:
            return
        self._warned.add(kept.path)
        message = (
            f"{kept.path} is an old checkpoint that could not be deleted ({kept.reason}); the run continues and tries "
            "again later"
        )
        self._log.write(Warned(time=time.time(), code="not_deleted", message=message))

    def _warn_of_blocked(self, step: int, kept: Leftover) -> None:
        message = (
            f"step {step} has no checkpoint, because the damaged one in its place could not be moved away "
            f"({kept.reason}); the run continues"
        )
        self._log.write(Warned(time=time.time(), code="checkpoint_blocked", message=message))
