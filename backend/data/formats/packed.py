"""Owns the bytes of a data file: as they are, or unpacked where the whole file is compressed (gzip, bzip2, xz)."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from backend.contract.errors import InputError

_PACKERS = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz"))
SUFFIXES = {".gz", ".gzip", ".bz2", ".xz"}
_OPENERS: dict[str, Callable[[BinaryIO], Any]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)


def packer_of(path: Path) -> str:
    """`gzip`, `bzip2` or `xz` by the file's first bytes; empty where it is not packed."""
    with path.open("rb") as file:
        start = file.read(6)
    return next((name for signature, name in _PACKERS if start.startswith(signature)), "")


def plain_suffix(path: Path) -> str:
    """The ending that tells the format, in small letters: `.csv` of `reviews.CSV.gz`."""
    suffix = path.suffix.lower()
    return path.with_suffix("").suffix.lower() if suffix in SUFFIXES else suffix


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The file's content unpacked, and the file itself, whose position tells how much of it is read. Raises InputError."""
    packer = packer_of(path)
    with path.open("rb") as raw:
        if not packer:
            yield raw, raw
            return
        with _unpacking(packer, raw) as content, said_plainly(path, packer):
            yield content, raw


@contextmanager
def said_plainly(path: Path, packer: str) -> Iterator[None]:
    """Turns what goes wrong in unpacking into one sentence."""
    try:
        yield
    except (*_BROKEN, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError(f"{path.name} is compressed with {packer} and damaged or cut off; get it again") from None


def _unpacking(packer: str, raw: BinaryIO) -> BinaryIO:
    # Buffered, for a decoder asks for a few thousand bytes at a time.
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, _OPENERS[packer](raw)), 1 << 18))


def read_bytes(path: Path) -> bytes:
    """The whole content, unpacked. Raises InputError."""
    with opened(path) as (content, _):
        return content.read()


def first_bytes(path: Path, count: int) -> bytes:
    """The beginning of the content, unpacked. Raises InputError."""
    with opened(path) as (content, _):
        return content.read(count)
