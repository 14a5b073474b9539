"""Owns what PyTorch sees to compute on; as a program it prints that as one line of JSON and exits."""

import sys

import msgspec
import torch

from backend.contract.catalog import Device
from backend.engines.processor import processor


def devices() -> list[Device]:
    """Accelerators first, the processor last."""
    return [*_cuda(), *_apple(), processor()]


def _cuda() -> list[Device]:
    if not torch.cuda.is_available():
        return []
    return [_cuda_device(index) for index in range(torch.cuda.device_count())]


def _cuda_device(index: int) -> Device:
    free, total = torch.cuda.mem_get_info(index)
    properties = torch.cuda.get_device_properties(index)
    # Compute capability 8 is the first with bfloat16 units; older cards emulate it slowly.
    precisions = ["float32", "float16"] + (["bfloat16"] if properties.major >= 8 or torch.version.hip else [])
    return Device("cuda", index, properties.name, total / 1e6, free / 1e6, precisions)


def _apple() -> list[Device]:
    if not torch.backends.mps.is_available():
        return []
    memory = processor()
    return [Device("mps", 0, "Apple GPU", memory.memory_mb, memory.free_mb, ["float32", "float16"])]


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(devices()).decode() + "\n")
