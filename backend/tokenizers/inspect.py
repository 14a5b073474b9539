"""Owns what a tokenizer makes of a text, for people to look at: every token with its place in the text."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from backend.contract.tokens import TokenColumns, TokenPiece, Tokens, Turn
from backend.tokenizers import guessed_offsets
from backend.tokenizers.byte_spans import byte_spans, partial
from backend.tokenizers.columns import NOWHERE, Columns
from backend.tokenizers.encoding import Options, encode, limit_of
from backend.tokenizers.loading import stored_truncation
from backend.tokenizers.round_trip import round_trip
from backend.tokenizers.sources import byte_places, cleaned
from backend.tokenizers.vocabulary import is_single_byte, vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

LONGEST_ROUND_TRIP = 2_000_000
"""Characters; a longer text is not decoded again."""


@dataclass(frozen=True)
class Table:
    """Tokens as they are answered: `columns` by the names of `TokenColumns`, and everything else."""

    columns: dict[str, np.ndarray]
    rest: Tokens

    def answer(self) -> Tokens:
        """All in one value."""
        lists = {name: values.tolist() for name, values in self.columns.items()}
        return msgspec.structs.replace(self.rest, columns=TokenColumns(**lists))


def tokenize(
    tokenizer: "PreTrainedTokenizerBase",
    text: str,
    options: Options = Options(),  # noqa: B008
    pair: str | None = None,
    turns: tuple[Turn, ...] = (),
    notes: tuple[str, ...] = (),
) -> Table:
    """Every token of `text` and `pair`; nothing truncated or padded unless asked. Raises InputError."""
    sources, replaced = zip(*(cleaned(one) for one in ([text] if pair is None else [text, pair])), strict=True)
    columns = encode(tokenizer, sources[0], sources[1] if pair is not None else None, options)
    whole = _whole(tokenizer, sources, options, columns)
    if sum(replaced):
        notes = (*notes, f"{_counted(sum(replaced), 'lone surrogate')} in the text became U+FFFD, as no tokenizer takes them.")  # fmt: skip
    own = [whole.ids[(whole.sequence == number) & (whole.mask == 1)].tolist() for number in range(len(sources))]
    sized = sum(len(one) for one in sources) <= LONGEST_ROUND_TRIP
    rest = Tokens(
        sources=list(sources),
        turns=list(turns),
        text_tokens=sum(len(one) for one in own),
        left_out=_left_out(whole, columns, options),
        characters=sum(len(one) for one in sources),
        bytes=sum(len(one.encode()) for one in sources),
        words=sum(len(one.split()) for one in sources),
        limit=limit_of(tokenizer),
        offsets_guessed=not tokenizer.is_fast and not guessed_offsets.are_exact(tokenizer),
        stored_truncation=stored_truncation(tokenizer),
        notes=list(notes),
    )
    if sized:
        rest = msgspec.structs.replace(rest, round_trip=round_trip(tokenizer, sources, own))
    return table(tokenizer, columns, [byte_places(one) for one in sources], rest)


def table(tokenizer: "PreTrainedTokenizerBase", columns: Columns, places: list[np.ndarray], rest: Tokens) -> Table:
    """Columns with their pieces and bytes, and what can be counted of them."""
    ids, which = np.unique(columns.ids, return_inverse=True)
    pieces = pieces_of(tokenizer, ids)
    sizes = np.array([_size(one) for one in pieces], np.int64)
    spans = np.zeros((len(columns), 2), np.int64)
    cut = np.zeros(len(columns), bool)
    for number, place in enumerate(places):
        here = np.flatnonzero((columns.sequence == number) & (columns.mask == 1))
        first = np.append(True, np.diff(columns.window[here]) != 0)[: len(here)]
        begin, end = byte_spans(columns.start[here], columns.end[here], sizes[which[here]], place, first)
        spans[here, 0], spans[here, 1] = begin, end
        cut[here] = partial(begin, end, place)
    of_text = columns.sequence != NOWHERE
    unknown = np.array([one.unknown for one in pieces], bool)[which] & of_text
    single = np.array([is_single_byte(one.piece) for one in pieces], bool)[which] & of_text
    padding = int((columns.mask == 0).sum())
    arrays = {
        "piece": which.astype(np.int32),
        "sequence": columns.sequence.astype(np.int8),
        "start": columns.start.astype(np.int32),
        "end": columns.end.astype(np.int32),
        "byte_start": spans[:, 0].astype(np.int32),
        "byte_end": spans[:, 1].astype(np.int32),
        "partial": cut.astype(np.uint8),
        "word": columns.word.astype(np.int32),
        "type": columns.type.astype(np.int32),
        "mask": columns.mask.astype(np.int8),
        "window": columns.window.astype(np.int32),
    }
    return Table(
        arrays,
        msgspec.structs.replace(
            rest,
            pieces=pieces,
            tokens=len(columns) - padding,
            padding=padding,
            windows=int(columns.window.max(initial=0)) + 1,
            unknown=_unknown(columns, np.flatnonzero(unknown), which, pieces, rest.sources),
            partial=int(cut.sum()),
            byte_fallback=int(single.sum()),
        ),
    )


def pieces_of(tokenizer: "PreTrainedTokenizerBase", ids: np.ndarray) -> list[TokenPiece]:
    """What is known of each id."""
    known = vocabulary_of(tokenizer)
    numbers = ids.tolist()
    texts = tokenizer.convert_ids_to_tokens(numbers)
    return [known.piece(number, "" if text is None else str(text)) for number, text in zip(numbers, texts, strict=True)]


def as_json(table: Table) -> dict[str, Any]:
    """What `burnish tokenize --json` prints: one list per column, every window's tokens after each other."""
    columns, rest = table.columns, table.rest
    pieces = [rest.pieces[place] for place in columns["piece"].tolist()]
    found: dict[str, Any] = {
        "ids": [one.id for one in pieces],
        "pieces": [one.piece for one in pieces],
        "offsets": np.stack([columns["start"], columns["end"]], 1).tolist(),
        "byte_offsets": np.stack([columns["byte_start"], columns["byte_end"]], 1).tolist(),
        "texts": _texts(columns, rest.sources),
        "special": [one.special for one in pieces],
        "unknown_tokens": [one.unknown for one in pieces],
        "word_ids": [None if word == NOWHERE else word for word in columns["word"].tolist()],
        "sequence_ids": [None if one == NOWHERE else one for one in columns["sequence"].tolist()],
        "type_ids": columns["type"].tolist(),
        "attention_mask": columns["mask"].tolist(),
        "windows": columns["window"].tolist(),
        "ranks": [one.rank for one in pieces],
        "log_probabilities": [one.log_probability for one in pieces],
        "truncated_at": rest.limit if rest.limit is not None and rest.tokens > rest.limit else None,
    }
    told = msgspec.to_builtins(rest)
    counts = {f"{name}_count" if name in ("tokens", "windows") else name: told[name] for name in _COUNTS}
    return {**found, **counts, **{name: told[name] for name in _TOLD}}


_COUNTS = ("tokens", "windows", "padding", "text_tokens", "left_out", "characters", "bytes", "words", "unknown", "partial", "byte_fallback")  # fmt: skip
_TOLD = ("limit", "round_trip", "offsets_guessed", "stored_truncation", "notes")


def _texts(columns: dict[str, np.ndarray], sources: list[str]) -> list[str]:
    rows = zip(*(columns[name].tolist() for name in ("sequence", "start", "end")), strict=True)
    return ["" if which == NOWHERE else sources[which][start:end] for which, start, end in rows]


def _whole(
    tokenizer: "PreTrainedTokenizerBase", sources: tuple[str, ...], options: Options, columns: Columns
) -> Columns:
    """The tokens when nothing is cut off."""
    if options.max_length is None:
        return columns
    uncut = replace(options, max_length=None, windows=False, padding="")
    return encode(tokenizer, sources[0], sources[1] if len(sources) > 1 else None, uncut)


def _left_out(whole: Columns, columns: Columns, options: Options) -> int:
    if options.max_length is None or options.windows:
        return 0
    return int((whole.sequence != NOWHERE).sum() - (columns.sequence != NOWHERE).sum())


def _unknown(
    columns: Columns, places: np.ndarray, which: np.ndarray, pieces: list[TokenPiece], sources: list[str]
) -> int:
    """How many tokens stand for what cannot be written; who writes `[UNK]` into the text means just that."""
    sizes = columns.end[places] - columns.start[places]
    lengths = np.array([len(one.piece) for one in pieces], np.int64)[which[places]]
    written = sum(
        sources[columns.sequence[place]][columns.start[place] : columns.end[place]] == pieces[which[place]].piece
        for place in places[sizes == lengths]
    )
    return len(places) - written


def _size(piece: TokenPiece) -> int:
    """Bytes that the piece stands for; −1 where it is no piece of bytes."""
    return len(piece.bytes) // 2 if piece.bytes else NOWHERE


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
