"""Owns the ids that a model's embedding has a row for and no piece has: holes in a vocabulary, and rows to spare behind it."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from backend.models.model_files import read_table_if_sound

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

UNUSED_TYPE = "unused"
MOST = 1_000_000
"""Ids that are listed; a damaged file may name any number."""


def embedding_rows(tokenizer: "PreTrainedTokenizerBase") -> int:
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
    room = MOST
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
