"""Writes a run's curves as a TensorBoard event file: one record per step, evaluation and memory measurement.

Such a file is TFRecords of `tensorflow.Event` messages, of which four fields are needed; they are written here, because
every library for them loads torch or TensorFlow, which take seconds and hundreds of MB.
"""

import math
import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.output_file import check_output_folder
from backend.contract.run import events
from backend.mirrors.curves import CurveEvent

MARK = "tfevents"
"""What TensorBoard knows event files by, in their names."""
VERSION = "brain.Event:2"
MAX_FLOAT32 = 3.4028235e38
_LENGTH, _CHECKSUM = struct.Struct("<Q"), struct.Struct("<I")
_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")
_WALL_TIME, _STEP, _FILE_VERSION, _SUMMARY = b"\x09", b"\x10", b"\x1a", b"\x2a"
"""Fields of `Event` with their wire types: a double, a number, a text, a message."""
_VALUE, _TAG, _SIMPLE_VALUE = b"\x0a", b"\x0a", b"\x15"
"""Of `Summary` and of its values: a message, a text, a float."""


@dataclass(frozen=True)
class EventFile:
    """An event file and its number of records."""

    path: Path
    records: int


def write(curves: Iterable[CurveEvent], folder: Path) -> EventFile:
    """Write one event file into a folder that has none; needs at least one event. Raises InputError, OSError."""
    check_output_folder(folder)
    if any(MARK in path.name for path in (folder.iterdir() if folder.is_dir() else ())):
        raise InputError(
            "{folder} already contains event files; choose an empty folder, one for each run", folder=folder
        )
    folder.mkdir(parents=True, exist_ok=True)
    first, rest = next(found := iter(curves)), found
    path = folder / f"events.out.{MARK}.{int(first.time):010d}.burnish"
    beside = folder / f".{os.getpid()}.part"
    count = 0
    try:
        with beside.open("wb") as file:
            file.write(_record(_time(first.time) + _message(_FILE_VERSION, VERSION.encode())))
            for measured in chain([first], rest):
                count += 1
                file.write(_record(_event(measured)))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return EventFile(path, count)


def _record(content: bytes) -> bytes:
    """A TFRecord: its length and content, each followed by its checksum."""
    length = _LENGTH.pack(len(content))
    return length + _checksum(length) + content + _checksum(content)


def _checksum(content: bytes) -> bytes:
    """The masked CRC-32C of a TFRecord."""
    value, table = 0xFFFFFFFF, _crc_table()
    for byte in content:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    value ^= 0xFFFFFFFF
    return _CHECKSUM.pack(((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@cache
def _crc_table() -> tuple[int, ...]:
    """The table of Castagnoli's polynomial (RFC 3720, appendix B.4)."""
    table = list(range(256))
    for _ in range(8):
        table = [value >> 1 ^ (0x82F63B78 if value & 1 else 0) for value in table]
    return tuple(table)


def _event(measured: CurveEvent) -> bytes:
    values = b"".join(
        _message(_VALUE, _tag(tag) + _float(math.nan if value is None else value)) for tag, value in _values(measured)
    )
    step = _STEP + _varint(measured.step) if measured.step else b""
    return _time(measured.time) + step + _message(_SUMMARY, values)


def _time(seconds: float) -> bytes:
    return _WALL_TIME + _DOUBLE.pack(seconds)


@cache
def _tag(tag: str) -> bytes:
    return _message(_TAG, tag.encode("utf-8", "replace")) + _SIMPLE_VALUE


def _float(value: float) -> bytes:
    return _FLOAT.pack(math.copysign(math.inf, value) if abs(value) > MAX_FLOAT32 else value)


def _message(field: bytes, content: bytes) -> bytes:
    return field + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """A 64-bit number in as many 7-bit groups as it needs, lowest first."""
    number &= (1 << 64) - 1
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _values(event: CurveEvent) -> Iterator[tuple[str, float | None]]:
    """Values by tag, such as `train/loss` and `validation/accuracy`."""
    if isinstance(event, events.StepFinished):
        yield "train/loss", event.loss
        yield "train/learning_rate", event.learning_rate
        yield "train/epoch", event.epoch
        if event.gradient_norm is not None:
            yield "train/gradient_norm", event.gradient_norm
        if event.seconds > 0:
            yield "speed/rows_per_second", event.rows / event.seconds
            yield "speed/tokens_per_second", event.tokens / event.seconds
    elif isinstance(event, events.EvaluationFinished):
        for name, value in event.metrics.items():
            yield f"{event.split}/{name}", value
    else:
        yield "memory/process_mb", event.memory_mb
        if event.device_memory_mb is not None:
            yield "memory/device_mb", event.device_memory_mb
