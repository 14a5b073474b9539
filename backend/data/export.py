"""Exports features for other programs: padded numpy arrays, or Parquet with a list for each feature."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

from backend.contract.heads import IGNORE, Head
from backend.data.batches import Batch, collate, decoder_inputs
from backend.data.features import Features
from backend.data.sources.source import Report

_CHUNK = 1024
_FILLERS = {"labels": IGNORE, "p_mask": 1}
_SEQ2SEQ_NAMES = {"input_ids": "source_ids", "attention_mask": "source_mask"}


def write_parquet(features: Features, path: Path, report: Report) -> list[Path]:
    """Write all columns unchanged, some thousand features per row group."""
    done = 0
    with parquet.ParquetWriter(path, features.table.schema) as writer:
        for batch in features.table.to_batches(max_chunksize=_CHUNK * 8):
            writer.write_batch(batch)
            done += batch.num_rows
            report(done, len(features), "features")
    return [path]


def write_arrays(
    features: Features,
    folder: Path,
    split: str,
    head: Head,
    pad_token_id: int,
    decoder_start_token_id: int | None,
    report: Report,
) -> list[Path]:
    """`{split}_{name}.npy`, one row per feature, padded on the right to the longest feature of the split.

    A batch's arrays (`backend.contract.heads`), and `row` and `part`, the origin of each feature. For
    SEQ2SEQ_LM they are called `source_ids`, `source_mask`, `labels`, plus `target_ids` (labels with
    padding for -100) and, if the model has a start token, `decoder_input_ids` (the labels shifted right by one).
    """
    total = len(features)
    shapes: dict[str, tuple[int, ...]] = {}
    kinds: dict[str, np.dtype] = {}
    for start, batch in _batches(features, head, pad_token_id, decoder_start_token_id):
        for name, array in batch.items():
            shapes[name] = tuple(np.maximum(shapes.get(name, array.shape[1:]), array.shape[1:]).tolist())
            kinds[name] = array.dtype
        report(start, 2 * total, "features")
    paths = {name: folder / f"{split}_{name}.npy" for name in shapes}
    files = {
        name: np.lib.format.open_memmap(path, "w+", kinds[name], (total, *shapes[name])) for name, path in paths.items()
    }
    for start, batch in _batches(features, head, pad_token_id, decoder_start_token_id):
        for name, array in batch.items():
            rows = slice(start, start + len(array))
            files[name][rows] = (
                pad_token_id if name.endswith("_ids") and name != "token_type_ids" else _FILLERS.get(name, 0)
            )
            files[name][(rows, *(slice(length) for length in array.shape[1:]))] = array
        report(total + start, 2 * total, "features")
    for file in files.values():
        file.flush()
    report(2 * total, 2 * total, "features")
    return list(paths.values())


def _batches(
    features: Features, head: Head, pad_token_id: int, decoder_start_token_id: int | None
) -> Iterator[tuple[int, Batch]]:
    """The index of the first feature, and the arrays under their file names."""
    for start in range(0, len(features), _CHUNK):
        indices = np.arange(start, min(start + _CHUNK, len(features)))
        batch = collate(features, indices, pad_token_id=pad_token_id, head=head, length_multiple=1)
        del batch["row_valid"]  # there are no filler rows
        batch |= {name: features.scalars[name][indices] for name in ("row", "part")}
        if head is Head.SEQ2SEQ_LM:
            batch = _seq2seq(batch, pad_token_id, decoder_start_token_id)
        yield start, batch


def _seq2seq(batch: Batch, pad_token_id: int, decoder_start_token_id: int | None) -> Batch:
    batch = {_SEQ2SEQ_NAMES.get(name, name): array for name, array in batch.items()}
    if "labels" in batch:
        targets = np.where(batch["labels"] == IGNORE, pad_token_id, batch["labels"])
        batch["target_ids"] = targets
        if decoder_start_token_id is not None:
            batch["decoder_input_ids"] = decoder_inputs(batch["labels"], decoder_start_token_id, pad_token_id)
    return batch
