"""Cuts batches from features: padded numpy arrays as the head defines them, and the loss's denominator."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, Required, TypedDict, Unpack

import numpy as np
import pyarrow.compute as pc

from backend.contract.heads import IGNORE, Head
from backend.data.features import Features
from backend.data.order import DataOrder

__all__ = [
    "CHOICE_LENGTHS",
    "PER_TOKEN",
    "Batch",
    "DataOrder",
    "collate",
    "decoder_inputs",
    "evaluated_rows",
    "evaluation_batches",
    "longest_sequence",
    "micro_batches",
    "padded_length",
    "process_share",
    "prompt_batches",
    "restore_order",
    "targets",
]

Batch = dict[str, np.ndarray]
"""Arrays of one forward pass (`backend.contract.heads`)."""

Side = Literal["left", "right"]

Lists = dict[str, np.ndarray]
"""One feature's list columns by name, each (L,)."""
Draw = Callable[[int, Lists], Lists]
"""What an epoch changes of the feature with this number (masks); lengths stay."""

PER_TOKEN = frozenset({Head.CAUSAL_LM, Head.MASKED_LM, Head.TOKEN_CLASSIFICATION, Head.QUESTION_ANSWERING})
"""Heads whose outputs have one value for each token of the input; those of SEQ2SEQ_LM have one for each label."""

FEW = 0
"""As `length_multiple`: lengths in steps of a quarter of the power of two below them, at least eight. Up to 512 there are 20
of them and up to 2,048 there are 28; nothing is padded by more than a quarter, or by seven tokens."""

EVALUATED_TOKENS, WRITTEN_TOKENS = 1 << 12, 1 << 13
"""Of the rows that are evaluated together on a CPU: what more of them compute no longer fits into its cache. And of the texts
that are generated together on it, with their prompts."""


class Padding(TypedDict, total=False):
    """The settings of `collate`, passed through by functions that cut several batches."""

    pad_token_id: Required[int]
    head: Required[Head]
    length_multiple: int
    length_limit: int | None
    rows: int | None
    pad_side: Side
    draw: Draw | None


_LIST_FILLERS = {
    "token_type_ids": 0,
    "labels": IGNORE,
    "segment": 0,
    "position": 0,
    "p_mask": 1,
    "decoder_prompt": 0,
}
"""Columns beside `input_ids` that are padded into a batch, and with what."""
_OWN_LENGTH = frozenset({"labels", "decoder_prompt"})
"""Columns that for SEQ2SEQ_LM do not align with the input's tokens."""
CHOICE_LENGTHS = "choice_lengths"
"""The column that says how many tokens each choice of a MULTIPLE_CHOICE feature has."""
_SCALARS = ("labels", "start_positions", "end_positions", "cls_index", "is_impossible")


def collate(
    features: Features,
    indices: np.ndarray,
    *,
    pad_token_id: int,
    head: Head,
    length_multiple: int = 8,
    length_limit: int | None = None,
    rows: int | None = None,
    pad_side: Side = "right",
    draw: Draw | None = None,
) -> Batch:
    """Collate these features into one batch, in this order.

    It is as long as its longest feature (its longest choice, for MULTIPLE_CHOICE), rounded up to a multiple or to one of a
    `FEW` lengths, but not beyond `length_limit` (a model has only so many positions). `rows` adds filler rows up to a constant number, for engines that compile shapes.
    """
    lists = _take_lists(features, indices, draw)
    count = max(rows or 0, len(indices))
    if head.targets == "choice":
        return _choices(features, indices, lists, count, pad_token_id, length_multiple, length_limit, pad_side)
    lengths = features.lengths[indices]
    length = padded_length(int(lengths.max(initial=0)), length_multiple, length_limit)
    batch = {"attention_mask": _attention_mask(lengths, (count, length), pad_side)}
    for name, values in lists.items():
        width = length
        if head.targets == "sequence" and name in _OWN_LENGTH:
            width = padded_length(max(map(len, values), default=0), length_multiple, None)
        filler = pad_token_id if name == "input_ids" else _LIST_FILLERS[name]
        batch[name] = _pad(values, (count, width), filler, pad_side)
    return batch | _row_values(features, indices, count)


def longest_sequence(features: Features) -> int:
    """Tokens of the longest sequence that a model receives: a feature, one of its choices, or its target."""
    if CHOICE_LENGTHS in features.lists:
        return int(pc.max(pc.list_flatten(features.table[CHOICE_LENGTHS])).as_py())
    longest = int(features.lengths.max())
    return max(longest, int(features.lists["labels"].lengths.max())) if "labels" in features.lists else longest


def micro_batches(
    features: Features, indices: np.ndarray, micro_batch_size: int, **padding: Unpack[Padding]
) -> list[Batch]:
    """Cut a step's batch into parts of at most `micro_batch_size` rows; each row is in exactly one."""
    starts = range(0, len(indices), micro_batch_size)
    return [collate(features, indices[start : start + micro_batch_size], **padding) for start in starts]


def evaluation_batches(
    features: Features,
    batch_size: int,
    indices: np.ndarray | None = None,
    most_tokens: int | None = None,
    **padding: Unpack[Padding],
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Every feature (or those of `indices`) once, longest first, so that a lack of memory shows at once.

    A batch has `batch_size` rows, fewer if they are so long that all of them would have more than `most_tokens`.
    """
    chosen = np.arange(len(features)) if indices is None else indices
    chosen = chosen[np.argsort(-features.lengths[chosen], kind="stable")]
    for part in _cut(chosen, features.lengths, lambda length: evaluated_rows(batch_size, length, most_tokens)):
        yield part, collate(features, part, **padding)


def evaluated_rows(batch_size: int, length: int, most_tokens: int | None) -> int:
    """Rows of an evaluated batch whose longest row has `length` tokens: at least one, if there are any."""
    return batch_size if most_tokens is None else min(batch_size, max(1, most_tokens // max(1, length)))


def prompt_batches(
    features: Features, batch_size: int, new_tokens: int = 0, most_tokens: int | None = None, **padding: Unpack[Padding]
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Prompts for a model to continue or answer, longest first.

    For CAUSAL_LM the first `prompt_length` tokens of every feature, padded on the left so that all end together. A batch
    has `batch_size` rows, and more if they are so short that all of them, with `new_tokens` for each, have at most
    `most_tokens`, and no more than `batch_size` of the longest rows: a step of generation costs hardly more for more rows.
    """
    continues = padding["head"].targets == "next_token"
    lengths = features.scalars["prompt_length"] if continues else features.lengths
    order = np.argsort(-lengths, kind="stable")
    room = min(most_tokens or 0, batch_size * (int(lengths.max(initial=0)) + new_tokens))

    def rows(length: int) -> int:
        return max(batch_size, room // max(1, length + new_tokens))

    for part in _cut(order, lengths, rows):
        yield part, _prompts(features, part, lengths, **padding) if continues else collate(features, part, **padding)


def _prompts(features: Features, part: np.ndarray, lengths: np.ndarray, **padding: Unpack[Padding]) -> Batch:
    ids = [one[:length] for one, length in zip(features.lists["input_ids"].take(part), lengths[part], strict=True)]
    shape = (len(part), max(1, int(lengths[part].max(initial=0))))
    return {
        "input_ids": _pad(ids, shape, padding["pad_token_id"], "left"),
        "attention_mask": _attention_mask(lengths[part], shape, "left"),
        "row_valid": np.ones(len(part), dtype=bool),
    }


def _cut(order: np.ndarray, lengths: np.ndarray, rows: Callable[[int], int]) -> Iterator[np.ndarray]:
    """Parts of an order whose longest feature comes first, each of as many as `rows` says for its longest one."""
    start = 0
    while start < len(order):
        end = start + rows(int(lengths[order[start]]))
        yield order[start:end]
        start = end


def restore_order(
    answers: Iterable[tuple[np.ndarray, dict[str, np.ndarray]]],
    features: Features,
    head: Head,
    pad_side: Side = "right",
) -> dict[str, list[np.ndarray]]:
    """Outputs of evaluated batches, one array per feature in the features' order, without filler and padding."""
    lengths = _output_lengths(features, head)
    found: dict[str, dict[int, np.ndarray]] = {}
    for indices, outputs in answers:
        for name, values in outputs.items():
            by_feature = found.setdefault(name, {})
            for value, index in zip(values, indices.tolist(), strict=False):  # filler rows come last
                by_feature[index] = value if lengths is None else _strip_padding(value, int(lengths[index]), pad_side)
    return {name: [by_feature[index] for index in sorted(by_feature)] for name, by_feature in found.items()}


def _output_lengths(features: Features, head: Head) -> np.ndarray | None:
    if head in PER_TOKEN:
        return features.lengths
    return features.lists["labels"].lengths if head.targets == "sequence" and "labels" in features.lists else None


def targets(head: Head, batch: Batch, class_weights: tuple[float, ...] | None = None) -> float:
    """The denominator of a batch's summed loss: its targets, or the summed class weights of one class per row.

    The first token of CAUSAL_LM is never a target, because nothing precedes it.
    """
    valid = batch["row_valid"]
    if head.targets == "span":
        return float((valid & (batch["start_positions"] != IGNORE)).sum())
    if head.targets == "classes":
        return float((valid[:, None] & ~np.isnan(batch["has_label"])).sum())
    labels = batch["labels"]
    if head.targets in ("token", "next_token", "sequence"):
        counted = labels[:, 1:] if head.targets == "next_token" else labels
        return float(((counted != IGNORE) & valid[:, None]).sum())
    if head.targets == "number":
        return float((valid & ~np.isnan(labels)).sum())
    known = labels[valid & (labels != IGNORE)]
    return float(len(known) if class_weights is None else np.asarray(class_weights, dtype=np.float64)[known].sum())


def process_share(indices: np.ndarray, process: int, processes: int) -> np.ndarray:
    """One process's share of a step's features, taken round-robin so that lengths are shared evenly."""
    return indices[process::processes]


def padded_length(longest: int, multiple: int, limit: int | None) -> int:
    """The length of a batch whose longest row has `longest` tokens."""
    if multiple == FEW:
        multiple = max(8, 2 ** max(0, longest - 1).bit_length() // 8)
    rounded = max(1, -(-longest // multiple) * multiple)
    return rounded if limit is None else max(longest, min(rounded, limit), 1)


def _take_lists(features: Features, indices: np.ndarray, draw: Draw | None) -> dict[str, list[np.ndarray]]:
    """The lists that make a batch; `draw` receives all lists of a feature, so that it knows what it may change."""
    wanted = ("input_ids", *_LIST_FILLERS)
    names = features.lists.keys() if draw is not None else features.lists.keys() & {*wanted}
    lists = {name: features.lists[name].take(indices) for name in names}
    if draw is not None:
        each = [
            draw(int(index), {name: values[row] for name, values in lists.items()}) for row, index in enumerate(indices)
        ]
        lists = {name: [one[name] for one in each] for name in each[0]} if each else lists
    return {name: lists[name] for name in wanted if name in lists}


def _row_values(features: Features, indices: np.ndarray, count: int) -> Batch:
    scalars = {name: _fill(features.scalars[name][indices], count) for name in _SCALARS if name in features.scalars}
    if "has_label" in features.vectors:
        scalars["has_label"] = _fill(_known_labels(features.vectors["has_label"][indices]), count)
    return scalars | {"row_valid": np.arange(count) < len(indices)}


def _known_labels(stored: np.ndarray) -> np.ndarray:
    """(rows, labels) int8, -100 unknown → float32, NaN unknown."""
    return np.where(stored == IGNORE, np.float32(np.nan), stored).astype(np.float32)


def _choices(
    features: Features, indices: np.ndarray, lists: dict[str, list[np.ndarray]], count: int, pad_token_id: int,
    length_multiple: int, length_limit: int | None, side: Side,
) -> Batch:  # fmt: skip
    """A batch whose rows are choices, (B, K, L): a feature holds the tokens of its K choices, one after another."""
    choice_lengths = np.stack(features.lists[CHOICE_LENGTHS].take(indices))  # (rows, choices)
    choices = choice_lengths.shape[1]
    length = padded_length(int(choice_lengths.max(initial=0)), length_multiple, length_limit)
    shape = (count * choices, length)
    ends = np.cumsum(choice_lengths, axis=1)[:, :-1]
    batch = {"attention_mask": _attention_mask(choice_lengths.ravel(), shape, side)}
    for name, values in lists.items():
        each = [part for one, cuts in zip(values, ends, strict=True) for part in np.split(one, cuts)]
        batch[name] = _pad(each, shape, pad_token_id if name == "input_ids" else _LIST_FILLERS[name], side)
    batch = {name: array.reshape(count, choices, length) for name, array in batch.items()}
    return batch | _row_values(features, indices, count)


def _pad(values: list[np.ndarray], shape: tuple[int, int], filler: int, side: Side) -> np.ndarray:
    array = np.full(shape, filler, dtype=np.int64)
    width = shape[1]
    for row, one in enumerate(values):
        if side == "right":
            array[row, : len(one)] = one
        else:
            array[row, width - len(one) :] = one
    return array


def _attention_mask(lengths: np.ndarray, shape: tuple[int, int], side: Side) -> np.ndarray:
    # A row without tokens sees one token of padding: a softmax over nothing is NaN, and NaN × 0 is NaN in every sum.
    seen = np.ones(shape[0], dtype=np.int64)
    seen[: len(lengths)] = np.maximum(lengths, 1)
    places = np.arange(shape[1]) if side == "right" else np.arange(shape[1])[::-1]
    return (places < seen[:, None]).astype(np.int64)


def _fill(values: np.ndarray, count: int) -> np.ndarray:
    array = np.zeros((count, *values.shape[1:]), dtype=values.dtype)
    array[: len(values)] = values
    return array


def _strip_padding(values: np.ndarray, length: int, side: Side) -> np.ndarray:
    return values[:length] if side == "right" else values[len(values) - length :]


BEGINS_WITH_LAST = frozenset({"mbart"})
"""Architectures whose decoder starts with the last token of the labels (a language), whatever their configuration says."""


def decoder_inputs(labels: np.ndarray, start: int | None, padding: int) -> np.ndarray:
    """(rows, length) the start token, then all labels but the last; -100 becomes padding.

    Without a start token the last known label comes first (mBART, Liu et al. 2020).
    """
    known = np.where(labels == IGNORE, padding, labels)
    if start is not None:
        first = np.full((len(known), 1), start, known.dtype)
    else:
        last = np.maximum((known != padding).sum(axis=1, keepdims=True) - 1, 0)
        first = np.take_along_axis(known, last, axis=1)
    return np.concatenate([first, known[:, :-1]], axis=1)
