"""Answers `storage` and `clear_cache`: disk space of runs and caches, and freeing it."""

import shutil
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.places import cache_folder, runs_folder
from backend.contract.rpc.protocol import Progress
from backend.contract.rpc.storage import ClearedCache, StorageItem, StorageUse
from backend.contract.run.folder import RunFolder, run_folders
from backend.helper.query import Arguments, Query, ReportProgress, require_list

TITLES = {
    "features": ("Tokenized features", message("Recreated by the next run that needs them.")),
    "lengths": ("Measured lengths", message("Measured again when you view them.")),
    "report": ("Data reports", message("Recreated when needed.")),
    "tables": ("Cached rows", message("Read again from your files; rows from the Hub are downloaded again.")),
    "pages": ("Opened predictions", message("Read again from the run's folder when you open them.")),
    "weights": ("Converted weights", message("Converted again, with your approval.")),
    "jax": ("Compiled programs", message("Recompiled when needed, which can take JAX several minutes.")),
}
"""Part of the cache → its title, and what clearing it costs."""


def _storage(arguments: Arguments, report: ReportProgress) -> StorageUse:
    from backend.data.cache import size_of  # the file lock's library, which no other question needs

    cache, runs, hub = cache_folder(), runs_folder(), _hub_folder()
    parts = []
    for number, (name, (title, note)) in enumerate(TITLES.items()):
        report(Progress(number, len(TITLES), "parts"))
        parts.append(StorageItem(name=name, title=title, size=size_of(cache / name), note=note))
    return StorageUse(
        runs=len(run_folders(runs)),
        runs_size=size_of(runs),
        cache_size=size_of(cache),
        hub_folder=str(hub),
        hub_size=size_of(hub),
        free=shutil.disk_usage(_existing(cache)).free,
        parts=parts,
    )


def _clear(arguments: Arguments, report: ReportProgress) -> ClearedCache:
    from backend.data import cache

    names = [str(name) for name in require_list(arguments, "parts", len(TITLES))]
    if unknown := [name for name in names if name not in TITLES]:
        raise InputError(
            "parts: {unknown} is not a part of the cache; the parts are {titles}",
            "parts",
            unknown=repr(unknown[0]),
            titles=", ".join(TITLES),
        )
    alive = [run for run in run_folders(runs_folder()) if run.life() == "alive"]
    begun = min((_started_at(run) for run in alive), default=None)
    freed, kept, failed = 0, 0, list[str]()
    for number, name in enumerate(names):
        report(Progress(number, len(names), "parts"))
        room = cache.clear(cache_folder() / name, begun)
        freed, kept, failed = freed + room.freed, kept + room.kept, [*failed, *room.failed]
    return ClearedCache(freed=freed, kept=kept, kept_for=[run.name for run in alive] if kept else [], failed=failed)


def _started_at(run: RunFolder) -> float:
    """When its current attempt started; a run without events may use everything."""
    process = run.process_record()
    return process.started if process is not None else 0.0


def _hub_folder() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def _existing(folder: Path) -> Path:
    """The folder, or its nearest existing parent."""
    return next(one for one in (folder, *folder.absolute().parents) if one.exists())


QUERIES = (Query("storage", _storage), Query("clear_cache", _clear))
