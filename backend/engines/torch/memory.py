"""The engine's memory: what it keeps between steps, its peak, and the message when it runs out."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import psutil
import torch

from backend.engines.out_of_memory import ACCELERATOR_SAYS, PROCESSOR_SAYS, out_of_memory

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
"""`mallopt`'s parameters, as glibc's malloc.h numbers them."""
_LARGE, _MMAP_MAX_DEFAULT = 1 << 25, 1 << 16
"""The largest threshold that glibc accepts, and the number of mapped blocks that it allows unless told otherwise."""


MATRIX = 1 << 20
"""Bytes from which a block is a matrix and not a vector."""
_threshold = _LARGE
"""From how many bytes a block is mapped by itself, and returned when it is free."""
_keeps_freed = False
"""Whether `keep_freed` was called: the allocator cannot be asked."""


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


def keep_freed() -> None:
    """Keep memory that CPU tensors free in this process, for the next step to reuse.

    glibc returns every large block to the kernel, which must clear it again: a third of a small model's step. Other C
    libraries have no such switch, so there this does nothing.
    """
    global _keeps_freed
    _keeps_freed = True
    _set_allocator(_TRIM_THRESHOLD, -1)
    _set_allocator(_MMAP_MAX, 0)


def return_blocks() -> None:
    """Return every block of more than 1 MiB to the kernel once it is free, from now on.

    A sharded model gathers its layers one after another, and quantized weights become float32 so. glibc raises its own
    limit to the largest block that was freed, and from its heap two processes of 136 M parameters took a quarter more than
    from mapped blocks, and LoRA on int8 a fifth more, an evaluation two thirds.
    """
    global _threshold
    _threshold = MATRIX
    _set_allocator(_MMAP_THRESHOLD, _threshold)


def return_freed() -> None:
    """Return to the kernel what the allocator has kept so far, before other work with blocks of other sizes.

    An evaluation's blocks are larger than a training step's, and fit nowhere between what stays of that: both
    together would take as much memory as one after the other. It costs a fifth of a second for each gigabyte.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


@contextmanager
def return_large_blocks(threshold: int = _LARGE) -> Iterator[None]:
    """Return blocks of more than `threshold` bytes that are allocated here to the kernel once they are free.

    If `keep_freed` applied to them, small blocks would settle in the free space of large ones, which would then fit
    nowhere: parts of the logits of a large vocabulary, one after another, took five times their memory.
    """
    _set_allocator(_MMAP_THRESHOLD, min(threshold, _threshold))
    _set_allocator(_MMAP_MAX, _MMAP_MAX_DEFAULT)
    try:
        yield
    finally:
        if _keeps_freed:
            _set_allocator(_MMAP_MAX, 0)


def _set_allocator(parameter: int, value: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(parameter, value)


def peak_mb(device: torch.device) -> float | None:
    """Peak memory (10^6 bytes) of tensors on an accelerator since loading; None on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    if device.type == "mps":
        return torch.mps.driver_allocated_memory() / 1e6
    return None
