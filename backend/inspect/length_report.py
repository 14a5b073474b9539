"""Answers about lengths: which rows a limit truncates, what the tokenizer does not know, and what padding costs."""

import time

import numpy as np
import pyarrow.compute as pc

from backend.contract.messages import message
from backend.contract.rpc.training_data import (
    LengthMeasure,
    Loss,
    PaddingRule,
    TrainingLengths,
    UnknownRow,
    UnknownTokens,
)
from backend.data.batches import CHOICE_LENGTHS
from backend.data.lengths import PaddedLengths, count_in_order, count_lengths, count_unshuffled, quantiles, usual_limits
from backend.data.order import DataOrder
from backend.data.rows import Rows
from backend.inspect.batch_preview import BatchPreview, Stage, row_text
from backend.inspect.messages import limit_notes, limit_sentence, suggest_limit, unknown_sentence
from backend.inspect.row_lengths import RowCounts, count_tokens
from backend.models.config import longest_sequence
from backend.models.inspection import read_config
from backend.tasks.task import Limit, limits
from backend.tokenizers.vocabulary.pieces import vocabulary_of

WORST = 20


def training_lengths(preview: BatchPreview, stage: Stage) -> TrainingLengths:
    """The lengths in a preview's split, measured against the settings."""
    started = time.perf_counter()
    session, features = preview.session, preview.features
    counts = count_tokens(session, preview.rows, features, stage("measuring lengths"))
    bounds = limits(session.task)
    measures = [_measure(preview, bound, needed) for bound, needed in zip(bounds, counts.needed, strict=True)]
    training = preview.spec.training
    return TrainingLengths(
        name=preview.spec.name,
        task=preview.spec.task["type"],
        task_title=session.task.title,
        tokenizer=preview.spec.model.tokenizer or preview.spec.model.name_or_path,
        split=preview.split,
        splits=list(preview.splits.rows),
        rows=len(preview.rows),
        features=len(features),
        tokens=int(features.lengths.sum(dtype=np.int64)),
        batch_size=training.batch_size,
        steps_per_epoch=preview.order.steps_per_epoch if preview.order else -(-len(features) // training.batch_size),
        measures=measures,
        unknown=_unknown(preview, counts),
        padding=_padding(preview),
        notes=limit_notes(preview, measures),
        seconds=time.perf_counter() - started,
        cached=features.cached and counts.cached,
    )


def _measure(preview: BatchPreview, bound: Limit, needed: np.ndarray) -> LengthMeasure:
    """Measure one limit of the task against what every row needs."""
    own = getattr(preview.session.task.settings, bound.setting, None)
    limit = own or preview.session.facts["max_length"]
    most = longest_sequence(read_config(preview.model.folder)) or 1_000_000
    found = np.asarray(needed[needed >= 0])
    lengths, rows = count_lengths(found)
    ascending = np.sort(found)
    losses = [
        Loss(one, beyond, beyond / max(1, len(found)))
        for one in usual_limits(int(ascending[-1]) if len(found) else 0, limit, most)
        for beyond in [len(found) - int(np.searchsorted(ascending, one, side="right"))]
    ]
    better = suggest_limit(bound.beyond, limit, losses)
    return LengthMeasure(
        what=bound.what,
        setting=f"task.{bound.setting}",
        limit=limit,
        limit_is_set=own is not None,
        beyond=bound.beyond,
        lengths=lengths.tolist(),
        counts=rows.tolist(),
        mean=float(found.mean()) if len(found) else 0.0,
        quantiles=quantiles(ascending),
        losses=losses,
        sentence=limit_sentence(bound, limit, losses, better, int(ascending[-1]) if len(found) else 0),
        suggestion=better,
    )


def _unknown(preview: BatchPreview, counts: RowCounts) -> UnknownTokens:
    tokenizer = preview.session.tokenizer
    number = vocabulary_of(tokenizer).unknown
    token = "" if number is None else str(tokenizer.convert_ids_to_tokens(number))
    tokens, unknown = int(counts.tokens.sum(dtype=np.int64)), int(counts.unknown.sum(dtype=np.int64))
    rows = int(np.count_nonzero(counts.unknown))
    return UnknownTokens(
        token=token,
        tokens=tokens,
        unknown=unknown,
        rows=rows,
        worst=_rank_unknown_rows(preview, counts),
        sentence=unknown_sentence(token, tokens, unknown, rows, len(preview.rows)),
    )


def _rank_unknown_rows(preview: BatchPreview, counts: RowCounts) -> list[UnknownRow]:
    """Sort by the share of unknown tokens, largest first, then by their number."""
    there = np.flatnonzero(counts.unknown)
    share = counts.unknown[there] / np.maximum(1, counts.tokens[there])
    worst = there[np.lexsort((there, -counts.unknown[there], -share))[:WORST]]
    rows: Rows = preview.rows
    packed = "segment" in preview.features.table.column_names
    return [
        UnknownRow(
            row,
            -1 if packed else int(preview.features_of(row)[0]),
            rows.place(row),
            int(counts.tokens[row]),
            int(counts.unknown[row]),
            row_text(preview, row),
        )
        for row in worst.tolist()
    ]


def _padding(preview: BatchPreview) -> list[PaddingRule]:
    """The padding cost of each way of batching, over whole batches."""
    training, features, order = preview.spec.training, preview.features, preview.order
    if order is None:
        return []
    widths = _widths(preview)
    used = sum(one.count_fixed(0)[0] for one in widths)
    ordered = {
        buckets: DataOrder(
            features.lengths, training.batch_size, training.seed, features.fingerprint, buckets, training.drop_last
        )
        for buckets in (True, False)
    }
    fixed = [one.count_fixed(limit) for one, limit in zip(widths, _limits(preview), strict=True)]
    found = {
        "length_buckets": count_in_order(widths, ordered[True]),
        "random": count_in_order(widths, ordered[False]),
        "in_order": count_unshuffled(widths, len(features), training.batch_size),
        "fixed": (sum(one[0] for one in fixed), sum(one[1] for one in fixed)),
    }
    settings = {"length_buckets": True, "random": False}
    rules = []
    for name, (data, computed) in found.items():
        padding = 1 - data / computed if computed else 0.0
        rules.append(
            PaddingRule(
                name=name,  # type: ignore[arg-type]
                title=_TITLES[name],
                padding=padding,
                tokens=round(used / (1 - padding)) if padding < 1 else 0,
                chosen=settings.get(name) is training.length_buckets,
                setting={"training.length_buckets": settings[name]} if name in settings else {},
            )
        )
    return rules


_TITLES = {
    "length_buckets": message("Rows grouped by length"),
    "random": message("Rows in random order"),
    "in_order": message("Rows in their original order"),
    "fixed": message("Every row padded to the limit"),
}


def _limits(preview: BatchPreview) -> list[int]:
    facts, settings = preview.session.facts, preview.session.task.settings
    own = [getattr(settings, bound.setting, None) or facts["max_length"] for bound in limits(preview.session.task)]
    return own[: len(_widths(preview))]


def _widths(preview: BatchPreview) -> list[PaddedLengths]:
    """The padded lengths of the input and, for text to text, the targets."""
    lists, head = preview.features.lists, preview.session.task.head
    multiple = preview.session.length_multiple
    limit = preview.session.facts["max_length"]
    if head.targets == "choice":
        choices = pc.list_flatten(preview.features.table[CHOICE_LENGTHS]).to_numpy()
        count = len(choices) // max(1, len(preview.features))
        longest = choices.reshape(-1, count).max(axis=1)
        return [PaddedLengths(longest, preview.features.lengths, count, multiple, limit)]
    found = [PaddedLengths(preview.features.lengths, preview.features.lengths, 1, multiple, limit)]
    if head.targets == "sequence" and "labels" in lists:
        found.append(PaddedLengths(lists["labels"].lengths, lists["labels"].lengths, 1, multiple, None))
    return found
