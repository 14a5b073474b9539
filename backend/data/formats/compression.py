"""Reads the bytes of a data file: unchanged, or decompressed if the whole file is compressed (gzip, bzip2, xz, zip)."""

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from backend.contract.errors import InputError
from backend.contract.safe_files import LARGEST_RATIO, MAX_JSON, MB, max_unpacked, open_regular

_ZIP = b"PK\x03\x04"
_PACKERS = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz"), (_ZIP, "zip"))
SUFFIXES = {".gz", ".gzip", ".bz2", ".xz", ".zip"}
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile)


def _open_zip(raw: BinaryIO) -> Any:
    packed = zipfile.ZipFile(raw)
    try:
        return packed.open(_members(packed)[0])
    except (RuntimeError, NotImplementedError) as error:
        # A password, or a method of compression that is not known here.
        raise zipfile.BadZipFile(str(error)) from None


_OPENERS: dict[str, Callable[[BinaryIO], Any]] = {
    "gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open, "zip": _open_zip,
}  # fmt: skip


def packer_of(path: Path) -> str:
    """`gzip`, `bzip2`, `xz` or `zip` (one file, not an office document) by the content; empty if not compressed."""
    with open_regular(path) as file:
        start = file.read(6)
    if start.startswith(_ZIP):
        return "zip" if _holds_one_file(path) else ""
    return packer_of_signature(start)


def packer_of_signature(start: bytes) -> str:
    """The compression format that this signature indicates; empty for any other."""
    return next((name for signature, name in _PACKERS if start.startswith(signature)), "")


def _holds_one_file(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as packed:
            return len(_members(packed)) == 1
    except (zipfile.BadZipFile, OSError, NotImplementedError):
        return False


def _members(packed: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The archive's files, without those that macOS adds."""
    return [one for one in packed.infolist() if not one.is_dir() and not one.filename.startswith("__MACOSX/")]


def plain_suffix(path: Path) -> str:
    """The extension that gives the format, in lower case: `.csv` for `reviews.CSV.gz`."""
    suffix = path.suffix.lower()
    return path.with_suffix("").suffix.lower() if suffix in SUFFIXES else suffix


@contextmanager
def open_unpacked(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The decompressed content, and the file itself, whose position shows how much has been read. Raises InputError."""
    packer = packer_of(path)
    with open_regular(path) as file:
        raw = cast(BinaryIO, file)
        if not packer:
            yield raw, raw
            return
        with explain_errors(path, packer), limit_unpacked(_OPENERS[packer](raw), path) as content:
            yield content, raw


@contextmanager
def explain_errors(path: Path, packer: str) -> Iterator[None]:
    """Turn decompression errors into one sentence."""
    try:
        yield
    except (*_BROKEN, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError(
            "{name} is compressed with {packer} and is damaged, truncated or password-protected; "
            "download or copy it again",
            name=path.name,
            packer=packer,
        ) from None


class _Unpacked(io.RawIOBase):
    """A decoder's output, up to an implausible multiple of the file's size."""

    def __init__(self, stream: Any, path: Path) -> None:
        super().__init__()
        self._stream, self._path, self._done = stream, path, 0
        self._max_unpacked = max_unpacked(path.stat().st_size)

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As for any raw stream. Raises InputError if the file is a decompression bomb."""
        count = self._stream.readinto(buffer)
        self._done += count
        if self._done > self._max_unpacked:
            raise InputError(
                "{name} unpacks to more than {largest_ratio} times its size; unpack it yourself if you trust it",
                name=self._path.name,
                largest_ratio=LARGEST_RATIO,
            )
        return count

    def close(self) -> None:
        """Close this and the decoder."""
        self._stream.close()
        super().close()


def limit_unpacked(stream: Any, path: Path) -> BinaryIO:
    """The output of a decoder for `path`; raises InputError once it is implausibly larger than the file."""
    # Buffered, for a decoder asks for a few thousand bytes at a time.
    return cast(BinaryIO, io.BufferedReader(_Unpacked(stream, path), 1 << 18))


def read_bytes(path: Path, limit: int = MAX_JSON) -> bytes:
    """The whole content, decompressed. Raises InputError."""
    with open_unpacked(path) as (content, _):
        found = content.read(limit + 1)
    if len(found) > limit:
        raise InputError(
            "{name} is too large to be read as a whole (more than {limit:,.0f} MB)", name=path.name, limit=limit / MB
        )
    return found


def first_bytes(path: Path, count: int) -> bytes:
    """The start of the content, decompressed. Raises InputError."""
    with open_unpacked(path) as (content, _):
        return content.read(count)
