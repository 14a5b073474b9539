"""Tells glibc what this process keeps of the memory that it frees, and what it returns to the kernel."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
"""`mallopt`'s parameters, as glibc's malloc.h numbers them."""
_LARGE, _MMAP_MAX_DEFAULT, _TRIM_DEFAULT = 1 << 25, 1 << 16, 1 << 17
"""The largest threshold that glibc accepts, and its own number of mapped blocks and of free bytes at the end of the heap."""
MATRIX = 1 << 20
"""Bytes from which a block is a matrix and not a vector."""
_threshold = _LARGE
"""From how many bytes a block is mapped by itself, and returned when it is free."""
_keeps_freed = False
"""Whether `keep_freed` was called: the allocator cannot be asked."""


def keep_freed() -> None:
    """Keep memory that arrays on the CPU free in this process, for the next step to reuse.

    glibc returns every large block to the kernel, which must clear it again: a third of a small model's step. Other C
    libraries have no such switch, so there this does nothing.
    """
    global _keeps_freed, _threshold
    _keeps_freed, _threshold = True, _LARGE
    _set_allocator(_TRIM_THRESHOLD, -1)
    _set_allocator(_MMAP_MAX, 0)


def return_blocks() -> None:
    """Return every block of more than 1 MiB to the kernel once it is free, from now on.

    A sharded model gathers its layers one after another, and quantized weights become float32 so. glibc raises its own
    limit to the largest block that was freed, and from its heap two processes of 136 M parameters took a quarter more than
    from mapped blocks, and LoRA on int8 a fifth more, an evaluation two thirds. In a process that opens one model after
    another, this undoes `keep_freed`, as that undoes this.
    """
    global _keeps_freed, _threshold
    if _keeps_freed:
        _set_allocator(_TRIM_THRESHOLD, _TRIM_DEFAULT)
        _set_allocator(_MMAP_MAX, _MMAP_MAX_DEFAULT)
    _keeps_freed, _threshold = False, MATRIX
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
