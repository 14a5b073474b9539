"""Lists the devices that PyTorch sees; run as a program it prints them as one line of JSON and exits."""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import msgspec

from backend.contract.catalog import Device
from backend.contract.messages import message
from backend.engines.cpu_device import cpu_device

DEVICE_FILES = ("nvidiactl", "kfd", "dxg")
"""Files in /dev that show a known accelerator: NVIDIA, AMD, and WSL, which has its own without one too."""
_BFLOAT16_ON_AMD = ("gfx908", "gfx90a", "gfx94", "gfx95", "gfx11", "gfx12")
"""Beginnings of the names of AMD's architectures with bfloat16 units: CDNA from the first, RDNA from the third."""


def devices() -> list[Device]:
    """Accelerators first, the CPU last."""
    found = _accelerators() if may_have_accelerator() else []
    return [*found, cpu_device() if found else msgspec.structs.replace(cpu_device(), note=_missing())]


def may_have_accelerator() -> bool:
    """Whether to ask torch, which takes seconds to import; its answer is the better one."""
    return sys.platform != "linux" or bool(_device_files(DEVICE_FILES)) or _is_built_for_intel()


def _device_files(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if (Path("/dev") / name).exists()]


def _is_built_for_intel() -> bool:
    """Other builds of torch see no GPU of Intel, which many laptops have."""
    torch = find_spec("torch")
    return torch is not None and (Path(torch.origin or "").parent / "lib" / "libtorch_xpu.so").exists()


def _missing() -> str:
    if sys.platform != "linux" or not _device_files(DEVICE_FILES[:2]):
        return ""
    return message("PyTorch sees no GPU, although this computer has the driver of one; run burnish doctor to see why")


def _accelerators() -> list[Device]:
    import torch  # not where there is nothing to find

    return [*_cuda(torch), *_intel(torch), *_apple(torch)]


def _cuda(torch: ModuleType) -> list[Device]:
    if not torch.cuda.is_available():
        return []
    return [_cuda_device(torch, index) for index in range(torch.cuda.device_count())]


def _cuda_device(torch: ModuleType, index: int) -> Device:
    properties = torch.cuda.get_device_properties(index)
    # Compute capability 8 is the first of NVIDIA's with bfloat16 units; older cards emulate it slowly.
    name = getattr(properties, "gcnArchName", "")
    has_bfloat16 = name.startswith(_BFLOAT16_ON_AMD) if torch.version.hip else properties.major >= 8
    precisions = ["float32", "float16", *(["bfloat16"] if has_bfloat16 else [])]
    free = _free_bytes(torch.cuda, index)
    return Device("cuda", index, properties.name, properties.total_memory / 1e6, free / 1e6, precisions)


def _intel(torch: ModuleType) -> list[Device]:
    if not torch.xpu.is_available():
        return []
    found = [(index, torch.xpu.get_device_properties(index)) for index in range(torch.xpu.device_count())]
    return [
        Device("xpu", index, of.name, of.total_memory / 1e6, _free_bytes(torch.xpu, index) / 1e6, _INTEL_PRECISIONS)
        for index, of in found
    ]


_INTEL_PRECISIONS = ["float32", "float16", "bfloat16"]


def _free_bytes(kind: ModuleType, index: int) -> int:
    """0 if the device cannot be used now: it is full, lost, or another process has it to itself."""
    try:
        return kind.mem_get_info(index)[0]
    except RuntimeError:
        return 0


def _apple(torch: ModuleType) -> list[Device]:
    if not torch.backends.mps.is_available():
        return []
    memory = cpu_device()
    return [Device("mps", 0, message("Apple GPU"), memory.memory_mb, memory.free_mb, ["float32", "float16"])]


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(devices()).decode() + "\n")
