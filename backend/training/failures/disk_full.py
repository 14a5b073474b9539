"""Recognises a full disk, an exceeded quota, or an exceeded file size limit, and finds settings with which the run has room."""

import errno
import re
import shutil
from dataclasses import dataclass

from backend.contract.errors import InputError
from backend.contract.messages import message, plural
from backend.contract.places import cache_folder
from backend.contract.run.cost import format_size
from backend.contract.run.event_summary import landmarks
from backend.contract.run.fixes import RunFix
from backend.data.cache import size_of
from backend.hardware import run_sizes
from backend.training.checkpoints import Checkpoints
from backend.training.failures.failure import Failure, FailureContext, chain, kinds
from backend.training.resume import best_so_far

MESSAGE = message("the disk is full, so nothing more could be saved; earlier checkpoints are untouched")
HINT = message("Free up some space, then resume the run.")
KEEP, EVERY = "training.keep_checkpoints", "training.checkpoint_every"
MB = 1e6
SPARE = 4_000_000
"""Bytes for what a run writes besides checkpoints and the model."""
_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WRITTEN_IN_PART = re.compile(r"\d+ requested and \d+ written")


@dataclass(frozen=True)
class DiskRoom:
    """What the disk of a run has room for, in bytes."""

    free: int
    checkpoints: dict[int, int]
    """Step → size, ascending."""
    best: int | None
    """The step of the best checkpoint; None if the best is not kept, or not there."""
    keeps_best: bool
    model: int
    """The final model; 0 for an adapter, which takes less than a checkpoint."""

    @property
    def kept(self) -> list[int]:
        """The steps that stay if one checkpoint is kept besides the best."""
        newest = max(self.checkpoints)
        return sorted({newest, self.best or newest})

    @property
    def freed(self) -> int:
        """What keeping one checkpoint frees at once."""
        return sum(size for step, size in self.checkpoints.items() if step not in self.kept)

    def lacks_for_one(self) -> int:
        """What is missing if one checkpoint is kept: the next one is whole before the last one is deleted."""
        size = max(self.checkpoints.values())
        return (1 + self.keeps_best) * size + max(size, self.model) - self._room()

    def lacks_for_none(self) -> int:
        """What is missing if no more checkpoints are written, except of the best evaluation and the last step.

        A run saves its last step before it saves the weights of its best one as the model.
        """
        size = max(self.checkpoints.values())
        in_training = (len(self.kept) + self.keeps_best) * size
        at_the_end = (1 + self.keeps_best) * size + self.model
        return max(in_training, at_the_end) - self._room()

    def has_space_for_next(self) -> bool:
        """Whether all checkpoints can stay for now: something else was deleted, or it was another disk (the cache) that is full."""
        return self.free >= max(*self.checkpoints.values(), self.model) + SPARE

    def _room(self) -> int:
        return self.free + sum(self.checkpoints.values()) - SPARE


def recognise(error: BaseException, context: FailureContext) -> Failure | None:
    """The system's OSError, and those of safetensors and numpy, which only mention it in the message."""
    number = next(filter(None, map(_number, chain(error))), 0)
    if not number:
        return None
    # With fewer checkpoints a file is as large as before.
    room = measure_room(context, is_disk=number == errno.ENOSPC) if number != errno.EFBIG else None
    if room is None or room.has_space_for_next():
        return Failure(MESSAGE, HINT, RunFix(resume=True))
    return _advise(room, context)


def _advise(room: DiskRoom, context: FailureContext) -> Failure:
    """The setting with which there is room, else what has to be freed first."""
    keep = context.setting(KEEP)
    one = {KEEP: 1} if keep != 1 else {}
    if one and room.lacks_for_one() <= 0:
        count = len(room.checkpoints) - len(room.kept)
        hint = plural(
            "Keeping one checkpoint deletes {count} older checkpoint when the run is resumed, which frees {size}.",
            "Keeping one checkpoint deletes {count} older checkpoints when the run is resumed, which frees {size}.",
            count,
            size=format_size(room.freed / MB),
        )
        return Failure(MESSAGE, hint, RunFix(one, resume=True))
    if context.setting(EVERY) != "never" and room.lacks_for_none() <= 0:
        hint = message(
            "There is room for the rest of the run, but not for more checkpoints: if the computer crashes, it continues "
            "from step {step}.",
            step=max(room.checkpoints),
        )
        return Failure(MESSAGE, hint, RunFix({**one, EVERY: "never"}, resume=True))
    return Failure(MESSAGE, _describe_shortage(room, context), RunFix(one, resume=True))


def _describe_shortage(room: DiskRoom, context: FailureContext) -> str:
    runs, cache = context.folder.path.parent, cache_folder()
    values = {"size": format_size(max(room.lacks_for_one(), SPARE) / MB), "folder": runs}
    try:
        cached = size_of(cache) if cache.stat().st_dev == runs.stat().st_dev else 0
    except OSError:
        cached = 0
    if cached < SPARE:
        return message("Free up at least {size} in {folder}, then resume the run.", **values)
    return message(
        "Free up at least {size} in {folder}, then resume the run. The cache on the same disk takes {cached}; clear it "
        "in Settings.",
        **values,
        cached=format_size(cached / MB),
    )


def measure_room(context: FailureContext, *, is_disk: bool) -> DiskRoom | None:
    """The room for the run's checkpoints; None if there are none, or if something cannot be read.

    What is free within a quota (not `is_disk`) is unknown, and counts as nothing.
    """
    spec, checkpoints = context.spec, Checkpoints(context.folder)
    try:
        sizes = {step: size_of(context.folder.checkpoint(step)) for step in checkpoints.steps()}
        free = shutil.disk_usage(context.folder.path).free if is_disk else 0
        if not sizes or spec is None or context.model is None:
            return None
        best = best_so_far(spec, landmarks(context.folder.events), max(sizes))
        saves_adapter = spec.adapter is not None and spec.adapter.get("saved") == "adapter"  # in each checkpoint too
        parameters = 0 if saves_adapter else run_sizes.count_parameters(spec, context.model)
    except (InputError, OSError):
        return None
    kept = best.step if best.keeps_checkpoint and best.step in sizes else None
    return DiskRoom(free, sizes, kept, best.keeps_checkpoint, 4 * parameters)


def _number(error: BaseException) -> int:
    """The system's number of the problem; 0 if the exception is about something else."""
    if isinstance(error, OSError):
        if error.errno is None and _WRITTEN_IN_PART.fullmatch(str(error)) is not None:
            return errno.ENOSPC
        return error.errno if error.errno in _NUMBERS else 0
    words = str(error).lower() if "SafetensorError" in kinds(error) else ""
    return next((one for one in _NUMBERS if f"os error {one}" in words or f"code: {one}" in words), 0)


FAILURE = recognise
