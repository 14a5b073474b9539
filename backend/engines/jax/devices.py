"""Lists the devices that JAX sees; run as a program it prints them as one line of JSON and exits."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import msgspec

from backend.contract.catalog import Device
from backend.engines.cpu_device import cpu_device

_KINDS = {"tpu": "tpu", "gpu": "cuda", "cuda": "cuda", "rocm": "cuda"}
"""JAX's words for what a spec calls otherwise."""


def devices() -> list[Device]:
    """Accelerators first, the CPU last; if XLA is asked for several CPU devices, each with its share of memory."""
    return [*(_accelerators() if _may_have_accelerator() else []), *_processors()]


def _processors() -> list[Device]:
    # XLA reads the last of several; asking jax itself would take a second, and seldom is there a second processor.
    requested = re.findall(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    count, whole = max(1, int(requested[-1])) if requested else 1, cpu_device()
    if count == 1:
        return [whole]
    memory, free = whole.memory_mb / count, whole.free_mb / count
    return [
        msgspec.structs.replace(whole, index=index, name=f"{whole.name} {index}", memory_mb=memory, free_mb=free)
        for index in range(count)
    ]


def _may_have_accelerator() -> bool:
    # Importing jax takes seconds; without an accelerator in the system there is no need to.
    entries = Path("/dev")
    names = ("nvidiactl", "kfd", "dxg", "vfio")
    return sys.platform != "linux" or any((entries / name).exists() for name in names) or any(entries.glob("accel*"))


def _accelerators() -> list[Device]:
    import jax  # not where there is nothing to find

    # Of several hosts each chooses among its own, which JAX numbers through all of them.
    return [_device(each, number) for number, each in enumerate(jax.local_devices()) if each.platform in _KINDS]


def _device(each: Any, number: int) -> Device:
    memory = each.memory_stats() or {}
    total = memory.get("bytes_limit", 0) / 1e6
    free = total - memory.get("bytes_in_use", 0) / 1e6
    return Device(_KINDS[each.platform], number, each.device_kind, total, free, ["float32", "bfloat16"])


if __name__ == "__main__":
    # Listing devices must not preallocate three quarters of a GPU that another process is training on.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    sys.stdout.write(msgspec.json.encode(devices()).decode() + "\n")
