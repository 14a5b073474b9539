"""Owns what JAX sees to compute on; as a program it prints that as one line of JSON and exits."""

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from backend.contract.catalog import Device
from backend.engines.processor import processor

_KINDS = {"tpu": "tpu", "gpu": "cuda", "cuda": "cuda", "rocm": "cuda"}
"""JAX's words for what a spec calls otherwise."""


def devices() -> list[Device]:
    """Accelerators first, the processor last."""
    return [*(_accelerators() if _may_have_accelerator() else []), processor()]


def _may_have_accelerator() -> bool:
    # Importing jax takes seconds; where the system has no accelerator there is nothing to ask it for.
    entries = Path("/dev")
    names = ("nvidiactl", "kfd", "dxg", "vfio")
    return sys.platform != "linux" or any((entries / name).exists() for name in names) or any(entries.glob("accel*"))


def _accelerators() -> list[Device]:
    import jax  # not where there is nothing to find

    return [_device(each) for each in jax.devices() if each.platform in _KINDS]


def _device(each: Any) -> Device:
    memory = each.memory_stats() or {}
    total = memory.get("bytes_limit", 0) / 1e6
    free = total - memory.get("bytes_in_use", 0) / 1e6
    return Device(_KINDS[each.platform], each.id, each.device_kind, total, free, ["float32", "bfloat16"])


if __name__ == "__main__":
    # Who only looks must not take three quarters of a GPU's memory from whoever trains.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    sys.stdout.write(msgspec.json.encode(devices()).decode() + "\n")
