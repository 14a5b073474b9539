"""Owns numbers that may be too many for the memory: written to a file as they come, and mapped to be read or sorted."""

import tempfile
from pathlib import Path
from types import TracebackType

import numpy as np


class Spilled:
    """Numbers of one kind in a file of the cache folder that goes with the `with` block."""

    def __init__(self, folder: Path, kind: type[np.generic]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._kind = kind
        # Not in the system's folder for such files, which often lies in memory.
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed in __exit__)
        self._count = 0

    def __enter__(self) -> "Spilled":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._count

    def append(self, values: np.ndarray) -> None:
        """More numbers."""
        self._file.write(values.astype(self._kind).tobytes())
        self._count += len(values)

    def mapped(self) -> np.ndarray:
        """All numbers in the order in which they came; changing them changes the file."""
        if self._count == 0:
            return np.zeros(0, self._kind)
        self._file.flush()
        return np.memmap(self._file, dtype=self._kind, mode="r+", shape=(self._count,))

    def sorted(self) -> np.ndarray:
        """All numbers in order; the order in which they came is lost."""
        values = self.mapped()
        values.sort()
        return values
