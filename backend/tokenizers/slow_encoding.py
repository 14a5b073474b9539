"""Calls a tokenizer written in Python, which has no offsets or windows: those are computed here."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.tokenizers import AnyTokenizer
from backend.tokenizers.offsets import spans
from backend.tokenizers.text import words_of
from backend.tokenizers.token_table import NOWHERE, Columns, join_columns

Span = tuple[int, int]
TOO_SHORT = message(
    "truncation: {truncation} cannot truncate enough, because the other text alone is too long; choose "
    "longest_first or a larger max_length"
)


def encode(tokenizer: AnyTokenizer, text: str, pair: str | None, options: Any) -> Columns:
    """As `encoding.encode`; word ids are only given for pre-split words."""
    parts = list(_encode_windows(tokenizer, text, pair, options))
    width = max(len(one) for one in parts)
    return join_columns([_pad(tokenizer, one, number, width, options) for number, one in enumerate(parts)])


def encode_rows(tokenizer: AnyTokenizer, texts: Sequence[str], options: Any) -> list[Columns]:
    """As `encoding.encode_rows`."""
    parts = [next(_encode_windows(tokenizer, text, None, options)) for text in texts]
    width = max((len(one) for one in parts), default=0)
    return [_pad(tokenizer, one, 0, width, options) for one in parts]


def _encode_windows(tokenizer: AnyTokenizer, text: str, pair: str | None, options: Any) -> Iterator[Columns]:
    sources = [text] if pair is None else [text, pair]
    encoded = [_text(tokenizer, one, options.pre_split) for one in sources]
    lengths = [len(ids) for ids, _, _ in encoded]
    added = tokenizer.num_special_tokens_to_add(pair=pair is not None) if options.special_tokens else 0
    side = options.truncation_side or tokenizer.truncation_side
    room = None if options.max_length is None else options.max_length - added
    for kept in _windows(lengths, room, options, side):
        yield _prepare(tokenizer, encoded, kept, options)


def check_stride(stride: int, room: int) -> None:
    """Raises InputError if windows with `room` tokens for their text would not advance."""
    if stride >= room:
        raise InputError(
            "stride: {stride} must be less than the {value} tokens of text that fit in a window; use "
            "a smaller stride or a larger max_length",
            stride=stride,
            value=max(0, room),
        )


def _text(tokenizer: AnyTokenizer, text: str, pre_split: bool) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Ids, character spans (tokens, 2) and word numbers (tokens,)."""
    if not pre_split:
        ids = list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]) if text else []
        return ids, spans(tokenizer, ids, text), np.full(len(ids), NOWHERE)
    found: list[int] = []
    places, numbers = [np.zeros((0, 2), np.int64)], []
    for number, (word, begin) in enumerate(zip(*words_of(text), strict=True)):
        ids = list(tokenizer([word], is_split_into_words=True, add_special_tokens=False, verbose=False)["input_ids"])
        found += ids
        places.append(spans(tokenizer, ids, word) + begin)
        numbers += [number] * len(ids)
    return found, np.concatenate(places), np.array(numbers, np.int64)


def _windows(lengths: Sequence[int], room: int | None, options: Any, side: str) -> Iterator[list[Span]]:
    """Which tokens of each text are in every window."""
    whole = [(0, length) for length in lengths]
    excess = 0 if room is None else sum(lengths) - room
    if excess <= 0:
        yield whole
    elif not options.windows:
        yield _truncate(lengths, excess, options.truncation, side)
    else:
        which = 1 if options.truncation == "only_second" else 0
        width = lengths[which] - excess
        check_stride(options.stride, width)
        for span in _steps(lengths[which], width, options.stride, side):
            yield [span if number == which else one for number, one in enumerate(whole)]


def _truncate(lengths: Sequence[int], excess: int, strategy: str, side: str) -> list[Span]:
    left = list(lengths)
    if strategy != "longest_first" or len(left) == 1:
        which = 1 if strategy == "only_second" else 0
        if left[which] <= excess and len(left) == 2:
            raise InputError(TOO_SHORT, truncation=strategy)
        left[which] = max(0, left[which] - excess)
    else:  # one token after the other from the longer text, the second one where both are as long
        for _ in range(min(excess, sum(left))):
            left[0 if left[0] > left[1] else 1] -= 1
    return [(0, n) if side == "right" else (whole - n, whole) for n, whole in zip(left, lengths, strict=True)]


def _steps(length: int, width: int, stride: int, side: str) -> Iterator[Span]:
    begin = 0
    while True:
        stop = min(begin + width, length)
        yield (begin, stop) if side == "right" else (length - stop, length - begin)
        if stop == length:
            return
        begin += width - stride


def _prepare(tokenizer: AnyTokenizer, encoded: Any, kept: list[Span], options: Any) -> Columns:
    ids = [one[0][low:high] for one, (low, high) in zip(encoded, kept, strict=True)]
    second = ids[1] if len(ids) == 2 else None
    made = tokenizer.prepare_for_model(  # type: ignore[attr-defined]
        ids[0], second, add_special_tokens=options.special_tokens, return_token_type_ids=True,
        return_attention_mask=False, verbose=False,
    )  # fmt: skip
    whole = list(made["input_ids"])
    own = _content_slices(whole, ids)
    sequence, word = np.full(len(whole), NOWHERE), np.full(len(whole), NOWHERE)
    places = np.zeros((len(whole), 2), np.int64)
    for number, (positions, one, (low, high)) in enumerate(zip(own, encoded, kept, strict=True)):
        sequence[positions], word[positions], places[positions] = number, one[2][low:high], one[1][low:high]
    types = np.array(made.get("token_type_ids", [0] * len(whole)), np.int64)
    zeros = np.zeros(len(whole), np.int64)
    return Columns(
        np.array(whole, np.int64), sequence, places[:, 0], places[:, 1], word, types, zeros + 1, zeros
    )  # fmt: skip


def _content_slices(whole: list[int], texts: list[list[int]]) -> list[slice]:
    """Where each text's ids are among those with special tokens; a text is always contiguous."""
    found, begin = [], 0
    for number, ids in enumerate(texts):
        later = sum(len(one) for one in texts[number + 1 :])
        last = len(whole) - later - len(ids)
        begin = next((place for place in range(begin, last + 1) if whole[place : place + len(ids)] == ids), begin)
        found.append(slice(begin, begin + len(ids)))
        begin += len(ids)
    return found


def _pad(tokenizer: AnyTokenizer, one: Columns, window: int, width: int, options: Any) -> Columns:
    size = width if options.padding == "longest" else len(one)
    if options.padding == "max_length":
        size = max(len(one), options.max_length or int(tokenizer.model_max_length))
    multiple = options.pad_to_multiple_of
    if options.padding and multiple:
        size = -(-size // multiple) * multiple
    missing = size - len(one)
    ahead = (options.padding_side or tokenizer.padding_side) == "left"
    pad: Any = tokenizer.pad_token_id or 0

    def fill(values: np.ndarray, value: int) -> np.ndarray:
        return np.pad(values, (missing, 0) if ahead else (0, missing), constant_values=value)

    return Columns(
        fill(one.ids, pad), fill(one.sequence, NOWHERE), fill(one.start, 0), fill(one.end, 0),
        fill(one.word, NOWHERE), fill(one.type, tokenizer.pad_token_type_id), fill(one.mask, 0),
        np.full(size, window),
    )  # fmt: skip
