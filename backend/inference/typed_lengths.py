"""Owns what of typed rows a model does not read because they are longer than a limit, in sentences that quote the end."""

from typing import Any

import pyarrow as pa

from backend.data.rows import Rows
from backend.inspect.measured_lengths import UNLIMITED, without_limits
from backend.preflight.session import Session
from backend.tasks.task import Limit, encoded, limits

QUOTED = 48
"""Characters that are quoted of what is read last."""


def cut_sentences(session: Session, rows: Rows) -> list[str]:
    """One sentence for each row and limit that loses text, in the rows' order; nothing is written to the disk."""
    free = without_limits(session)
    batches = list(encoded(free.task, rows, free.columns, free.tokenizer, free.facts, to_train=False))
    sentences: list[tuple[int, str]] = []
    for bound in limits(session.task):
        own = getattr(session.task.settings, bound.setting, None) or session.facts["max_length"]
        for batch in batches:
            for row, length in _lengths(batch, bound):
                if bound.beyond != "windows" and own < length < UNLIMITED:
                    sentences.append((row, _sentence(session, rows, row, own, length)))
    return [sentence for _, sentence in sorted(sentences, key=lambda each: each[0])]


def _lengths(batch: pa.RecordBatch, bound: Limit) -> list[tuple[int, int]]:
    """Row and number of tokens of each feature; of choices the longest counts."""
    if bound.column not in batch.schema.names:
        return []
    owners = batch["row"].to_pylist()
    if "choice_lengths" in batch.schema.names:
        return list(zip(owners, map(max, batch["choice_lengths"].to_pylist()), strict=True))
    return list(zip(owners, map(len, batch[bound.column].to_pylist()), strict=True))


def _sentence(session: Session, rows: Rows, row: int, limit: int, length: int) -> str:
    where = f"Row {row + 1}" if len(rows) > 1 else "This"
    last = _last_words(session, rows, row, limit, length)
    read = f"it reads up to “{last}”" if last else "the rest is cut off"
    return f"{where} is {length:,} tokens long, and the model takes {limit:,}: {read}."


def _last_words(session: Session, rows: Rows, row: int, limit: int, length: int) -> str:
    """The end of what is read of a single text; nothing where that cannot be said, as of pairs."""
    texts = [str(value) for name in rows.table.column_names if isinstance(value := rows.table[name][row].as_py(), str)]
    tokenizer: Any = session.tokenizer
    if len(texts) != 1 or not getattr(tokenizer, "is_fast", False) or tokenizer.truncation_side != "right":
        return ""
    offsets = tokenizer(texts[0], add_special_tokens=False, return_offsets_mapping=True, truncation=False)
    ends = [end for _, end in offsets["offset_mapping"]]
    kept = limit - (length - len(ends))  # the special tokens stay
    if not 0 < kept < len(ends):
        return ""
    read = texts[0][: ends[kept - 1]]
    return read if len(read) <= QUOTED else f"…{read[-QUOTED:].lstrip()}"
