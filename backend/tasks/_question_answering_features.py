"""Reads reference answers in any form that a column holds, and splits contexts into windows with answer positions."""

import ast
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE
from backend.contract.messages import message
from backend.data.rows import Rows
from backend.tasks.task import Columns, iterate_chunks

Span = tuple[int, int]
"""First character of an answer in its context, and the one after its last."""
UNKNOWN: Span = (-1, -1)
"""The position of an answer that is unknown, as opposed to known to be absent."""

OUTSIDE = -1
"""The offset of a token outside the context."""


@dataclass(frozen=True)
class Answers:
    """The reference answers of one question, empty if it has none; a start is None if the data gives no offset."""

    texts: tuple[str, ...] = ()
    starts: tuple[int | None, ...] = ()


class Unreadable(ValueError):
    """The cell holds neither text nor answers with offsets."""


def has_answers(rows: Rows, columns: Columns) -> bool:
    """Whether the rows have answers: the column exists and is not entirely empty."""
    name = columns.get("answers")
    if name not in rows.table.column_names:
        return False
    column = rows.table[name]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return bool(pc.any(pc.not_equal(pc.utf8_trim_whitespace(column), "")).as_py())
    return column.null_count < len(column)


def read_answers(rows: Rows, columns: Columns) -> Iterator[Answers | Unreadable | None]:
    """One entry per row; None if the answers are unknown, which differs from a question without an answer."""
    if not has_answers(rows, columns):
        yield from (None for _ in range(len(rows)))
        return
    cells = rows.table[columns["answers"]]
    own = columns.get("answer_start")
    offsets = rows.table[own] if own in rows.table.column_names else None
    for chunk in iterate_chunks(len(rows)):
        part = slice(chunk.start, chunk.stop)
        starts = offsets[part].to_pylist() if offsets is not None else [None] * len(chunk)
        yield from map(_read, cells[part].to_pylist(), starts)


def locate(context: str, text: str, start: int | None) -> tuple[Span | None, bool]:
    """The position of the text nearest to its offset, and whether that is exactly at the offset.

    Without an offset, the first occurrence. White space around an answer is not part of it.
    """
    if start is not None and start >= 0 and context[start : start + len(text)] == text:
        return (start, start + len(text)), True
    bare = text.strip()
    places = list(_occurrences(context, bare)) if bare else []
    if not places:
        return None, False
    found = min(places, key=lambda place: abs(place - (start or 0)))
    return (found, found + len(bare)), start is None


def find_misplaced(rows: Rows, columns: Columns, contexts: Iterable[str]) -> list[int]:
    """The rows whose first answer is not at its offset."""
    return [
        row
        for row, (answers, context) in enumerate(zip(read_answers(rows, columns), contexts, strict=True))
        if isinstance(answers, Answers)
        and answers.texts
        and not locate(context, answers.texts[0], answers.starts[0])[1]
    ]


def _occurrences(context: str, text: str) -> Iterator[int]:
    place = context.find(text)
    while place >= 0:
        yield place
        place = context.find(text, place + 1)


def _read(cell: Any, start: Any) -> Answers | Unreadable | None:
    try:
        return _answers(cell, start)
    except Unreadable as error:
        return error


def _answers(cell: Any, start: Any) -> Answers | None:
    """Parse SQuAD's struct of lists, a list of structs or of texts, JSON text of one of these, or one plain text."""
    if cell is None:
        return None
    if isinstance(cell, str):
        decoded = _decode(cell)
        return _answers(decoded, start) if decoded is not None else _pair_answers([cell], _offsets(start))
    if isinstance(cell, dict):
        if "text" not in cell:
            raise Unreadable(message("answers without text"))
        return _pair_answers(_as_list(cell["text"]), _offsets(cell.get("answer_start")))
    if isinstance(cell, list) and cell and all(isinstance(one, dict) and "text" in one for one in cell):
        starts = [offset for one in cell for offset in _offsets(one.get("answer_start")) or [None]]
        return _pair_answers([one["text"] for one in cell], starts)
    return _pair_answers(_as_list(cell), _offsets(start))


def _pair_answers(texts: list[Any], starts: list[int | None]) -> Answers:
    if any(isinstance(text, list | dict) for text in texts):
        raise Unreadable(message("answers that are not text"))
    words = [_as_text(text) for text in texts]
    starts = [*starts, *[None] * (len(words) - len(starts))]
    kept = [(text, start) for text, start in zip(words, starts, strict=False) if text.strip()]
    return Answers(tuple(text for text, _ in kept), tuple(start for _, start in kept))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _as_text(value: Any) -> str:
    """The cell as text; numbers such as years lose their fraction: 1945.0 is the answer 1945."""
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _offsets(value: Any) -> list[int | None]:
    try:
        if isinstance(value, str):
            value = json.loads(value) if value.strip() else None
        found = [None if one is None else float(one) for one in _as_list(value)]
        numbers = [None if one is None or math.isnan(one) else int(one) for one in found]  # NaN: pandas' missing number
    except (TypeError, ValueError, OverflowError):
        raise Unreadable(message("the answer offset {value}, which is not a number", value=repr(value))) from None
    return [None if number is None or number < 0 else number for number in numbers]


def _decode(cell: str) -> Any:
    """The value of JSON text, or of a Python literal of lists and dictionaries; None for any other text."""
    if not cell.strip().startswith(("{", "[")):
        return None
    for decode in (json.loads, ast.literal_eval):
        try:
            value = decode(cell)
        except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last two of brackets without end
            continue
        return value if _is_answers(value) else None
    return None


def _is_answers(value: Any) -> bool:
    """Whether decoded text holds answers: one such as "[1]" is plain text, although it is valid JSON."""
    if isinstance(value, dict):
        return "text" in value
    return isinstance(value, list) and all(
        isinstance(one, str) or (isinstance(one, dict) and "text" in one) for one in value
    )


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
    """The token that means "no answer": the classification token, wherever this tokenizer puts it."""


def windows(
    tokenizer: Any, questions: list[str], contexts: list[str], max_length: int, doc_stride: int
) -> Iterator[Window]:
    """Every question with its context, in as many windows as needed; neighbours share `doc_stride` tokens.

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
    """First and last token of the answer; twice the null token if there is none, or it is not all in this window; -100
    if it is unknown.

    The search stops at the end of the context: in transformers' example it continues over the next tokens, with offsets
    (0, 0), if the answer is the context's last word.
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
    """The position of the classification token (the last one for XLNet), else the first token of the text, else 0."""
    for token in (tokenizer.cls_token_id, tokenizer.bos_token_id):
        if token is not None and token in input_ids:
            return input_ids.index(token)
    return 0


def answer_mask(window: Window) -> np.ndarray:
    """(length,) 1 for every token that is neither in the context nor the null token."""
    mask = (window.offset_start == OUTSIDE).astype(np.int8)
    mask[window.null_index] = 0
    return mask


def check_offsets(tokenizer: Any) -> None:
    """Raises InputError if the tokenizer gives no character offsets."""
    if not tokenizer.is_fast:
        raise InputError(
            "model.tokenizer: question answering must know which characters a token covers, and "
            "{class_name} cannot tell; set model.tokenizer to a folder or Hub ID with a tokenizer.json",
            "model.tokenizer",
            class_name=type(tokenizer).__name__,
        )


def find_too_narrow(
    tokenizer: Any, questions: list[str], contexts: list[str], max_length: int, doc_stride: int
) -> tuple[int, int] | None:
    """The first question that leaves a long context less room than two windows must share, and that room in tokens.

    The Rust tokenizers would abort there instead of raising an error.
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
