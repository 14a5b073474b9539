"""Owns `open_predictions`: a large predictions file uncompressed in the cache, with what people sort and filter by."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from backend.contract.errors import InputError
from backend.contract.places import cache_folder
from backend.contract.rpc.predictions import PredictionPages
from backend.contract.rpc.queries import Progress
from backend.contract.safe_files import open_unlinked
from backend.helper.queries.derived_columns import with_all_columns
from backend.helper.query import Arguments, Query, Tell, needed

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as parquet

SMALL = 20_000
"""Rows of a file that is read from its Parquet file each time, in some milliseconds."""
KEPT = 3
"""Files whose pages stay on the disk."""
VERSION = 1


def _open(arguments: Arguments, tell: Tell) -> PredictionPages:
    path = Path(needed(arguments, "parquet"))
    pages = _pages(path, tell)
    return PredictionPages(arrow=str(pages), rows=_mapped(str(pages), pages.stat().st_mtime_ns).num_rows)


def read(path: str, tell: Tell = lambda progress: None) -> "pa.Table":
    """All rows of a predictions file with the derived columns. Raises InputError.

    A large file is mapped from the cache, so that nothing is decompressed and little of it comes into memory.
    """
    # Not read_table, which would load pandas: that takes longer than a small file.
    with open_file(Path(path)) as file:
        if file.metadata.num_rows <= SMALL:
            return with_all_columns(file.read())
    pages = _pages(Path(path), tell)
    return _mapped(str(pages), pages.stat().st_mtime_ns)


def read_columns(path: str, columns: list[str]) -> "pa.Table":
    """Some columns as they stand in the file. Raises InputError."""
    with open_file(Path(path)) as file:
        missing = set(columns) - set(file.schema_arrow.names)
        if missing:
            raise InputError(f"{path}: these predictions have no {min(missing)!r} to compare with")
        return file.read(columns=columns)


@contextmanager
def open_file(path: Path) -> Iterator["parquet.ParquetFile"]:
    """A predictions file; it lies in a run folder, where no link is followed. Raises InputError, also while it is read."""
    import pyarrow.parquet as parquet

    with _telling(path), open_unlinked(path) as source, parquet.ParquetFile(source) as file:
        yield file


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """What goes wrong while a predictions file is read, as one sentence."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InputError(f"{path}: these predictions cannot be read: {reason}; run burnish predict again") from None


def version(path: Path) -> str:
    """Changes when the file is written again. Raises InputError where it is gone."""
    with _telling(path), open_unlinked(path) as file:
        status = os.fstat(file.fileno())
        return f"{path.absolute()} {status.st_mtime_ns} {status.st_size}"


def _pages(path: Path, tell: Tell) -> Path:
    folder = cache_folder() / "pages"
    name = hashlib.sha256(f"{VERSION} {version(path)}".encode()).hexdigest()[:24]
    pages = folder / f"{name}.arrow"
    if not pages.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _forget_older(folder)
        _write(path, pages, tell)
    os.utime(pages)
    return pages


def _write(path: Path, pages: Path, tell: Tell) -> None:
    import pyarrow as pa

    beside = pages.with_name(f".{pages.name}.{os.getpid()}")
    try:
        with open_file(path) as file:
            total = file.metadata.num_rows
            first = with_all_columns(file.read_row_group(0)).combine_chunks()  # one batch for each row group
            with pa.ipc.new_file(str(beside), first.schema) as writer:
                writer.write_table(first)
                for group in range(1, file.num_row_groups):
                    writer.write_table(with_all_columns(file.read_row_group(group)).combine_chunks())
                    tell(Progress(first.num_rows * (group + 1), total, "rows"))
        beside.replace(pages)
    finally:
        beside.unlink(missing_ok=True)


def _forget_older(folder: Path) -> None:
    known = sorted(folder.glob("*.arrow"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in known[KEPT - 1 :]:
        with suppress(OSError):  # another window may have it open, where that forbids deleting
            path.unlink()


@lru_cache(maxsize=2)
def _mapped(pages: str, written: int) -> "pa.Table":
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(pages)).read_all()


QUERIES = (Query("open_predictions", _open),)
