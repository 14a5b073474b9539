"""Owns the files of XNLI as rows: the evaluation files hold all languages, the translated training files one each."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.errors import InputError
from backend.data.formats.delimited import Delimited
from backend.data.formats.reader import Options, Piece

SCHEMA = pa.schema([("premise", pa.string()), ("hypothesis", pa.string()), ("label", pa.string())])
"""The names that the hub's data set uses; the files themselves call them so, or `hypo`, `sentence1`, `gold_label` …"""
_NAMES = {
    "premise": ("premise", "sentence1"),
    "hypothesis": ("hypothesis", "hypo", "sentence2"),
    "label": ("label", "gold_label"),
}
_LANGUAGE = "language"


class Xnli:
    """The rows of one language; a file without labels has none of them. Quotes belong to the text."""

    def __init__(self, path: Path, language: str) -> None:
        self._name, self._language = path.name, language
        self._file = Delimited(path, Options(delimiter="\t", quoting="none"), "\t")
        self.skipped = self._file.skipped
        there = self._file.schema().names
        self._columns = {
            name: found
            for name, names in _NAMES.items()
            if (found := next((one for one in names if one in there), None))
        }
        for name in ("premise", "hypothesis"):
            if name not in self._columns:
                raise InputError(
                    f"{path.name} is no file of XNLI: it has none of the columns {', '.join(_NAMES[name])}; check data.folder"
                )

    def schema(self) -> pa.Schema:
        """`premise`, `hypothesis` and, where there are any, `label`."""
        return pa.schema([field for field in SCHEMA if field.name in self._columns])

    def pieces(self, schema: pa.Schema) -> Iterator[Piece]:
        """The rows of the language in order. Raises InputError where a file of several languages has none."""
        others: set[str] = set()
        found = False
        for piece in self._file.pieces(self._file.schema()):
            keep = self._keep(piece.batch, others)
            found = found or bool(keep.any())
            columns = [_plain(piece.batch[self._columns[field.name]]) for field in schema]
            batch = pa.record_batch(columns, schema=schema).filter(pa.array(keep))
            yield Piece(batch, piece.lines[keep], piece.position)
        if others and not found:
            raise InputError(
                f"{self._name} has no rows in the language {self._language!r}; it has {', '.join(sorted(others))}"
            )

    def _keep(self, batch: pa.RecordBatch, others: set[str]) -> np.ndarray:
        if _LANGUAGE not in batch.schema.names:
            return np.ones(batch.num_rows, dtype=bool)
        others |= set(batch[_LANGUAGE].unique().to_pylist()) - {self._language}
        return pc.equal(batch[_LANGUAGE], self._language).to_numpy(zero_copy_only=False)


def _plain(column: pa.Array) -> pa.Array:
    """The translated training files write `contradictory` for the label that the others call `contradiction`."""
    return pc.if_else(pc.equal(column, "contradictory"), "contradiction", column)
