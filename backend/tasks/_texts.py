"""Texts and pairs of texts as task input: their columns, rows that lack them, and their tokens."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.data.rows import Rows
from backend.tasks.task import Columns, iterate_chunks

# The first text of a pair is matched before the names that either text may have (QNLI: question, sentence).
TEXT_NAMES = [
    "text", "sentence1", "question", "question1", "premise", "#1 string", "sentence", "review", "content", "comment",
    "tweet",
]  # fmt: skip
PAIR_NAMES = [
    "text_pair", "sentence2", "passage", "hypothesis", "hypo", "text2", "question2", "#2 string", "sentence",
]  # fmt: skip


def text_columns(what: str) -> tuple[Column, Column]:
    """The roles `text` and `text_pair`; `what` describes the use of the text, for example `The text to classify.`"""
    return (
        Column("text", "Text", what, usual_names=TEXT_NAMES, holds="text"),
        Column(
            "text_pair",
            "Second text",
            "The second text of a pair.",
            required=False,
            usual_names=PAIR_NAMES,
            holds="text",
        ),
    )


def missing_text(rows: Rows, columns: Columns) -> np.ndarray:
    """(rows,) bool, where text is missing; "None", "NA" and "null" are texts."""
    return is_blank(rows.table[columns["text"]])


def is_blank(column: pa.ChunkedArray) -> np.ndarray:
    """(rows,) bool, where a cell is missing, empty or white space; tables mark a missing number by NaN too."""
    # Chunk by chunk: the column may be larger than the memory, and so would be its copy.
    each = (_is_blank(pa.chunked_array([one])).to_numpy() for one in column.chunks)
    return np.concatenate([np.zeros(0, dtype=bool), *each])


def _is_blank(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_floating(column.type):
        return pc.is_null(column, nan_is_null=True)
    return pc.equal(pc.utf8_trim_whitespace(strings(column)), "")


def list_reasons(found: Mapping[str, np.ndarray]) -> list[tuple[int, str]]:
    """Row and reason in row order, from reason → (rows,) bool; if several apply, the last one is given."""
    by_row: dict[int, str] = {}
    for reason, rows in found.items():
        by_row |= dict.fromkeys(np.flatnonzero(rows).tolist(), reason)
    return sorted(by_row.items())


def strings(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The cells as text, missing ones empty. Raises InputError if they are lists, bytes or the like."""
    if pa.types.is_nested(column.type):
        example = str(next((cell for cell in column.to_pylist() if cell), "[]"))[:60]
        raise InputError(
            "data.columns: the column should contain text but contains lists or mappings, such as "
            "{example}; choose another column, or write each cell as text",
            "data.columns",
            example=example,
        )
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        return pc.fill_null(column.cast(pa.string()), "")
    except pa.ArrowException:  # such as bytes that are not UTF-8
        raise InputError(
            "data.columns: the column should contain text but contains {type} that cannot be read as "
            "text; choose another column, or write each cell as text",
            "data.columns",
            type=column.type,
        ) from None


def encode(
    rows: Rows, columns: Columns, tokenizer: Any, max_length: int, labels: np.ndarray
) -> Iterator[pa.RecordBatch]:
    """One feature per text or pair, truncated to `max_length` tokens; `labels` are passed through.

    Those of (rows,) as `labels`, those of (rows, labels) as `has_label`.
    """
    texts = rows.table[columns["text"]]
    pairs = rows.table[columns["text_pair"]] if "text_pair" in columns else None
    for chunk in iterate_chunks(len(rows)):
        part = slice(chunk.start, chunk.stop)
        encoded = tokenizer(
            strings(texts[part]).to_pylist(),
            strings(pairs[part]).to_pylist() if pairs is not None else None,
            truncation="longest_first",
            max_length=max_length,
            return_attention_mask=False,
        )
        arrays = {
            "row": pa.array(np.arange(chunk.start, chunk.stop, dtype=np.int32)),
            "part": pa.array(np.zeros(len(chunk), dtype=np.int32)),
            "input_ids": pa.array(encoded["input_ids"], pa.list_(pa.int32())),
            **_targets(labels[part]),
        }
        if "token_type_ids" in encoded:
            arrays["token_type_ids"] = pa.array(encoded["token_type_ids"], pa.list_(pa.int8()))
        yield pa.RecordBatch.from_pydict(arrays)


def _targets(labels: np.ndarray) -> dict[str, pa.Array]:
    if labels.ndim == 1:
        return {"labels": pa.array(labels)}
    return {"has_label": pa.FixedSizeListArray.from_arrays(pa.array(labels.reshape(-1)), labels.shape[1])}


def label_values(rows: Rows, columns: Columns) -> pa.ChunkedArray | None:
    """The column of labels, or None if these rows have none."""
    name = columns.get("label")
    return rows.table[name] if name in rows.table.column_names else None
