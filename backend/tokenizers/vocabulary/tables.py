"""A tokenizer's vocabulary as tables: every piece with what it stands for, the ids without a piece, and the merges of a BPE."""

import gc
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from backend.contract.messages import message
from backend.contract.tokens.vocabulary import TYPES
from backend.models.model_files import read_table_if_sound
from backend.tokenizers import AnyTokenizer
from backend.tokenizers.vocabulary.pieces import Writing, merge_pieces, writing_by_pieces, writing_of
from backend.tokenizers.vocabulary.scripts import scripts_of

UNUSED = re.compile(r"[\[<]unused[_ ]?\d+[\]>]", re.IGNORECASE)
_OWN_CODE = ("PreTokenizer", "Decoder")
"""Steps that somebody wrote in Python, which have no state to look at."""
UNUSED_TYPE = "unused"
MOST_UNUSED = 1_000_000
"""Ids that are listed; a damaged file may name any number."""


@dataclass(frozen=True)
class VocabularyTables:
    """`pieces` by id: id, piece, text, bytes (hexadecimal), length (characters of the text), type, script, and for a
    Unigram its score (log-probability), for a BPE the rank of the first merge that makes it. `merges` by rank."""

    kind: str
    pieces: pa.Table
    merges: pa.Table | None
    missing: int
    """Ids that the model has a row for, or that lie below the highest one, and that no piece has. They are rows of `pieces`
    without piece, of the type `unused`."""

    @property
    def size(self) -> int:
        """How many pieces there are."""
        return self.pieces.num_rows - self.missing

    def types(self) -> dict[str, int]:
        """How many pieces of each type."""
        found = Counter(self.pieces["type"].to_pylist())
        return {name: found[name] for name in TYPES}


def read_vocabulary(tokenizer: AnyTokenizer) -> VocabularyTables:
    """Every piece of a tokenizer, added ones included. 256,000 pieces take a second or two."""
    with _no_collections():
        return _read(tokenizer)


@contextmanager
def _no_collections() -> Iterator[None]:
    """A million small objects that all stay would be walked through again and again, for a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read(tokenizer: AnyTokenizer) -> VocabularyTables:
    values = _values(tokenizer)
    model = values.get("model") or {}
    by_id = _pieces_by_id(tokenizer, values)
    ids = sorted(by_id)
    pieces = [by_id[number] for number in ids]
    writing = writing_of(values) if values else writing_by_pieces(tokenizer, pieces)
    merges = _merges(model)
    made = [merge_pieces(left, right, model.get("continuing_subword_prefix") or "") for left, right in merges or []]
    added, special = _added(tokenizer)
    contents = [piece.encode("utf-8", "surrogatepass") if number in added else writing.content(piece)
                for number, piece in zip(ids, pieces, strict=True)]  # fmt: skip
    texts = [content.decode("utf-8", "replace") for content in contents]
    columns: dict[str, Any] = {
        "id": pa.array(ids, pa.int32()),
        "piece": _strings(pieces),
        "text": _strings(texts),
        "bytes": _strings([content.hex(" ").upper() for content in contents]),
        "length": pa.array([len(text) for text in texts], pa.int32()),
        "type": _types(ids, pieces, writing, added, special),
        "script": _strings(scripts_of(texts)),
    }
    if model.get("type") == "Unigram":
        columns["score"] = _scores(model, ids)
    if merges is not None:
        columns["rank"] = _ranks(made, pieces)
    table = pa.table(columns)
    unused = unused_ids(ids, embedding_rows(tokenizer))
    merged_table = _merge_table(merges, made, table)
    return VocabularyTables(_kind(tokenizer, model, writing), with_unused(table, unused), merged_table, len(unused))


def _values(tokenizer: AnyTokenizer) -> dict[str, Any]:
    """Of what would stand in its `tokenizer.json`: model, pre-tokenizer and decoder; empty for one in Python code."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return {}
    steps = {"model": backend.model, "pre_tokenizer": backend.pre_tokenizer, "decoder": backend.decoder}
    return {
        name: msgspec.json.decode(step.__getstate__())
        for name, step in steps.items()
        if step is not None and type(step).__name__ not in _OWN_CODE
    }


def _pieces_by_id(tokenizer: AnyTokenizer, values: dict[str, Any]) -> dict[int, str]:
    vocabulary = (values.get("model") or {}).get("vocab")
    if isinstance(vocabulary, list):  # Unigram: pairs of piece and score
        by_id = {number: pair[0] for number, pair in enumerate(vocabulary)}
    elif isinstance(vocabulary, dict):
        by_id = {number: piece for piece, number in vocabulary.items()}
    else:
        by_id = {number: piece for piece, number in tokenizer.get_vocab().items()}
    return by_id | {number: str(token) for number, token in tokenizer.added_tokens_decoder.items()}


def _added(tokenizer: AnyTokenizer) -> tuple[set[int], set[int]]:
    """Ids of all added tokens, and of the special ones."""
    tokens = tokenizer.added_tokens_decoder
    special = {number for number, token in tokens.items() if token.special}
    return set(tokens), special | set(tokenizer.all_special_ids)


def _types(ids: list[int], pieces: list[str], writing: Writing, added: set[int], special: set[int]) -> pa.Array:
    def is_odd(number: int, piece: str) -> bool:
        return len(piece) < 2 or number in added or number in special or piece[0] in "[<"

    def kind(number: int, piece: str) -> str:
        if number in special:
            return "special"
        if UNUSED.fullmatch(piece):
            return "unused"
        if number in added:
            return "added"
        return "byte" if writing.is_byte(piece) else "normal"

    places = [
        TYPES.index(kind(number, piece)) if is_odd(number, piece) else 0
        for number, piece in zip(ids, pieces, strict=True)
    ]
    return pa.array(TYPES, pa.string()).take(pa.array(places, pa.int8()))


def _kind(tokenizer: AnyTokenizer, model: dict[str, Any], writing: Writing) -> str:
    kind = model.get("type") or type(tokenizer).__name__
    return message("byte-level BPE") if kind == "BPE" and writing.byte_level else kind


def _scores(model: dict[str, Any], ids: list[int]) -> pa.Array:
    scores = [pair[1] for pair in model["vocab"]]
    return pa.array([scores[number] if number < len(scores) else None for number in ids], pa.float64())


def _merges(model: dict[str, Any]) -> list[tuple[str, str]] | None:
    """Left and right of each, by rank; before tokenizers 0.20 files have them as one text with a space."""
    if model.get("type") != "BPE":
        return None
    pairs = (merge.split(" ", 1) if isinstance(merge, str) else merge for merge in model.get("merges") or [])
    return [(left, right) for left, right in pairs]


def _ranks(made: list[str], pieces: list[str]) -> pa.Array:
    first = dict(zip(reversed(made), range(len(made) - 1, -1, -1), strict=True))  # of several the lowest stays
    return pa.array(list(map(first.get, pieces)), pa.int32())


def _merge_table(merges: list[tuple[str, str]] | None, made: list[str], pieces: pa.Table) -> pa.Table | None:
    if merges is None:
        return None
    names = pieces["piece"].to_pylist()
    rows = dict(zip(names, range(len(names)), strict=True))
    places = pa.array(list(map(rows.get, made)), pa.int32())
    columns = {
        "rank": pa.array(range(len(merges)), pa.int32()),
        "left": _strings([left for left, _ in merges]),
        "right": _strings([right for _, right in merges]),
        "result": _strings(made),
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
    """How many rows the configuration beside the tokenizer gives its model; 0 where none says so."""
    config = read_table_if_sound(Path(str(tokenizer.name_or_path)) / "config.json")
    of_text = config.get("text_config")
    rows = config.get("vocab_size") or (of_text.get("vocab_size") if isinstance(of_text, dict) else None)
    return rows if isinstance(rows, int) else 0


def unused_ids(ids: list[int], rows: int) -> np.ndarray:
    """The ids below `rows`, or below the highest of `ids` if that is larger, that are none of `ids`; both ascending."""
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
    """The table with a row for each of those ids, which has no piece, in the order of all ids."""
    if not len(numbers):
        return pieces
    own = {"id": pa.array(numbers, pa.int32()), "type": pa.repeat(pa.scalar(UNUSED_TYPE), len(numbers))}
    more = pa.table({**own, "script": pa.repeat(pa.scalar(""), len(numbers))})
    return pa.concat_tables([pieces, more], promote_options="default").sort_by("id")
