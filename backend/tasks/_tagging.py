"""Owns what token classification does with the tags of whole splits: their scheme, their labels, and predicted ones."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE
from backend.data.rows import Rows
from backend.tasks import _entities
from backend.tasks._entities import Scheme
from backend.tasks._token_classification_features import Tags
from backend.tasks.task import Facts

MAX_ODD = 0.1
"""Where fewer of the tags than this lack a prefix, they are mistakes; where more do, the tags follow no scheme."""


def scheme_of(wanted: str, tags: Tags, rows: Rows, usual: Scheme | None = None) -> Scheme:
    """The scheme of these tags: as `wanted`, or as they look; `usual` (the training data's) where they leave it open.

    Raises InputError for a tag that does not go with the others.
    """
    if wanted == "none" or usual == "none":
        return "none"
    odd = _entities.strangers(tags.names)
    if odd:
        is_odd = np.isin(tags.ids, [tags.names.index(one) for one in odd])
        marked = np.isin(tags.ids, [number for number, name in enumerate(tags.names) if name != "O"])
        if wanted == "auto" and usual is None and is_odd.sum() >= MAX_ODD * marked.sum():
            return "none"
        raise _stranger(tags, rows, int(np.argmax(is_odd)))
    if wanted != "auto":
        return wanted  # pyright: ignore[reportReturnType]  the settings allow nothing else
    if not set(tags.names) - {"O"}:
        return usual or "none"
    return _entities.scheme_of(tags.names, tags.ids, tags.first, usual or "BIO")


def _stranger(tags: Tags, rows: Rows, word: int) -> InputError:
    return InputError(
        f"data.columns.tags: {rows.place(tags.row_of(word))} has the tag {tags.names[tags.ids[word]]!r}, which is none "
        "of BIO, IOB1, IOBES or BILOU, as others are; correct it, or set task.scheme: none",
        "data.columns.tags",
    )


def scheme_of_labels(labels: Sequence[str]) -> Scheme:
    """The scheme that a model's labels follow, as far as their names tell."""
    if _entities.strangers(labels):
        return "none"
    told = _entities.scheme_of_names(labels)
    return told or ("BIO" if any(label.startswith("B") for label in labels) else "IOB1")


def spelled(tags: Tags, scheme: Scheme, wanted: Scheme) -> Tags:
    """The same entities in another scheme, or in their own without offences; tags without a scheme as they are."""
    if "none" in (scheme, wanted):
        return tags
    parts = _entities.taken_apart(tags.names, tags.ids, tags.first).written(wanted)
    names, ids = parts.tags(wanted)
    return replace(tags, names=names, ids=np.where(tags.ids >= 0, ids, -1).astype(np.int32))


def offending(tags: Tags, scheme: Scheme) -> np.ndarray:
    """Numbers of the words whose tags do not follow the scheme."""
    if scheme == "none":
        return np.zeros(0, np.int64)
    parts = _entities.taken_apart(tags.names, tags.ids, tags.first)
    return np.flatnonzero(parts.written(scheme).prefixes != parts.prefixes)


def outside(tags: Tags) -> str:
    """The tag of a word that is not seen: O, or the most frequent one where there is no O."""
    if "O" in tags.used():
        return "O"
    return tags.names[int(np.bincount(tags.ids[tags.ids >= 0]).argmax())]


def label_ids(tags: Tags, scheme: Scheme, facts: Facts) -> tuple[np.ndarray, np.ndarray]:
    """(words,) each: the label of a word's first token and of its later ones, where B goes on as I; IGNORE if unknown."""
    labels = {label: number for number, label in enumerate(facts["labels"])}
    own = spelled(tags, scheme, facts["learned"])
    first = [labels.get(name, IGNORE) for name in own.names]
    later = [labels.get(f"I{name[1:]}", label) for name, label in zip(own.names, first, strict=True)]
    goes_on = [name[0] == "B" and facts["learned"] != "none" for name in own.names]
    later = [other if begun else one for one, other, begun in zip(first, later, goes_on, strict=True)]
    # One more for -1, the id of a word without tag.
    return np.array([*first, IGNORE])[own.ids], np.array([*later, IGNORE])[own.ids]


def guessed(logits: list[np.ndarray], features: pa.Table, tags: Tags, facts: Facts) -> tuple[Tags, np.ndarray]:
    """The likeliest label of every word, and (rows,) how many words no token stood for, which are outside."""
    labels = facts["labels"]
    words, rows = _flat(features, "word")
    predicts = words >= 0
    places = (tags.starts[rows] + words)[predicts]
    ids = np.full(len(tags.ids), labels.index(facts["outside"]) if facts["outside"] in labels else 0, np.int32)
    if len(places):
        ids[places] = np.concatenate(logits)[predicts].argmax(axis=1)
    seen = np.bincount(rows[predicts], minlength=len(tags.words))
    guess = Tags(tuple(labels), ids, tags.words, np.ones(len(tags.words), dtype=bool))
    return guess, tags.words - seen


def losses(logits: list[np.ndarray], features: pa.Table, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows,) each: the summed cross-entropy of a row's targets, and their number."""
    labels, row_of = _flat(features, "labels")
    known = np.flatnonzero(labels >= 0)
    if not len(known):
        return np.zeros(rows), np.zeros(rows)
    chosen = np.concatenate(logits)[known].astype(np.float64)  # (targets, labels)
    loss = np.logaddexp.reduce(chosen, axis=1) - chosen[np.arange(len(known)), labels[known]]
    return np.bincount(row_of[known], loss, rows), np.bincount(row_of[known], minlength=rows).astype(np.float64)


def conll(words: Iterable[list[str]], predicted: Tags, actual: Tags) -> str:
    """One word a line with its actual tag, where any is known, and its predicted one; tabs between, a blank line after
    each sentence."""  # fmt: skip
    has_actual = bool(actual.tagged.any())
    lines: list[str] = []
    for sentence, tags, known in zip(words, predicted.lists(), actual.lists(), strict=True):
        columns: list[Any] = [[" ".join(word.split()) for word in sentence]]
        columns += [known or ["_"] * len(sentence)] if has_actual else []
        lines += map("\t".join, zip(*columns, tags or [], strict=True))
        lines.append("")
    return "\n".join([*lines, ""])


def _flat(features: pa.Table, name: str) -> tuple[np.ndarray, np.ndarray]:
    """All values of a list column, and the row that each belongs to."""
    column = features[name]
    rows = features["row"].to_numpy()
    return pc.list_flatten(column).to_numpy(), np.repeat(rows, pc.list_value_length(column).to_numpy())
