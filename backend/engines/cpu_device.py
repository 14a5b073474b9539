"""Describes the CPU and the memory of this computer."""

from contextlib import suppress
from pathlib import Path

import psutil

from backend.contract.catalog import Device

_BFLOAT16_FLAGS = {"avx512_bf16", "avx_ne_convert", "amx_bf16", "bf16"}
"""Of x86 processors and, the last, of Arm's, as Linux names them."""


def cpu_device() -> Device:
    """This computer's processor and memory."""
    memory = psutil.virtual_memory()
    return Device(
        "cpu", 0, "CPU", memory.total / 1e6, memory.available / 1e6, ["float32", "bfloat16"],
        cores=psutil.cpu_count() or 0, emulates_bfloat16=emulates_bfloat16(),
    )  # fmt: skip


def emulates_bfloat16(description: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor is known to have no bfloat16 unit; other systems than Linux do not describe it."""
    with suppress(OSError):
        for line in description.read_text(errors="replace").splitlines():
            name, _, values = line.partition(":")
            if name.strip() in ("flags", "Features"):
                return _BFLOAT16_FLAGS.isdisjoint(values.split())
    return False
