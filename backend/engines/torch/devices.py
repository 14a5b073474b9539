"""Lists the devices that PyTorch sees; run as a program it prints them as one line of JSON and exits."""

import sys
from pathlib import Path
from types import ModuleType

import msgspec

from backend.contract.catalog import Device
from backend.contract.messages import message
from backend.engines.cpu_device import cpu_device

DEVICE_FILES = ("nvidiactl", "dxg", "kfd")
"""Files in /dev that show a known accelerator: NVIDIA, WSL, AMD."""


def devices() -> list[Device]:
    """Accelerators first, the CPU last."""
    return [*(_accelerators() if may_have_accelerator() else []), cpu_device()]


def may_have_accelerator() -> bool:
    """Whether to ask torch, which takes seconds to import; its answer is the better one."""
    return sys.platform != "linux" or any((Path("/dev") / name).exists() for name in DEVICE_FILES)


def _accelerators() -> list[Device]:
    import torch  # not where there is nothing to find

    return [*_cuda(torch), *_apple(torch)]


def _cuda(torch: ModuleType) -> list[Device]:
    if not torch.cuda.is_available():
        return []
    return [_cuda_device(torch, index) for index in range(torch.cuda.device_count())]


def _cuda_device(torch: ModuleType, index: int) -> Device:
    free, total = torch.cuda.mem_get_info(index)
    properties = torch.cuda.get_device_properties(index)
    # Compute capability 8 is the first with bfloat16 units; older cards emulate it slowly.
    precisions = ["float32", "float16"] + (["bfloat16"] if properties.major >= 8 or torch.version.hip else [])
    return Device("cuda", index, properties.name, total / 1e6, free / 1e6, precisions)


def _apple(torch: ModuleType) -> list[Device]:
    if not torch.backends.mps.is_available():
        return []
    memory = cpu_device()
    return [Device("mps", 0, message("Apple GPU"), memory.memory_mb, memory.free_mb, ["float32", "float16"])]


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(devices()).decode() + "\n")
