"""Calls a tokenizer with any of its options and returns everything about each token, as numpy columns."""

from itertools import chain
from typing import Any

import numpy as np
from msgspec.structs import replace

from backend.contract.errors import InputError, first_line, panics_as_errors
from backend.contract.tokens.options import TokenOptions
from backend.tokenizers import AnyTokenizer, slow_encoding
from backend.tokenizers.text import words_of
from backend.tokenizers.token_table import NOWHERE, Columns, join_columns

MAX_FILLED = 4_000_000
"""Tokens that a row is filled to; the library ends the process where its memory does not suffice."""
VAST = 10**9
"""transformers says 1e30 where a tokenizer has no limit."""


def limit_of(tokenizer: AnyTokenizer) -> int | None:
    """The model's maximum length, as far as the tokenizer says."""
    limit = tokenizer.model_max_length
    return int(limit) if isinstance(limit, (int, float)) and 0 < limit < VAST else None


def encode(tokenizer: AnyTokenizer, text: str, pair: str | None, options: TokenOptions) -> Columns:
    """The tokens of a text or a pair. Raises InputError for invalid options."""
    check(tokenizer, options, pair is not None)
    if not tokenizer.is_fast:
        return slow_encoding.encode(tokenizer, text, pair, options)
    if options.windows and pair is not None:
        _check_room(tokenizer, text, pair, options)
    return join_columns([columns_of(one, number, text, pair, options) for number, one in enumerate(raw(tokenizer, [text], None if pair is None else [pair], options))])  # fmt: skip


def encode_rows(tokenizer: AnyTokenizer, texts: list[str], options: TokenOptions) -> list[Columns]:
    """The tokens of several texts, padded together. Raises InputError."""
    check(tokenizer, options, False)
    if not tokenizer.is_fast:
        return slow_encoding.encode_rows(tokenizer, texts, options)
    found = raw(tokenizer, texts, None, options) if texts else []
    return [columns_of(one, 0, text, None, options) for one, text in zip(found, texts, strict=True)]


def raw(tokenizer: AnyTokenizer, texts: list[str], pairs: list[str] | None, options: TokenOptions) -> list[Any]:
    """The library's own encodings, requested as transformers does; windows of a text follow each other."""
    given: list[Any] = [words_of(one)[0] for one in texts] if options.pre_split else texts
    second: Any = pairs if pairs is None or not options.pre_split else [words_of(one)[0] for one in pairs]
    side = tokenizer.truncation_side
    try:
        tokenizer.truncation_side = options.truncation_side or side
        with panics_as_errors():
            return tokenizer(given, second, **call_arguments(options)).encodings or []
    except Exception as error:  # that is what the Rust tokenizers raise
        if "too short" in str(error):
            raise InputError(slow_encoding.TOO_SHORT, truncation=options.truncation) from None
        raise InputError("the tokenizer does not accept these options: {error}", error=first_line(error)) from None
    finally:
        tokenizer.truncation_side = side
        _reset(tokenizer)


def call_arguments(options: TokenOptions) -> dict[str, Any]:
    """The arguments for transformers' call."""
    return {
        "add_special_tokens": options.special_tokens,
        "is_split_into_words": options.pre_split,
        "truncation": options.truncation if options.max_length is not None else False,
        "max_length": options.max_length,
        "stride": options.stride if options.windows else 0,
        "return_overflowing_tokens": options.windows,
        "padding": options.padding or False,
        "padding_side": options.padding_side,
        "pad_to_multiple_of": options.pad_to_multiple_of if options.padding else None,
        "return_attention_mask": False,
        "return_token_type_ids": False,
        "verbose": False,
    }


def columns_of(encoding: Any, window: int, text: str, pair: str | None, options: TokenOptions) -> Columns:
    """One of the library's encodings as columns."""
    ids = np.array(encoding.ids, np.int64)
    count = len(ids)
    added = np.array(encoding.special_tokens_mask, np.int64) == 1
    # An added token may be counted to a text by a post-processor that knows no sequences.
    sequence = np.where(added, NOWHERE, 0 if pair is None else _numbers(encoding.sequence_ids))
    offsets = np.fromiter(chain.from_iterable(encoding.offsets), np.int64, 2 * count).reshape(-1, 2)
    offsets[added] = 0
    word = np.where(added, NOWHERE, _numbers(encoding.word_ids))
    mask = np.array(encoding.attention_mask, np.int64) if options.padding else np.ones(count, np.int64)
    if options.pre_split:
        for number, source in enumerate((text, pair or "")):
            begins = words_of(source)[1]
            positions = (sequence == number) & (word >= 0)
            offsets[positions] += begins[word[positions]][:, None]
    return Columns(
        ids=ids,
        sequence=sequence,
        start=offsets[:, 0],
        end=offsets[:, 1],
        word=word,
        type=np.array(encoding.type_ids, np.int64),
        mask=mask,
        window=np.full(count, window, np.int64),
    )


def check(tokenizer: AnyTokenizer, options: TokenOptions, pair: bool) -> None:
    """Raises InputError if the libraries would raise their own error, or end the process."""
    added = tokenizer.num_special_tokens_to_add(pair=pair) if options.special_tokens else 0
    if options.max_length is not None:
        if options.max_length < 1:
            raise InputError("max_length: {max_length} is too small; use 1 or more", max_length=options.max_length)
        if options.max_length < added:
            raise InputError(
                "max_length: {max_length} leaves no room, because {added} special tokens are added; use "
                "more than {added}, or leave out the special tokens",
                max_length=options.max_length,
                added=added,
            )
        if options.truncation == "only_second" and not pair:
            raise InputError("truncation: only_second truncates the second text, but there is none; choose only_first")
    if options.windows:
        if options.max_length is None:
            raise InputError("windows require a max_length; set one")
        if options.stride < 0:
            raise InputError("stride: {stride} is too small; use 0 or more", stride=options.stride)
        slow_encoding.check_stride(options.stride, options.max_length - added)
        if pair and options.truncation == "longest_first":
            raise InputError("only one text of a pair can be split into windows; set truncation to only_second or "
                             "only_first")  # fmt: skip
    if options.padding:
        if tokenizer.pad_token_id is None:
            raise InputError("this tokenizer has no padding token; set one in the options (pad_token)")
        if options.padding == "max_length" and options.max_length is None and limit_of(tokenizer) is None:
            raise InputError("padding to max_length requires a max_length, because this tokenizer has no limit of its " "own; set max_length")  # fmt: skip
        multiple, limit = options.pad_to_multiple_of, options.max_length
        if multiple is not None and multiple > 0 and limit is not None and limit % multiple:
            raise InputError(
                "max_length: {limit} is not a multiple of {multiple} (pad_to_multiple_of); use a multiple of it",
                limit=limit,
                multiple=multiple,
            )
        if options.padding == "max_length" and (limit or 0) > MAX_FILLED:
            raise InputError(
                "max_length: {limit:,} is too long to pad to; use {max_filled:,} or less",
                limit=limit,
                max_filled=MAX_FILLED,
            )
        if (multiple or 0) > MAX_FILLED:
            raise InputError(
                "pad_to_multiple_of: {multiple:,} is too long to pad to; use {max_filled:,} or less",
                multiple=multiple,
                max_filled=MAX_FILLED,
            )
        if options.pad_to_multiple_of is not None and options.pad_to_multiple_of < 1:
            raise InputError(
                "pad_to_multiple_of: {pad_to_multiple_of} is too small; use 1 or more",
                pad_to_multiple_of=options.pad_to_multiple_of,
            )


def _check_room(tokenizer: AnyTokenizer, text: str, pair: str, options: TokenOptions) -> None:
    """Raises InputError if one text of a pair leaves the other's windows too little room: the library aborts."""
    assert options.max_length is not None
    free = replace(options, max_length=None, windows=False, padding="")
    whole = columns_of(raw(tokenizer, [text], [pair], free)[0], 0, text, pair, free)
    which = 1 if options.truncation == "only_second" else 0
    room = options.max_length - int((whole.sequence != which).sum())
    if len(whole) > options.max_length:
        slow_encoding.check_stride(options.stride, room)


def _numbers(values: list[int | None]) -> np.ndarray:
    found = np.array(values, np.float64)  # None becomes NaN, which costs a third of looking at each
    return np.where(np.isnan(found), NOWHERE, found).astype(np.int64)


def _reset(tokenizer: AnyTokenizer) -> None:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        backend.no_truncation()
        backend.no_padding()
