"""Owns the search of a model's weight files for values that are no numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backend.models.weights import read_header, read_weights

CHUNK_BYTES = 1 << 24
_FRACTIONS = {"F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2")}
_KINDS = (*_FRACTIONS, "BF16")
_EXPONENT = np.uint16(0x7F80)  # all of bfloat16's exponent bits: infinite or not a number


@dataclass(frozen=True)
class UnsoundTensor:
    """A tensor with values that are infinite or not numbers."""

    name: str
    file: Path


def first_unsound(folder: Path) -> UnsoundTensor | None:
    """The first one of the folder's safetensors, by their order in the file; None where all are sound or none are there.

    Reads the weights once, a few megabytes at a time. Raises OSError and ValueError where they cannot be read.
    """
    weights = read_weights(folder)
    for file in weights.files if weights.format == "safetensors" else ():
        for name, kind, begin, end in _tensors(file):
            if any(not _is_sound(chunk, kind) for chunk in _chunks(file, begin, end)):
                return UnsoundTensor(name, file)
    return None


def _tensors(file: Path) -> Iterator[tuple[str, str, int, int]]:
    start = _data_start(file)
    for name, entry in sorted(read_header(file).items(), key=lambda item: item[1]["data_offsets"][0]):
        if entry["dtype"] in _KINDS:
            begin, end = entry["data_offsets"]
            yield name, entry["dtype"], start + begin, start + end


def _data_start(file: Path) -> int:
    with file.open("rb") as opened:
        return 8 + int.from_bytes(opened.read(8), "little")


def _chunks(file: Path, begin: int, end: int) -> Iterator[bytes]:
    with file.open("rb") as opened:
        opened.seek(begin)
        while begin < end:
            chunk = opened.read(min(CHUNK_BYTES, end - begin))
            if not chunk:
                raise ValueError(f"{file} is cut off")
            begin += len(chunk)
            yield chunk


def _is_sound(chunk: bytes, kind: str) -> bool:
    if kind == "BF16":
        bits = np.frombuffer(chunk, np.dtype("<u2"))
        return not bool(((bits & _EXPONENT) == _EXPONENT).any())
    return bool(np.isfinite(np.frombuffer(chunk, _FRACTIONS[kind])).all())
