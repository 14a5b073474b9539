"""What the engine's tests feed it: settings, heads and batches of random tokens."""

from pathlib import Path

import numpy as np

from backend.contract.heads import IGNORE, Head, HeadFacts
from backend.contract.spec import ModelSection, TrainingSection
from backend.engines.engine import Batch, LoadRequest
from backend.engines.torch import Settings

BERT_TINY = Path(__file__).parents[3] / "resources" / "demo" / "bert-tiny"
VOCABULARY = 60
ROUNDING = {"cpu": 0.0, "cuda:0": 1e-4}
"""How far a resumed run may be from an uninterrupted one: CUDA's kernels add in any order."""


def loading(folder: Path, head: HeadFacts, training: TrainingSection | None = None, **changes) -> LoadRequest:
    """What an engine is asked to put in place, on one thread where it is PyTorch."""
    model = ModelSection(name_or_path=str(folder), **changes.pop("model", {}))
    values = {
        "devices": ("cpu",),
        "precision": "float32",
        "vocabulary": VOCABULARY,
        "pad_token_id": 0,
        "hardware": Settings(threads=1),
    }
    return LoadRequest(folder=folder, head=head, model=model, training=training, **(values | changes))


def classes(*labels: str, weights: tuple[float, ...] | None = None) -> HeadFacts:
    """A classification head."""
    return HeadFacts(Head.SEQUENCE_CLASSIFICATION, labels, weights)


LANGUAGE = HeadFacts(Head.CAUSAL_LM)


def text_batch(rows: int, seed: int = 0, vocabulary: int = VOCABULARY, labels: int = 2) -> Batch:
    """Rows of 3 to 12 random tokens with a label each, padded with 0."""
    return _padded(rows, seed, vocabulary) | {"labels": np.random.default_rng(seed).integers(0, labels, rows)}


def language_batch(rows: int, seed: int = 0) -> Batch:
    """Rows of 3 to 12 random tokens that are their own targets."""
    batch = _padded(rows, seed, VOCABULARY)
    return batch | {"labels": np.where(batch["attention_mask"] == 1, batch["input_ids"], IGNORE)}


def part(batch: Batch, rows: slice) -> Batch:
    """Some rows of a batch, cut to their own longest."""
    length = int(batch["attention_mask"][rows].sum(axis=1).max())
    return {name: array[rows, :length] if array.ndim == 2 else array[rows] for name, array in batch.items()}


def _padded(rows: int, seed: int, vocabulary: int) -> Batch:
    rng = np.random.default_rng(seed + 1000)
    lengths = rng.integers(3, 13, rows)
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    ids = rng.integers(3, vocabulary, mask.shape) * mask
    return {"input_ids": ids, "attention_mask": mask, "row_valid": np.ones(rows, dtype=bool)}
