"""Owns the tokens of an answer to `tokenize` as columns, whether they came as JSON or as an Arrow file."""

import weakref
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from app.services.backend_client import ArrowAnswer
from backend.contract.tokens import TokenColumns, TokenPiece, Tokens

NAMES = TokenColumns.__struct_fields__


class TokenTable:
    """Tokens by number. Columns are numpy arrays (tokens,) that are only read; nothing is made per token until asked for."""

    def __init__(self, answer: Tokens, columns: dict[str, np.ndarray]) -> None:
        self.answer = answer
        """Counts, notes, round trip and everything else that is not of one token; its own columns may be empty."""
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns["piece"])

    def column(self, name: str) -> np.ndarray:
        """A column by its name in `TokenColumns`."""
        return self._columns[name]

    @cached_property
    def ids(self) -> np.ndarray:
        """(tokens,) int64."""
        return np.array([one.id for one in self.answer.pieces], np.int64)[self._columns["piece"]]

    @cached_property
    def special(self) -> np.ndarray:
        """(tokens,) bool: special tokens, and padding."""
        return self._of_pieces("special") | (self._columns["mask"] == 0)

    @cached_property
    def unknown(self) -> np.ndarray:
        """(tokens,) bool."""
        return self._of_pieces("unknown") & (self._columns["sequence"] >= 0)

    def piece(self, token: int) -> TokenPiece:
        """What is known of the piece of a token."""
        return self.answer.pieces[int(self._columns["piece"][token])]

    def text(self, token: int) -> str:
        """The characters that the token is of; empty where it is of no text. Not of a file, whose text is not here."""
        which = int(self._columns["sequence"][token])
        if which < 0 or not self.answer.sources:
            return ""
        return self.answer.sources[which][self._columns["start"][token] : self._columns["end"][token]]

    def texts(self, low: int = 0, high: int | None = None) -> list[str]:
        """`text` of the tokens from `low` to before `high`."""
        sources = self.answer.sources or [""]
        part = slice(low, high)
        rows = zip(*(self._columns[name][part].tolist() for name in ("sequence", "start", "end")), strict=True)
        return ["" if which < 0 else sources[which][start:end] for which, start, end in rows]

    def raw(self, token: int) -> bytes:
        """The bytes of the text that the token stands for."""
        which = int(self._columns["sequence"][token])
        if which < 0 or not self.answer.sources:
            return b""
        whole = self.text(token).encode()
        start = self._columns["byte_start"][token] - self._byte_places(which)[self._columns["start"][token]]
        return whole[start : start + self._columns["byte_end"][token] - self._columns["byte_start"][token]]

    def _of_pieces(self, name: str) -> np.ndarray:
        return np.array([getattr(one, name) for one in self.answer.pieces], bool)[self._columns["piece"]]

    def _byte_places(self, which: int) -> np.ndarray:
        if which not in self._places:
            points = np.frombuffer(self.answer.sources[which].encode("utf-32-le"), np.uint32)
            sizes = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
            self._places[which] = np.concatenate([[0], np.cumsum(sizes)])
        return self._places[which]

    @cached_property
    def _places(self) -> dict[int, np.ndarray]:
        return {}


def token_table(answer: Tokens | ArrowAnswer) -> TokenTable:
    """The tokens of an answer; an Arrow file is deleted."""
    if isinstance(answer, ArrowAnswer):
        return _read(Path(answer.path))
    return TokenTable(answer, {name: np.array(getattr(answer.columns, name), np.int32) for name in NAMES})


def _read(path: Path) -> TokenTable:
    import pyarrow as pa  # only a text of many thousand tokens needs it

    source = pa.memory_map(str(path))
    table = pa.ipc.open_file(source).read_all()
    rest = msgspec.json.decode((table.schema.metadata or {})[b"answer"], type=Tokens)
    made = TokenTable(rest, {name: _array(table[name]) for name in NAMES})
    weakref.finalize(made, _forget, source, path)
    with suppress(OSError):  # where an open file cannot be deleted, it goes with the table
        path.unlink()
    return made


def _array(column: Any) -> np.ndarray:
    return column.chunk(0).to_numpy() if column.num_chunks == 1 else column.to_numpy()


def _forget(source: Any, path: Path) -> None:
    source.close()
    path.unlink(missing_ok=True)
