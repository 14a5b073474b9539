"""Owns the engine's memory: what it keeps between steps, its peak, and the sentence when it runs out."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import torch

from backend.engines.shortage import shortage

_PROCESSOR_SAYS = ("can't allocate memory", "not enough memory")
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
"""`mallopt`'s parameters, as glibc's malloc.h numbers them."""


@contextmanager
def shortage_stated() -> Iterator[None]:
    """Turns running out of memory into RunFailed with code `out_of_memory`; other errors pass."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise shortage(on_accelerator=isinstance(error, torch.OutOfMemoryError)) from error
    except RuntimeError as error:
        if any(words in str(error) for words in _PROCESSOR_SAYS):
            raise shortage(on_accelerator=False) from error
        raise


def available_bytes() -> int:
    """Memory that this process can still take: what the system has, its control group may use and its limits allow."""
    free = psutil.virtual_memory().available
    if sys.platform != "linux":
        return free
    import resource  # POSIX only

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        free = min(free, most - psutil.Process().memory_info().vms)
    try:
        [name] = [line[4:] for line in _read("/proc/self/cgroup") if line.startswith("0::/")]
        group = f"/sys/fs/cgroup/{name}"
        [limit], [used] = _read(f"{group}/memory.max"), _read(f"{group}/memory.current")
        parts = dict(line.split() for line in _read(f"{group}/memory.stat"))
        return min(free, int(limit) - int(used) + int(parts["inactive_file"]))  # the kernel gives its file cache up
    except (OSError, ValueError, KeyError):  # no limit ("max"), or control groups of version 1
        return free


def _read(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def keep_freed() -> None:
    """Lets this process keep what tensors on the processor give back, for the next step to take.

    glibc hands every large block back to the kernel, which must clear it anew: a third of a small model's step. Other C
    libraries have no such switch, and there nothing is done.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, -1)
        mallopt(_MMAP_MAX, 0)


def peak_mb(device: torch.device) -> float | None:
    """Most memory (10^6 bytes) that tensors took on an accelerator since loading; None on a processor."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    if device.type == "mps":
        return torch.mps.driver_allocated_memory() / 1e6
    return None
