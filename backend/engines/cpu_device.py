"""Describes the CPU and the memory of this computer."""

import psutil

from backend.contract.catalog import Device


def cpu_device() -> Device:
    """This computer's processor and memory."""
    memory = psutil.virtual_memory()
    return Device(
        "cpu", 0, "CPU", memory.total / 1e6, memory.available / 1e6, ["float32", "bfloat16"],
        cores=psutil.cpu_count() or 0,
    )  # fmt: skip
