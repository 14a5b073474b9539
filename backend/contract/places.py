"""Where Burnish keeps things outside a run folder: runs, caches, preferences, and each process's temporary files."""

import os
import shutil
import stat
import sys
from contextlib import suppress
from pathlib import Path

import platformdirs

from backend.contract.errors import InputError
from backend.contract.messages import message

SCRATCH = "scratch"


def runs_folder() -> Path:
    """All runs; `BURNISH_RUNS` overrides the user's data folder."""
    override = os.environ.get("BURNISH_RUNS")
    return (
        Path(override).expanduser().absolute()
        if override
        else Path(platformdirs.user_data_dir("burnish", False)) / "runs"
    )


def cache_folder() -> Path:
    """Tables, tokenized features and converted weights, all of which can be recreated; `BURNISH_CACHE` overrides."""
    override = os.environ.get("BURNISH_CACHE")
    return Path(override).expanduser().absolute() if override else Path(platformdirs.user_cache_dir("burnish", False))


def private_folder(name: str) -> Path:
    """A cache folder that only this user can open and change. Raises InputError if it belongs to someone else."""
    return _private(cache_folder() / name, message("set BURNISH_CACHE to a folder that you can write to"))


def runtime_folder() -> Path:
    """Where this user's processes find each other, whatever their folders. Raises InputError as `private_folder` does.

    Never a world-writable folder such as `/tmp`, where another user could have created it first.
    """
    base = Path(platformdirs.user_cache_dir())
    if sys.platform == "linux":
        system = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}")
        base = system if _is_private(system) else base
    return _private(base / "burnish" / "runtime", message("use a folder of your own as {base}", base=base))


def _is_private(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _private(folder: Path, hint: str) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        if stat.S_ISLNK(status.st_mode) or (hasattr(os, "geteuid") and status.st_uid != os.geteuid()):
            raise InputError(
                "{folder} is a link, or belongs to another user; remove it, or {hint}", folder=folder, hint=hint
            )
        if status.st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise InputError(
            "{folder} cannot be created: {strerror}; {hint}", folder=folder, strerror=error.strerror, hint=hint
        ) from None
    return folder


def config_folder() -> Path:
    """The user's preferences; `BURNISH_CONFIG` overrides."""
    override = os.environ.get("BURNISH_CONFIG")
    return Path(override).expanduser().absolute() if override else Path(platformdirs.user_config_dir("burnish", False))


def own_presets_folder() -> Path:
    """The user's presets."""
    return config_folder() / "presets"


def is_offline() -> bool:
    """Whether the hub library is set to offline."""
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "true", "yes", "on"}


def scratch_folder(pid: int) -> Path:
    """A process's scratch folder, not needed after the process ends, even if it is killed; not created here."""
    return cache_folder() / SCRATCH / str(pid)


def remove_scratch(pid: int) -> None:
    """Remove the process's scratch folder, if there is one."""
    shutil.rmtree(scratch_folder(pid), ignore_errors=True)
    with suppress(OSError):  # another process keeps something there
        scratch_folder(pid).parent.rmdir()


def remove_leftover_scratch(alive: set[int]) -> None:
    """Remove scratch folders of processes that are not `alive`, for example because they were killed."""
    root = cache_folder() / SCRATCH
    for path in root.iterdir() if root.is_dir() else ():
        if path.name.isdecimal() and int(path.name) not in alive and int(path.name) != os.getpid():
            shutil.rmtree(path, ignore_errors=True)
