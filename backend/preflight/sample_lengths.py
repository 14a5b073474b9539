"""Tokenises some training rows to estimate all lengths; cached, because opening a tokenizer takes seconds."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from backend.contract.messages import message
from backend.contract.places import cache_folder
from backend.contract.spec import RunSpec
from backend.contract.versions import installed_versions
from backend.data.cache import DamagedCacheError, open_or_write
from backend.data.features import are_made
from backend.data.fingerprint import fingerprint
from backend.data.row_cache import map_array, read_facts
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.models.location import ModelLocation
from backend.preflight.datasets import Splits
from backend.preflight.messages import truncation_notes
from backend.preflight.session import FeatureSession, open_session
from backend.tasks.task import encode_features
from backend.tokenizers.loading import files_fingerprint

SAMPLE_ROWS = 2000
"""Rows that are tokenised to estimate lengths; the rest is taken to be alike."""
_LIBRARIES = ("burnish", "transformers", "tokenizers", "sentencepiece")
"""What decides lengths beside the files."""


@dataclass(frozen=True)
class SampleLengths:
    """The result of the sample."""

    lengths: np.ndarray
    """(features,), tokens of each."""
    per_row: float
    """Features."""
    distinct: int
    """Different tokens among them."""
    seconds: float
    """For a row, as it was measured."""
    cut: list[str]
    """What truncation leaves out, in sentences."""
    features: dict[str, str]
    """Split → the name under which the cache has its features once they are made."""

    def count_features(self, splits: Splits) -> dict[str, int]:
        """Features of the training data, and rows of the other splits."""
        counts = {split: len(rows) for split, rows in splits.rows.items()}
        return {**counts, "train": max(1, round(counts["train"] * self.per_row))}

    def made(self) -> frozenset[str]:
        """The splits whose features are in the cache now."""
        return frozenset(split for split, name in self.features.items() if are_made(name, cache_folder() / "features"))


def measure(spec: RunSpec, splits: Splits, model: ModelLocation, report: Report) -> SampleLengths:
    """Measure, or read from the cache if the same rows were tokenised by the same files before. Raises InputError."""
    files = files_fingerprint(spec.model.tokenizer or str(model.folder))
    if not files:
        return _tokenise(open_session(spec, splits, model, engine=None), splits)
    values = spec.model_dump(mode="json", include={"task": True, "model": {"tokenizer_options"}, "training": {"seed"}})
    rows = {split: one.fingerprint for split, one in splits.rows.items()}
    columns, versions = dict(splits.columns), installed_versions(_LIBRARIES)
    key = fingerprint("sample", values, rows, columns, splits.facts, files, versions)

    def write(folder: Path) -> None:
        _write(folder, _tokenise(open_session(spec, splits, model, engine=None), splits))

    return open_or_write(cache_folder() / "lengths" / key, _open, write, report)


def sample_rows(rows: Rows, at_least: int = SAMPLE_ROWS) -> Rows:
    """The sampled rows, spread over the data: the first ones may be the shortest.

    A larger sample has further rows between those of the usual one, so that every so-many-th of it is one of them.
    """
    between = -(-(max(at_least, SAMPLE_ROWS) - 1) // (SAMPLE_ROWS - 1))
    count = (SAMPLE_ROWS - 1) * between + 1
    if len(rows) <= count:
        return rows
    return rows.take(np.linspace(0, len(rows) - 1, count).astype(np.int64), f"{rows.fingerprint}-{count}")


def _tokenise(session: FeatureSession, splits: Splits) -> SampleLengths:
    train = splits.rows["train"]
    sample = sample_rows(train)
    started = time.perf_counter()
    batches = list(
        encode_features(session.task, sample, session.columns, session.tokenizer, session.facts, to_train=True)
    )
    seconds = (time.perf_counter() - started) / len(sample)
    lengths = [len(ids) for batch in batches for ids in batch.column("input_ids")]
    tokens = [batch.column("input_ids").flatten().to_numpy() for batch in batches]
    which = message("training rows") if len(sample) == len(train) else message("training rows that were checked")
    return SampleLengths(
        np.array(lengths or [1], np.int64),
        len(lengths) / len(sample),
        len(np.unique(np.concatenate(tokens))) if tokens else 0,
        seconds,
        truncation_notes(batches, which),
        {split: session.features_name(rows, to_train=split == "train") for split, rows in splits.rows.items()},
    )


def _write(folder: Path, sample: SampleLengths) -> None:
    sample.lengths.tofile(folder / "lengths.bin")
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    facts: dict[str, Any] = {
        name: getattr(sample, name) for name in ("per_row", "distinct", "seconds", "cut", "features")
    }
    (folder / "facts.json").write_text(json.dumps({**facts, "sizes": sizes}), encoding="utf-8")


def _open(folder: Path) -> SampleLengths:
    facts = read_facts(folder)
    del facts["sizes"]
    try:
        return SampleLengths(lengths=map_array(folder / "lengths.bin", np.int64), **facts)
    except (OSError, TypeError) as error:
        raise DamagedCacheError(str(folder)) from error
