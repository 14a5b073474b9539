"""Keeps numbers that may be too many for the memory: written to a file as they come, and mapped to be read or sorted."""

import tempfile
from pathlib import Path
from typing import IO

import numpy as np


class SpillFile:
    """One file in the cache folder for any number of lists of numbers. It is gone once it is closed.

    Each list has a stretch of its own, which takes room on the disk only where it is written.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Not in the system's folder for such files, which often lies in memory.
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed in close)
        self._end = 0

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def numbers(self, kind: type[np.generic], most: int) -> "Spilled":
        """An empty list for at most so many numbers of one kind."""
        begin, self._end = self._end, self._end + most * np.dtype(kind).itemsize
        return Spilled(self._file, begin, kind)


class Spilled:
    """Numbers of one kind in a stretch of a file."""

    def __init__(self, file: IO[bytes], begin: int, kind: type[np.generic]) -> None:
        self._file, self._begin, self._kind = file, begin, np.dtype(kind)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, values: np.ndarray) -> None:
        """More numbers."""
        self._file.seek(self._begin + self._count * self._kind.itemsize)
        self._file.write(values.astype(self._kind).tobytes())
        self._count += len(values)

    def mapped(self) -> np.ndarray:
        """All numbers in the order in which they came; changing them changes the file."""
        if self._count == 0:
            return np.zeros(0, self._kind)
        self._file.flush()
        return np.memmap(self._file, dtype=self._kind, mode="r+", offset=self._begin, shape=(self._count,))

    def sorted(self) -> np.ndarray:
        """All numbers in order; the order in which they came is lost."""
        values = self.mapped()
        values.sort()
        return values
