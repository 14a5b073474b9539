"""A tokenizer's vocabulary as tables: every piece with its meaning, the ids without a piece, and the BPE merges."""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from backend.contract.messages import message
from backend.contract.tokens.vocabulary import TYPES
from backend.models.model_files import read_table_if_sound
from backend.tokenizers import AnyTokenizer
from backend.tokenizers.vocabulary.pieces import Vocabulary, Writing, type_of, vocabulary_of, writing_of
from backend.tokenizers.vocabulary.scripts import scripts_of

UNUSED_TYPE = "unused"
MOST_UNUSED = 1_000_000
"""Ids that are listed; a damaged file may name any number."""


@dataclass(frozen=True)
class VocabularyTables:
    """`pieces` by id: id, piece, text, bytes (hexadecimal), length (characters of the text), type, script, and for
    Unigram the score (log-probability), for BPE the rank of the first merge that makes it. `merges` by rank."""

    kind: str
    pieces: pa.Table
    merges: pa.Table | None
    missing: int
    """Ids that the model has a row for, or that lie below the highest one, and that no piece has. They are rows of `pieces`
    without piece, of the type `unused`."""

    @property
    def size(self) -> int:
        """The number of pieces."""
        return self.pieces.num_rows - self.missing

    def types(self) -> dict[str, int]:
        """The number of pieces of each type."""
        found = Counter(self.pieces["type"].to_pylist())
        return {name: found[name] for name in TYPES}


def read_vocabulary(tokenizer: AnyTokenizer) -> VocabularyTables:
    """Every piece of a tokenizer, including added ones. 256,000 pieces take a second or two."""
    with _no_collections():
        return _read(tokenizer)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Pause garbage collection: it would rescan a million small, permanent objects, for a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read(tokenizer: AnyTokenizer) -> VocabularyTables:
    known = vocabulary_of(tokenizer)
    by_id = _pieces_by_id(tokenizer, known)
    ids = sorted(by_id)
    pieces = [by_id[number] for number in ids]
    writing = writing_of(tokenizer, pieces)
    contents = [piece.encode("utf-8", "surrogatepass") if number in known.added else writing.content(piece)
                for number, piece in zip(ids, pieces, strict=True)]  # fmt: skip
    texts = [content.decode("utf-8", "replace") for content in contents]
    columns: dict[str, Any] = {
        "id": pa.array(ids, pa.int32()),
        "piece": _strings(pieces),
        "text": _strings(texts),
        "bytes": _strings([content.hex(" ").upper() for content in contents]),
        "length": pa.array([len(text) for text in texts], pa.int32()),
        "type": _types(ids, pieces, writing, known),
        "script": _strings(scripts_of(texts)),
    }
    if known.kind == "Unigram":
        scores = dict(enumerate(known.log_probabilities))
        columns["score"] = pa.array(list(map(scores.get, ids)), pa.float64())
    if known.kind == "BPE":
        columns["rank"] = pa.array(list(map(known.ranks.get, pieces)), pa.int32())
    table = pa.table(columns)
    unused = unused_ids(ids, embedding_rows(tokenizer))
    kind = message("byte-level BPE") if known.kind == "BPE" and writing.byte_level else known.kind
    merges = _merge_table(known, table) if known.kind == "BPE" else None
    return VocabularyTables(kind or type(tokenizer).__name__, with_unused(table, unused), merges, len(unused))


def _pieces_by_id(tokenizer: AnyTokenizer, known: Vocabulary) -> dict[int, str]:
    vocabulary = known.stored.get("vocab")
    if isinstance(vocabulary, list):  # Unigram: pairs of piece and score
        by_id = {number: pair[0] for number, pair in enumerate(vocabulary)}
    else:
        by_id = {number: piece for piece, number in (vocabulary or tokenizer.get_vocab()).items()}
    return by_id | known.added


def _types(ids: list[int], pieces: list[str], writing: Writing, known: Vocabulary) -> pa.Array:
    added, special = known.added, known.special

    def is_odd(number: int, piece: str) -> bool:
        return len(piece) < 2 or number in added or number in special or piece[0] in "[<"

    places = [
        TYPES.index(type_of(number, piece, writing, known)) if is_odd(number, piece) else 0
        for number, piece in zip(ids, pieces, strict=True)
    ]
    return pa.array(TYPES, pa.string()).take(pa.array(places, pa.int8()))


def _merge_table(known: Vocabulary, pieces: pa.Table) -> pa.Table:
    names = pieces["piece"].to_pylist()
    rows = dict(zip(names, range(len(names)), strict=True))
    places = pa.array(list(map(rows.get, known.merged)), pa.int32())
    columns = {
        "rank": pa.array(range(len(known.merges)), pa.int32()),
        "left": _strings([left for left, _ in known.merges]),
        "right": _strings([right for _, right in known.merges]),
        "result": _strings(known.merged),
        "text": pieces["text"].take(places).fill_null(""),
        "id": pieces["id"].take(places),
    }
    return pa.table(columns)


def _strings(values: list[str]) -> pa.Array:
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:  # a lone surrogate, which Arrow's UTF-8 cannot hold
        return pa.array([value.encode("utf-8", "replace").decode() for value in values], pa.string())


def embedding_rows(tokenizer: AnyTokenizer) -> int:
    """The number of embedding rows in the configuration beside the tokenizer; 0 if there is none."""
    config = read_table_if_sound(Path(str(tokenizer.name_or_path)) / "config.json")
    of_text = config.get("text_config")
    rows = config.get("vocab_size") or (of_text.get("vocab_size") if isinstance(of_text, dict) else None)
    return rows if isinstance(rows, int) else 0


def unused_ids(ids: list[int], rows: int) -> np.ndarray:
    """The ids below `rows`, or below the highest of `ids` if that is larger, that are not in `ids`; both ascending."""
    gaps: list[range] = []
    after = 0
    for number in [*ids, max(rows, after)]:
        if number > after:
            gaps.append(range(after, number))
        after = max(after, number + 1)
    room = MOST_UNUSED
    taken = []
    for gap in gaps:
        taken.append(np.arange(gap.start, gap.start + min(len(gap), room), dtype=np.int64))
        room -= len(taken[-1])
    return np.concatenate(taken) if taken else np.zeros(0, np.int64)


def with_unused(pieces: pa.Table, numbers: np.ndarray) -> pa.Table:
    """The table with a row for each of those ids, which have no piece, in id order."""
    if not len(numbers):
        return pieces
    own = {"id": pa.array(numbers, pa.int32()), "type": pa.repeat(pa.scalar(UNUSED_TYPE), len(numbers))}
    more = pa.table({**own, "script": pa.repeat(pa.scalar(""), len(numbers))})
    return pa.concat_tables([pieces, more], promote_options="default").sort_by("id")
