"""Tokenizes a text for display: every token with its position; and describes the tokenizer."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from backend.contract.messages import plural
from backend.contract.tokens.chat_template import template_among
from backend.contract.tokens.options import USUAL, TokenOptions
from backend.contract.tokens.tokens import COUNTS, MessageSpan, RoundTrip, TokenizerDescription, Tokens, TokenTotals
from backend.tokenizers import AnyTokenizer, chat, offsets, options
from backend.tokenizers.encoding import encode, limit_of
from backend.tokenizers.loading import opening_note
from backend.tokenizers.text import replace_surrogates
from backend.tokenizers.token_table import NOWHERE, Columns, Table, Tables
from backend.tokenizers.vocabulary.pieces import vocabulary_of

_FIELDS = ("limit", "round_trip", "offsets_guessed", "stored_truncation", "notes")


def tokenize(
    tokenizer: AnyTokenizer,
    text: str,
    options: TokenOptions = USUAL,
    pair: str | None = None,
    turns: tuple[MessageSpan, ...] = (),
    notes: tuple[str, ...] = (),
) -> Table:
    """Every token of `text` and `pair`; no truncation or padding unless requested. Raises InputError."""
    sources, replaced = zip(
        *(replace_surrogates(one) for one in ([text] if pair is None else [text, pair])), strict=True
    )
    columns = encode(tokenizer, sources[0], sources[1] if pair is not None else None, options)
    whole = _encode_untruncated(tokenizer, sources, options, columns)
    own = [whole.ids[(whole.sequence == number) & (whole.mask == 1)].tolist() for number in range(len(sources))]
    rest = replace(
        about(tokenizer, (*notes, *surrogate_notes(sum(replaced)))),
        sources=list(sources),
        turns=list(turns),
        round_trip=round_trip(tokenizer, sources, own),
    )
    tables = Tables(tokenizer)
    tables.counts += TokenTotals(
        text_tokens=sum(len(one) for one in own),
        left_out=_count_truncated(whole, columns, options),
        characters=sum(len(one) for one in sources),
        bytes=sum(len(one.encode()) for one in sources),
        words=sum(len(one.split()) for one in sources),
    )
    return Table(tables.arrays(columns, list(sources)), tables.finish(rest))


def describe(tokenizer: AnyTokenizer, note: str) -> TokenizerDescription:
    """Everything in `TokenizerDescription`; `note` says what else was found by its name."""
    known = vocabulary_of(tokenizer)
    own = template_among(tokenizer.chat_template)
    return TokenizerDescription(
        tokenizer_class=type(tokenizer).__name__,
        fast=bool(tokenizer.is_fast),
        model=known.kind,
        byte_level=known.byte_level,
        byte_fallback=known.byte_fallback,
        vocabulary=len(tokenizer),
        limit=limit_of(tokenizer),
        stored_truncation=options.stored_truncation(tokenizer),
        stored=options.stored_options(tokenizer),
        chat_template=own or chat.plain_template(tokenizer),
        chat_template_is_plain=not own,
        switches=options.switches(tokenizer),
        notes=[one for one in (note, opening_note(tokenizer)) if one],
    )


def about(tokenizer: AnyTokenizer, notes: tuple[str, ...] = ()) -> Tokens:
    """The part of an answer about the tokenizer itself."""
    note = opening_note(tokenizer)
    return Tokens(
        limit=limit_of(tokenizer),
        offsets_guessed=not tokenizer.is_fast and not offsets.are_exact(tokenizer),
        stored_truncation=options.stored_truncation(tokenizer),
        notes=[*notes, *([note] if note else [])],
    )


def surrogate_notes(replaced: int) -> tuple[str, ...]:
    """A sentence if lone surrogates were replaced."""
    if not replaced:
        return ()
    return (
        plural(
            "A lone surrogate in the text became U+FFFD, because no tokenizer accepts half a character.",
            "{count:,} lone surrogates in the text became U+FFFD, because no tokenizer accepts half a character.",
            replaced,
        ),
    )


BEFORE, PART = 12, 40
FIRST, UNSURE = 2_000, 200
"""So many tokens are decoded first; their last characters may yet change with the token after them."""


def round_trip(tokenizer: AnyTokenizer, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> RoundTrip:
    """Whether each text's ids, without added special tokens, decode back to it."""
    for sequence, (text, own) in enumerate(zip(texts, ids, strict=True)):
        decoded, place = _compare_decoded(tokenizer, text, own)
        if place is not None:
            begin = max(0, place - BEFORE)
            return RoundTrip(
                same=False, sequence=sequence, place=place, part_place=begin,
                text_part=text[begin : begin + PART], decoded_part=decoded[begin : begin + PART],
            )  # fmt: skip
    return RoundTrip(same=True)


def _compare_decoded(tokenizer: AnyTokenizer, text: str, ids: Sequence[int]) -> tuple[str, int | None]:
    """The relevant part of the decoded text, and the first difference; a lossy tokenizer shows it early."""
    if len(ids) > FIRST:
        decoded = str(tokenizer.decode(list(ids[:FIRST]), skip_special_tokens=False))
        place = first_difference(text, decoded)
        if place < len(decoded) - UNSURE:
            return decoded, place
    decoded = str(tokenizer.decode(list(ids), skip_special_tokens=False))
    return decoded, None if decoded == text else first_difference(text, decoded)


def first_difference(one: str, other: str) -> int:
    """The index of the first character that differs, or the end of the shorter text."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (own, its) in pairs if own != its), min(len(one), len(other)))


def as_json(table: Table) -> dict[str, Any]:
    """The output of `burnish tokenize --json`: one list per column, with all windows' tokens concatenated."""
    columns, rest = table.columns, table.rest
    pieces = [rest.pieces[place] for place in columns["piece"].tolist()]
    values = msgspec.to_builtins(rest)
    return {
        "ids": [one.id for one in pieces],
        "pieces": [one.piece for one in pieces],
        "offsets": np.stack([columns["start"], columns["end"]], 1).tolist(),
        "byte_offsets": np.stack([columns["byte_start"], columns["byte_end"]], 1).tolist(),
        "texts": _texts(columns, rest.sources),
        "special": [one.special for one in pieces],
        "word_ids": [None if word == NOWHERE else word for word in columns["word"].tolist()],
        "sequence_ids": [None if one == NOWHERE else one for one in columns["sequence"].tolist()],
        "type_ids": columns["type"].tolist(),
        "attention_mask": columns["mask"].tolist(),
        "windows": columns["window"].tolist(),
        "ranks": [one.rank for one in pieces],
        "log_probabilities": [one.log_probability for one in pieces],
        **{name: values[name] for name in COUNTS if name != "windows"},
        "truncated_at": rest.limit if rest.limit is not None and _longest(columns) > rest.limit else None,
        **{name: values[name] for name in _FIELDS},
        **({"sources": rest.sources, "turns": values["turns"]} if rest.turns else {}),
    }


def _longest(columns: dict[str, np.ndarray]) -> int:
    """Tokens in the longest window, without padding."""
    return int(np.bincount(columns["window"], weights=columns["mask"] == 1).max(initial=0))


def _texts(columns: dict[str, np.ndarray], sources: list[str]) -> list[str]:
    rows = zip(*(columns[name].tolist() for name in ("sequence", "start", "end")), strict=True)
    return ["" if which == NOWHERE else sources[which][start:end] for which, start, end in rows]


def _encode_untruncated(
    tokenizer: AnyTokenizer, sources: tuple[str, ...], options: TokenOptions, columns: Columns
) -> Columns:
    """The tokens without truncation."""
    if options.max_length is None:
        return columns
    uncut = replace(options, max_length=None, windows=False, padding="")
    return encode(tokenizer, sources[0], sources[1] if len(sources) > 1 else None, uncut)


def _count_truncated(whole: Columns, columns: Columns, options: TokenOptions) -> int:
    if options.max_length is None or options.windows:
        return 0
    return int((whole.sequence != NOWHERE).sum() - (columns.sequence != NOWHERE).sum())
