"""Owns the sentence on what truncation left out, from the columns `cut_…` in which a task counts it."""

import pyarrow as pa
import pyarrow.compute as pc

COUNTS = "cut_"
"""A feature's column `cut_target` (int32) says how many tokens of its target were left out."""


def truncation_notes(batches: list[pa.RecordBatch], rows: str) -> list[str]:
    """One sentence for each part that was cut anywhere; `rows` says which rows these are, such as `training rows`."""
    names = [name for name in batches[0].schema.names if name.startswith(COUNTS)] if batches else []
    notes = []
    for name in names:
        features = pa.Table.from_batches([batch.select([name]) for batch in batches])
        cut = pc.sum(pc.greater(features[name], 0)).as_py() or 0
        if cut:
            notes.append(
                f"{cut:,} of {features.num_rows:,} {rows} lose the end of their {name.removeprefix(COUNTS)}, "
                f"{pc.sum(features[name]).as_py():,} tokens in all: they are longer than the task's limit."
            )
    return notes
