"""The engine's memory: what is available, its peak, and the message when it runs out."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import psutil
import torch

from backend.engines.out_of_memory import ACCELERATOR_SAYS, PROCESSOR_SAYS, out_of_memory


class _GroupFiles(NamedTuple):
    """The names of a cgroup's limit and usage files, and of the file cache line in memory.stat."""

    limit: str
    used: str
    cache: str


_VERSION_1 = _GroupFiles("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = _GroupFiles("memory.max", "memory.current", "inactive_file")


@contextmanager
def translate_out_of_memory() -> Iterator[None]:
    """Turn out-of-memory errors into RunFailed with code `out_of_memory`; other errors pass."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise out_of_memory(on_accelerator=isinstance(error, torch.OutOfMemoryError)) from error
    except RuntimeError as error:
        for says, on_accelerator in ((ACCELERATOR_SAYS, True), (PROCESSOR_SAYS, False)):
            if any(words in str(error) for words in says):
                raise out_of_memory(on_accelerator=on_accelerator) from error
        raise


def available_bytes(root: Path = Path("/")) -> int:
    """Memory that this process can still use: what the system has, its cgroups may use and its limits allow."""
    free = psutil.virtual_memory().available
    if sys.platform != "linux":
        return free
    import resource  # POSIX only

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        free = min(free, most - psutil.Process().memory_info().vms)
    return min([free, *_cgroup_headroom(root)])


def _cgroup_headroom(root: Path) -> Iterator[int]:
    """The remaining memory of each of this process's cgroups and their parents, if limited."""
    for base, name, files in _groups(root):
        parts = PurePosixPath(name.lstrip("/")).parts
        parts = () if ".." in parts else parts  # beyond what this container sees
        for length in range(len(parts) + 1):
            group = base.joinpath(*parts[:length])
            try:
                [limit], [used] = _read(group / files.limit), _read(group / files.used)
                stat = dict(line.split() for line in _read(group / "memory.stat"))
                yield int(limit) - int(used) + int(stat[files.cache])  # the kernel gives its file cache up
            except (OSError, ValueError, KeyError):
                continue  # no limit ("max"), or seen from outside under a name that is not here


def _groups(root: Path) -> Iterator[tuple[Path, str, _GroupFiles]]:
    """Where the cgroups of each version are mounted, and this process's own there."""
    with suppress(OSError):
        for line in _read(root / "proc/self/cgroup"):
            number, controllers, name = line.split(":", 2)
            if number == "0":
                yield root / "sys/fs/cgroup", name, _VERSION_2
            elif "memory" in controllers.split(","):
                yield root / "sys/fs/cgroup/memory", name, _VERSION_1


def _read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def peak_mb(device: torch.device) -> float | None:
    """Peak memory (10^6 bytes) of tensors on an accelerator since loading; None on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    if device.type == "mps":
        return torch.mps.driver_allocated_memory() / 1e6
    return None
