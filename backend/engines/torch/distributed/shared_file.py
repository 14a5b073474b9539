"""A safetensors file that the processes of one computer write together: each writes its own rows of every tensor.

The rows of a tensor are one piece of such a file, so nothing is gathered, and the file is the one that a single process
writes. torch.distributed.checkpoint pickles its index, or leaves a file for each process that nothing else opens.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import safe_open

from backend.engines.torch.distributed.process_group import ProcessGroup

_NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
_ALIGNMENT = 8
"""Bytes; the header is filled up with spaces."""


@dataclass(frozen=True)
class Part:
    """The rows of a tensor that this process holds."""

    rows: torch.Tensor
    shape: tuple[int, ...]
    """Of the whole tensor."""
    first: int = 0
    """The number of the first row."""
    is_whole: bool = False
    """Whether every process holds all of it."""


def write(path: Path, parts: Mapping[str, Part], metadata: dict[str, str], group: ProcessGroup) -> None:
    """Write the file together; every process names the same tensors. Raises OSError in all of them if one could not."""
    with group.share_error():
        if group.rank == 0:
            _write_header(path, parts, metadata)
    with group.share_error(), path.open("r+b") as file:
        places, start = _read_header(file)
        for name, part in parts.items():
            if part.is_whole and group.rank:
                continue
            write_rows(file, start + places[name]["data_offsets"][0], part)


def write_rows(file: BinaryIO, start: int, part: Part) -> None:
    """Write the part of a tensor that starts at byte `start`. Raises OSError with the system's number."""
    values = part.rows.detach().to("cpu").contiguous().reshape(-1)
    file.seek(start + part.first * prod(part.shape[1:]) * values.element_size())
    file.write(values.view(torch.uint8).numpy().data)  # numpy's own `tofile` says that it failed, but not why
    file.flush()


def _write_header(path: Path, parts: Mapping[str, Part], metadata: dict[str, str]) -> None:
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    # The widest formats first, as the library has them, so that each value is at a multiple of its size.
    for name in sorted(parts, key=lambda name: (-parts[name].rows.element_size(), name)):
        part = parts[name]
        start, end = end, end + prod(part.shape) * part.rows.element_size()
        header[name] = {"dtype": _NAMES[part.rows.dtype], "shape": list(part.shape), "data_offsets": [start, end]}
    words = json.dumps(header).encode()
    words += b" " * (-len(words) % _ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(words).to_bytes(8, "little") + words)
        file.truncate(8 + len(words) + end)


def _read_header(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """The header, and where the values start."""
    length = int.from_bytes(file.read(8), "little")
    return json.loads(file.read(length)), 8 + length


def read(path: Path, part_of: Callable[[str, tuple[int, ...]], Part | None]) -> dict[str, torch.Tensor]:
    """Of each tensor in the file the rows of the part that is asked for by its name and shape, or all if that is None."""
    found: dict[str, torch.Tensor] = {}
    with safe_open(path, framework="pt") as file:
        for name in file.keys():  # noqa: SIM118
            part = part_of(name, tuple(file.get_slice(name).get_shape()))
            if part is None or part.is_whole:
                found[name] = file.get_tensor(name)
            elif len(part.rows):
                found[name] = file.get_slice(name)[part.first : part.first + len(part.rows)]
            else:
                found[name] = torch.empty_like(part.rows, device="cpu")
    return found
