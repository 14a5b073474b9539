"""Row lengths before any limit: one pass of the task's own encoding, whose counts are cached and mapped."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.places import cache_folder
from backend.data.batches import CHOICE_LENGTHS
from backend.data.cache import open_or_write
from backend.data.features import Features
from backend.data.fingerprint import fingerprint
from backend.data.row_cache import map_array, read_facts
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.preflight.session import FeatureSession
from backend.tasks.task import Limit, encode_features, limits
from backend.tokenizers.vocabulary.pieces import vocabulary_of

VERSION = 2
UNLIMITED = 1_000_000
"""Tokens; more than any limit may be."""
Source = tuple[np.ndarray, Iterator[pa.RecordBatch]]
"""Numbers of rows, and their features, whose `row` counts places among these numbers."""


@dataclass(frozen=True)
class RowCounts:
    """Per row, (rows,) int32 each: what it needs under each limit, its tokens, and the unknown ones."""

    needed: tuple[np.ndarray, ...]
    """In the order of the task's limits; -1 for a row that gives nothing to bound, such as one without target."""
    tokens: np.ndarray
    unknown: np.ndarray
    cached: bool = False


def count_tokens(session: FeatureSession, rows: Rows, features: Features, report: Report) -> RowCounts:
    """The counts of all rows, cached if possible. Only rows that a limit truncates are tokenised again."""
    free, bounds = remove_limits(session), limits(session.task)
    key = fingerprint("lengths", VERSION, free.identity(rows), [bound.column for bound in bounds])
    written: list[Path] = []

    def write(folder: Path) -> None:
        written.append(folder)
        unknown = vocabulary_of(session.tokenizer).unknown
        _write(folder, _sources(session, free, rows, features), len(rows), free.task, unknown, report)

    names = [*(f"needed_{number}" for number in range(len(bounds))), "tokens", "unknown"]
    arrays = open_or_write(cache_folder() / "lengths" / key, lambda folder: _open(folder, names), write, report)
    return RowCounts(tuple(arrays[:-2]), arrays[-2], arrays[-1], cached=not written)


def remove_limits(session: FeatureSession) -> FeatureSession:
    """The same without any truncation."""
    own = session.task.settings
    there = {bound.setting for bound in limits(session.task)} & type(own).model_fields.keys()
    settings = own.model_copy(update=dict.fromkeys(there))
    task = type(session.task)(settings)
    return replace(session, task=task, facts={**session.facts, "max_length": UNLIMITED})


def _sources(session: FeatureSession, free: FeatureSession, rows: Rows, features: Features) -> Iterator[Source]:
    """Features with all tokens of every row: the existing ones, and new ones without a limit for truncated rows."""
    bounds, every = limits(session.task), np.arange(len(rows))
    if "segment" in features.table.column_names or not all(bound.fills for bound in bounds):
        yield every, _encode(free, rows)
        return
    yield every, iter(features.table.to_batches(max_chunksize=1000))
    cut = np.flatnonzero(_may_be_cut(session, rows, features))
    if bounds[0].beyond != "blocks" and len(cut):
        yield cut, _encode(free, rows.take(cut, "cut"))


def _encode(free: FeatureSession, rows: Rows) -> Iterator[pa.RecordBatch]:
    return encode_features(free.task, rows, free.columns, free.tokenizer, free.facts, to_train=False)


def _may_be_cut(session: FeatureSession, rows: Rows, features: Features) -> np.ndarray:
    """(rows,) bool, whether a limit may have truncated the row: it is as long as the limit, or in several windows."""
    owner, settings = features.scalars["row"], session.task.settings
    found = np.bincount(owner, minlength=len(rows)) > 1
    for bound in limits(session.task):
        limit = getattr(settings, bound.setting, None) or session.facts["max_length"]
        if bound.column == "input_ids" and CHOICE_LENGTHS in features.lists:
            choices = pc.list_flatten(features.table[CHOICE_LENGTHS]).to_numpy()
            lengths = choices.reshape(len(features), -1).max(axis=1)
        elif bound.column in features.lists:
            lengths = features.lists[bound.column].lengths
        else:
            continue
        found[owner[lengths >= limit]] = True
    return found


def _write(folder: Path, sources: Iterator[Source], rows: int, task: Any, unknown: int | None, report: Report) -> None:
    bounds: tuple[Limit, ...] = limits(task)
    names = [*(f"needed_{number}" for number in range(len(bounds))), "tokens", "unknown"]
    arrays = {name: np.memmap(folder / f"{name}.bin", np.int32, "w+", shape=(max(rows, 1),)) for name in names}
    for which, batches in sources:
        for name, one in arrays.items():
            one[which] = -1 if name.startswith("needed") else 0
        for batch in batches:
            if batch.num_rows:
                last = int(batch["row"][-1].as_py())
                _add(arrays, _restore_rows(batch, which), task, bounds, unknown)
                report(min(len(which), last + 1), len(which), "rows")
    for one in arrays.values():
        one.flush()
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    (folder / "facts.json").write_text(json.dumps({"rows": rows, "sizes": sizes}), encoding="utf-8")


def _restore_rows(batch: pa.RecordBatch, which: np.ndarray) -> pa.RecordBatch:
    """The batch with the original row numbers instead of indices into `which`."""
    renamed = batch.set_column(
        batch.schema.get_field_index("row"), "row", pa.array(which[batch["row"].to_numpy()].astype(np.int32))
    )
    if "spans_row" not in batch.schema.names:
        return renamed
    spans = batch["spans_row"]
    rows = pa.ListArray.from_arrays(
        spans.offsets.to_numpy() - spans.offsets[0].as_py(), pa.array(which[_values(spans)].astype(np.int32))
    )
    return renamed.set_column(batch.schema.get_field_index("spans_row"), "spans_row", rows)


def _add(
    arrays: Mapping[str, np.ndarray], batch: pa.RecordBatch, task: Any, bounds: tuple[Limit, ...], unknown: int | None
) -> None:
    """Add the counts of one batch of features; a row's tokens may be in several features."""
    owner, lengths = _runs(batch)
    np.add.at(arrays["tokens"], owner, lengths)
    lists = [batch[name] for name in dict.fromkeys(("input_ids", *(bound.column for bound in bounds)))]
    if unknown is not None:
        for column in lists:
            runs = lengths if column is lists[0] else _lengths(column)
            owners = owner if column is lists[0] else batch["row"].to_numpy()
            np.add.at(arrays["unknown"], owners, _occurrences(column, runs, unknown))
    for number, bound in enumerate(bounds):
        needed = arrays[f"needed_{number}"]
        if bound.beyond == "blocks":
            needed[owner] = np.maximum(needed[owner], 0)
            np.add.at(needed, owner, lengths)
        elif bound.column in batch.schema.names:
            np.maximum.at(needed, batch["row"].to_numpy(), _smallest_limits(batch, task, bound))
            if bound.column != "input_ids":
                np.add.at(arrays["tokens"], batch["row"].to_numpy(), _lengths(batch[bound.column]))


def _runs(batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """Row and length of every run of tokens from one row."""
    if "spans_row" in batch.schema.names:
        return _values(batch["spans_row"]), _values(batch["spans_length"])
    return batch["row"].to_numpy(), _lengths(batch["input_ids"])


def _occurrences(column: pa.ListArray, runs: np.ndarray, wanted: int) -> np.ndarray:
    """(runs,) how often an id occurs in each run of a column's values."""
    before = np.concatenate([[0], np.cumsum(_values(column) == wanted)])
    ends = np.cumsum(runs)
    return before[ends] - before[ends - runs]


def _smallest_limits(batch: pa.RecordBatch, task: Any, bound: Limit) -> np.ndarray:
    """(features,) the smallest limit that truncates nothing of a feature."""
    if bound.column == "input_ids" and CHOICE_LENGTHS in batch.schema.names:
        choices = batch[CHOICE_LENGTHS]
        return np.maximum.reduceat(_values(choices), np.cumsum(_lengths(choices)) - _lengths(choices))
    least = getattr(task, "least_limits", None)
    return least(batch) if least is not None and bound.column == "input_ids" else _lengths(batch[bound.column])


def _values(column: pa.ListArray) -> np.ndarray:
    return column.flatten().to_numpy()


def _lengths(column: pa.ListArray) -> np.ndarray:
    return np.diff(column.offsets.to_numpy())


def _open(folder: Path, names: list[str]) -> list[np.ndarray]:
    rows = read_facts(folder)["rows"]
    return [map_array(folder / f"{name}.bin", np.int32)[:rows] for name in names]
