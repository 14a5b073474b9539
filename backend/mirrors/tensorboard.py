"""Writes a run's curves as TensorBoard event files: one record per step, evaluation and memory measurement.

Such a file is TFRecords of `tensorflow.Event` messages, of which four fields are needed; they are written here, because
every library for them loads torch or TensorFlow, which take seconds and hundreds of MB.
"""

import math
import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from backend.contract import places
from backend.contract.errors import InputError
from backend.contract.output_file import check_output_folder
from backend.contract.run.curves import CurveEvent
from backend.mirrors.mirror import RunDescription, TrackerSettings, scalars

MARK = "tfevents"
"""What TensorBoard knows event files by, in their names."""
VERSION = "brain.Event:2"
MAX_FLOAT32 = 3.4028235e38
_LENGTH, _CHECKSUM = struct.Struct("<Q"), struct.Struct("<I")
_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")
_WALL_TIME, _STEP, _FILE_VERSION, _SUMMARY, _SESSION_LOG = b"\x09", b"\x10", b"\x1a", b"\x2a", b"\x3a"
"""Fields of `Event` with their wire types: a double, a number, a text, two messages."""
_SESSION_START = b"\x08\x01"
"""The `SessionLog` with which TensorBoard drops all points from its event's step on."""
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
    records = 0
    try:
        with beside.open("wb") as file:
            file.write(_first_record(first.time))
            for measured in chain([first], rest):
                records += 1
                file.write(_record(_event(measured.step, measured.time, scalars(measured))))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return EventFile(path, records)


def _first_record(time: float) -> bytes:
    return _record(_time(time) + _message(_FILE_VERSION, VERSION.encode()))


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


def _event(step: int, time: float, values: Iterable[tuple[str, float | None]]) -> bytes:
    found = b"".join(
        _message(_VALUE, _tag(tag) + _float(math.nan if value is None else value)) for tag, value in values
    )
    return _at(step, time) + _message(_SUMMARY, found)


def _at(step: int, time: float) -> bytes:
    return _time(time) + (_STEP + _varint(step) if step else b"")


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


class TensorBoardSettings(TrackerSettings):
    """Where event files are written."""

    folder: str = Field("", title="Folder", max_length=1000, json_schema_extra={"path": True})
    """The folder for `tensorboard --logdir`, in which every run gets its own; empty for `tensorboard` beside your runs."""


class TensorBoard:
    """Event files that grow with the run."""

    title: ClassVar[str] = "TensorBoard"
    description: ClassVar[str] = "Event files in a folder, which TensorBoard reads while they grow."
    Settings = TensorBoardSettings

    def check(self, settings: TensorBoardSettings) -> None:
        """See `Tracker.check`."""
        if settings.folder and not Path(settings.folder).expanduser().is_absolute():
            raise InputError("folder: write the whole path of the folder", "folder")

    def open(self, run: RunDescription, settings: TensorBoardSettings, run_id: str) -> "TensorBoardWriter":
        """See `Tracker.open`; the id is the run's folder."""
        folder = Path(run_id) if run_id else _free_folder(_logs(settings) / run.name)
        check_output_folder(folder)
        return TensorBoardWriter(folder, run.started)


class TensorBoardWriter:
    """Writes a new event file at each opening: what a killed process left half-written ends the file before."""

    def __init__(self, folder: Path, started: float) -> None:
        self.id = str(folder)
        folder.mkdir(parents=True, exist_ok=True)
        number = sum(MARK in path.name for path in folder.iterdir())
        self._file = (folder / f"events.out.{MARK}.{int(started):010d}.burnish.{number:06d}").open("xb")
        self._file.write(_first_record(started))
        self._time = started

    def write(self, step: int, time: float, values: Mapping[str, float]) -> None:
        """See `Writer.write`."""
        self._file.write(_record(_event(step, time, values.items())))
        self._time = time

    def rewind(self, step: int) -> bool:
        """See `Writer.rewind`; TensorBoard drops the points when it reads this."""
        self._file.write(_record(_at(step + 1, self._time) + _message(_SESSION_LOG, _SESSION_START)))
        return True

    def flush(self) -> None:
        """See `Writer.flush`."""
        self._file.flush()

    def close(self, state: str) -> None:
        """See `Writer.close`."""
        self._file.close()


def _logs(settings: TensorBoardSettings) -> Path:
    return Path(settings.folder).expanduser() if settings.folder else places.runs_folder().parent / "tensorboard"


def _free_folder(folder: Path) -> Path:
    """The folder, or one with a number if another run has it."""
    others = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(one for one in chain([folder], others) if not one.exists())


MIRROR = TensorBoard()
