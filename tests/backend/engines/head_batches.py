"""Makes a batch of random rows for every head, and cuts a step into parts."""

import numpy as np

from backend.contract.heads import IGNORE, Head, HeadFacts
from backend.engines.engine import Batch
from tests.backend.engines.example_batches import VOCABULARY

LABELLED = {Head.SEQUENCE_CLASSIFICATION, Head.MULTI_LABEL_CLASSIFICATION, Head.TOKEN_CLASSIFICATION}
CHOICES = 3


def facts(head: Head) -> HeadFacts:
    """The head, with three labels where it has some."""
    return HeadFacts(head, ("a", "b", "c") if head in LABELLED else ())


def head_batch(head: Head, rows: int, seed: int = 0, padding: int = 0, end: int | None = None) -> Batch:
    """Rows of 4 to 12 random tokens with the head's targets; `end` stands last in every row where given."""
    rng = np.random.default_rng(seed)
    shape = (rows, CHOICES) if head is Head.MULTIPLE_CHOICE else (rows,)
    lengths = rng.integers(4, 13, shape)
    mask = (np.arange(lengths.max()) < lengths[..., None]).astype(np.int64)
    ids = np.where(mask, rng.integers(3, VOCABULARY - 1, mask.shape), padding)
    if end is not None:
        np.put_along_axis(ids, lengths[..., None] - 1, end, axis=-1)
    batch = {"input_ids": ids, "attention_mask": mask, "row_valid": np.ones(rows, dtype=bool)}
    return batch | _targets(head, batch, lengths, rng)


def _targets(head: Head, batch: Batch, lengths: np.ndarray, rng: np.random.Generator) -> Batch:
    ids, mask = batch["input_ids"], batch["attention_mask"] == 1
    rows = len(ids)
    match head:
        case Head.SEQUENCE_REGRESSION:
            return {"labels": rng.normal(size=rows).astype(np.float32)}
        case Head.MULTI_LABEL_CLASSIFICATION:
            return {"has_label": rng.integers(0, 2, (rows, 3)).astype(np.float32)}
        case Head.SEQUENCE_CLASSIFICATION | Head.MULTIPLE_CHOICE:
            return {"labels": rng.integers(0, 3, rows)}
        case Head.TOKEN_CLASSIFICATION:
            return {"labels": np.where(mask & (rng.random(mask.shape) < 0.8), rng.integers(0, 3, mask.shape), IGNORE)}
        case Head.CAUSAL_LM:
            return {"labels": np.where(mask, ids, IGNORE)}
        case Head.MASKED_LM:
            return {"labels": np.where(mask & (rng.random(mask.shape) < 0.3), ids, IGNORE)}
        case Head.SEQ2SEQ_LM:
            wanted = rng.integers(2, 9, rows)
            there = np.arange(wanted.max()) < wanted[:, None]
            return {"labels": np.where(there, rng.integers(3, VOCABULARY - 1, there.shape), IGNORE)}
        case _:
            return _spans(head, batch, lengths, rng)


def _spans(head: Head, batch: Batch, lengths: np.ndarray, rng: np.random.Generator) -> Batch:
    start = rng.integers(1, lengths)
    spans = {"start_positions": start, "end_positions": rng.integers(start, lengths)}
    if head is Head.QUESTION_ANSWERING:
        return spans
    closed = batch["attention_mask"] == 0
    closed[:, 0] = True
    np.put_along_axis(closed, start[:, None], False, axis=1)
    impossible = rng.integers(0, 2, len(start)).astype(np.float32)
    return spans | {"p_mask": closed.astype(np.int64), "cls_index": lengths - 1, "is_impossible": impossible}


def part_of(batch: Batch, rows: slice) -> Batch:
    """Some rows, every array cut to their own longest."""
    chosen = {name: array[rows] for name, array in batch.items()}
    length = int(chosen["attention_mask"].sum(axis=-1).max())
    width = chosen["attention_mask"].shape[-1]
    cut = {
        name: array[..., :length] if array.ndim > 1 and array.shape[-1] == width else array
        for name, array in chosen.items()
    }
    if "labels" in cut and cut["labels"].ndim == 2 and cut["labels"].shape[1] != length:  # those of an answer
        cut["labels"] = cut["labels"][:, : int((cut["labels"] != IGNORE).sum(axis=1).max())]
    return cut
