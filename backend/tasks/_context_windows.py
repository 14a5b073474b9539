"""Owns the windows of question answering: a question and its context as features with stride, offsets and positions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE
from backend.tasks._question_answering_features import UNKNOWN, Span

OUTSIDE = -1
"""The offset of a token that is no part of the context."""


@dataclass(frozen=True)
class Window:
    """One feature. Offsets are characters of the context, -1 for tokens outside it."""

    owner: int
    """The question's number among those encoded together."""
    part: int
    input_ids: list[int]
    token_type_ids: list[int] | None
    offset_start: np.ndarray  # (length,) int32
    offset_end: np.ndarray  # (length,) int32
    null_index: int
    """The token that stands for "no answer": the classification token, wherever this tokenizer puts it."""


def windows(
    tokenizer: Any, questions: list[str], contexts: list[str], max_length: int, doc_stride: int
) -> Iterator[Window]:
    """Every question with its context, in as many windows as the context needs; neighbours share `doc_stride` tokens.

    A tokenizer that pads on the left (XLNet) takes the context first, as transformers' own examples do.
    """
    context_first = tokenizer.padding_side == "left"
    encoded = tokenizer(
        *((contexts, questions) if context_first else (questions, contexts)),
        truncation="only_first" if context_first else "only_second",
        max_length=max_length,
        stride=doc_stride,
        return_overflowing_tokens=True,
        return_attention_mask=False,
    )
    types = encoded.get("token_type_ids")
    before, part = -1, 0
    owners = encoded["overflow_to_sample_mapping"]
    for number, (owner, encoding) in enumerate(zip(owners, encoded.encodings, strict=True)):
        before, part = owner, part + 1 if owner == before else 0
        ids = encoded["input_ids"][number]
        starts, ends = _context_offsets(encoding, 0 if context_first else 1)
        yield Window(owner, part, ids, types and types[number], starts, ends, null_index(ids, tokenizer))


def positions(window: Window, span: Span | None) -> tuple[int, int]:
    """First and last token of the answer; twice the null token where there is none, or not all of it in this window; -100
    where it is unknown.

    The search ends with the context: in transformers' example it goes on over the tokens behind it, whose offsets are
    (0, 0), when the answer is the context's last word.
    """
    if span == UNKNOWN:
        return IGNORE, IGNORE
    inside = np.flatnonzero(window.offset_start != OUTSIDE)
    if span is None or not len(inside):
        return window.null_index, window.null_index
    first, last = int(inside[0]), int(inside[-1])
    start, end = span
    if window.offset_start[first] > start or window.offset_end[last] < end:
        return window.null_index, window.null_index
    starts, ends = window.offset_start[first : last + 1], window.offset_end[first : last + 1]
    begins = int(np.searchsorted(starts, start, side="right")) - 1
    return first + begins, first + int(np.searchsorted(ends, end, side="left"))


def null_index(input_ids: list[int], tokenizer: Any) -> int:
    """Where the classification token stands (XLNet's is the last one), else the first token of the text, else 0."""
    for token in (tokenizer.cls_token_id, tokenizer.bos_token_id):
        if token is not None and token in input_ids:
            return input_ids.index(token)
    return 0


def never_an_answer(window: Window) -> np.ndarray:
    """(length,) 1 for every token that is neither of the context nor the one that stands for no answer."""
    mask = (window.offset_start == OUTSIDE).astype(np.int8)
    mask[window.null_index] = 0
    return mask


def check_offsets(tokenizer: Any) -> None:
    """Raises InputError where the tokenizer cannot say which characters a token stands for."""
    if not tokenizer.is_fast:
        raise InputError(
            f"model.tokenizer: question answering must know which characters a token stands for, and {type(tokenizer).__name__} "
            "cannot tell; set model.tokenizer to a folder or hub id with a tokenizer.json",
            "model.tokenizer",
        )


def too_narrow(
    tokenizer: Any, questions: list[str], contexts: list[str], max_length: int, doc_stride: int
) -> tuple[int, int] | None:
    """The first question that leaves a long context no more room than two windows are to share, and that room in tokens.

    The Rust tokenizers do not raise there but abort.
    """
    room = max_length - tokenizer.num_special_tokens_to_add(pair=True) - _lengths(tokenizer, questions)
    narrow = np.flatnonzero(room <= doc_stride)
    needed = _lengths(tokenizer, [contexts[number] for number in narrow])
    for number, length in zip(narrow.tolist(), needed.tolist(), strict=True):
        if length > room[number]:
            return number, int(room[number])
    return None


def _lengths(tokenizer: Any, texts: list[str]) -> np.ndarray:
    if not texts:
        return np.zeros(0, np.int64)
    ids = tokenizer(texts, add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]
    return np.array([len(one) for one in ids])


def _context_offsets(encoding: Any, context: int) -> tuple[np.ndarray, np.ndarray]:
    inside = np.array(encoding.sequence_ids, dtype=np.float32) == context  # None becomes NaN
    offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
    offsets[~inside] = OUTSIDE
    return offsets[:, 0], offsets[:, 1]
