"""Tagging schemes (BIO, IOB1, IOBES and BILOU): which entities tags make up, and how labels are written.

Entities are read as conlleval and seqeval's default mode read them, from any scheme and from tags that follow none:
an entity starts at B or S, after E or S, after O and when the type changes.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE
from backend.data.rows import Rows
from backend.tasks._token_classification_features import Tags
from backend.tasks.task import Facts

Scheme = Literal["BIO", "IOB1", "IOBES", "BILOU", "none"]

MAX_ODD = 0.1
"""Where fewer of the tags than this lack a prefix, they are mistakes; where more do, the tags follow no scheme."""

_TAG = re.compile(r"([BIESLU])(?:-(.*))?", re.DOTALL)
_LIKE = {"L": "E", "U": "S"}
_O, _B, _I, _E, _S = range(5)
_CODES = {"B": _B, "I": _I, "E": _E, "S": _S}
_LETTERS = {"BIO": "OBI", "IOB1": "OBI", "IOBES": "OBIES", "BILOU": "OBILU"}


def scheme_of(wanted: str, tags: Tags, rows: Rows, usual: Scheme | None = None) -> Scheme:
    """The scheme of these tags: `wanted`, or detected; `usual` (the training data's) if they are ambiguous.

    Raises InputError for a tag that does not match the others.
    """
    if wanted == "none" or usual == "none":
        return "none"
    odd = unknown_tags(tags.names)
    if odd:
        is_odd = np.isin(tags.ids, [tags.names.index(one) for one in odd])
        marked = np.isin(tags.ids, [number for number, name in enumerate(tags.names) if name != "O"])
        if wanted == "auto" and usual is None and is_odd.sum() >= MAX_ODD * marked.sum():
            return "none"
        raise _unknown_tag_error(tags, rows, int(np.argmax(is_odd)))
    if wanted != "auto":
        return wanted  # pyright: ignore[reportReturnType]  the settings allow nothing else
    if not set(tags.names) - {"O"}:
        return usual or "none"
    return detect_scheme(tags.names, tags.ids, tags.first, usual or "BIO")


def _unknown_tag_error(tags: Tags, rows: Rows, word: int) -> InputError:
    return InputError(
        "data.columns.tags: {rows} has the tag {names}, which does not fit BIO, IOB1, IOBES or "
        "BILOU, although other tags do; correct it, or set task.scheme: none",
        "data.columns.tags",
        rows=rows.place(tags.row_of(word)),
        names=repr(tags.names[tags.ids[word]]),
    )


def scheme_of_labels(labels: Sequence[str]) -> Scheme:
    """The tagging scheme of a model's labels, judged by their names."""
    if unknown_tags(labels):
        return "none"
    scheme = scheme_of_names(labels)
    return scheme or ("BIO" if any(label.startswith("B") for label in labels) else "IOB1")


def convert_scheme(tags: Tags, scheme: Scheme, wanted: Scheme) -> Tags:
    """The same entities in another scheme, or in their own with violations repaired; other tags are unchanged."""
    if "none" in (scheme, wanted):
        return tags
    parts = parse_tags(tags.names, tags.ids, tags.first).to_scheme(wanted)
    names, ids = parts.tags(wanted)
    return replace(tags, names=names, ids=np.where(tags.ids >= 0, ids, -1).astype(np.int32))


def find_invalid(tags: Tags, scheme: Scheme) -> np.ndarray:
    """Indices of the words whose tags violate the scheme."""
    if scheme == "none":
        return np.zeros(0, np.int64)
    parts = parse_tags(tags.names, tags.ids, tags.first)
    return np.flatnonzero(parts.to_scheme(scheme).prefixes != parts.prefixes)


def outside_tag(tags: Tags) -> str:
    """The tag of an unseen word: O, or the most frequent one if there is no O."""
    if "O" in tags.used_names():
        return "O"
    return tags.names[int(np.bincount(tags.ids[tags.ids >= 0]).argmax())]


def label_ids(tags: Tags, scheme: Scheme, facts: Facts) -> tuple[np.ndarray, np.ndarray]:
    """(words,) each: the label of a word's first token and of its later ones (B continues as I); IGNORE if unknown."""
    labels = {label: number for number, label in enumerate(facts["labels"])}
    own = convert_scheme(tags, scheme, facts["learned"])
    first = [labels.get(name, IGNORE) for name in own.names]
    later = [labels.get(f"I{name[1:]}", label) for name, label in zip(own.names, first, strict=True)]
    goes_on = [name[0] == "B" and facts["learned"] != "none" for name in own.names]
    later = [other if begun else one for one, other, begun in zip(first, later, goes_on, strict=True)]
    # One more for -1, the id of a word without tag.
    return np.array([*first, IGNORE])[own.ids], np.array([*later, IGNORE])[own.ids]


def predict_tags(logits: list[np.ndarray], features: pa.Table, tags: Tags, facts: Facts) -> tuple[Tags, np.ndarray]:
    """The most likely label of every word, and (rows,) how many words have no token, which count as outside."""
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
    """(rows,) each: a row's summed cross-entropy, and its number of targets."""
    labels, row_of = _flat(features, "labels")
    known = np.flatnonzero(labels >= 0)
    if not len(known):
        return np.zeros(rows), np.zeros(rows)
    chosen = np.concatenate(logits)[known].astype(np.float64)  # (targets, labels)
    loss = np.logaddexp.reduce(chosen, axis=1) - chosen[np.arange(len(known)), labels[known]]
    return np.bincount(row_of[known], loss, rows), np.bincount(row_of[known], minlength=rows).astype(np.float64)


def conll(words: Iterable[list[str]], predicted: Tags, actual: Tags) -> str:
    """One word per line with its actual tag, if known, and its predicted one, tab-separated, with a blank line after
    each sentence."""  # fmt: skip
    has_actual = bool(actual.tagged.any())
    lines: list[str] = []
    for sentence, tags, known in zip(words, predicted.row_tags(), actual.row_tags(), strict=True):
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


@dataclass(frozen=True)
class ParsedTags:
    """Parsed tags of consecutive words; `first` marks the start of each sentence."""

    prefixes: np.ndarray  # (words,) int8: O, B, I, E, S as 0 … 4
    types: np.ndarray  # (words,) int32, index into names; -1 outside
    first: np.ndarray  # (words,) bool, first word of a sentence
    names: tuple[str, ...]

    def begins(self) -> np.ndarray:
        """(words,) bool, first word of an entity."""
        before, type_before = _shift_right(self.prefixes, _O), _shift_right(self.types, -1)
        opens = np.isin(self.prefixes, (_B, _S)) | np.isin(before, (_O, _E, _S)) | (self.types != type_before)
        return (self.prefixes != _O) & (opens | self.first)

    def to_scheme(self, scheme: Scheme) -> "ParsedTags":
        """The same entities with the prefixes of another scheme (BILOU is stored as IOBES)."""
        inside, begins = self.prefixes != _O, self.begins()
        after = np.append(begins | ~inside | self.first, True)[1:]  # the next word is not part of the same entity
        prefixes = np.where(inside, _I, _O).astype(np.int8)
        if scheme in ("IOBES", "BILOU"):
            prefixes[inside & after] = _E
            prefixes[begins] = _B
            prefixes[begins & after] = _S
        elif scheme == "IOB1":
            touches = ~self.first & (_shift_right(self.types, -1) == self.types)
            prefixes[begins & touches] = _B
        else:
            prefixes[begins] = _B
        return ParsedTags(prefixes, self.types, self.first, self.names)

    def tags(self, scheme: Scheme) -> tuple[tuple[str, ...], np.ndarray]:
        """Every possible tag, and (words,) which of them each word has."""
        letters = _LETTERS[scheme if scheme in _LETTERS else "IOBES"]
        names = ("O", *(_join_tag(letter, name) for letter in letters[1:] for name in self.names))
        return names, np.where(self.prefixes == _O, 0, 1 + (self.prefixes - 1) * len(self.names) + self.types)


def parse_tags(names: Sequence[str], ids: np.ndarray, first: np.ndarray) -> ParsedTags:
    """Prefix and type of every word, whose tag is `names[id]`; -1 is outside, as is a tag that fits no scheme."""
    found = [_TAG.fullmatch(name) for name in names]
    types = tuple(dict.fromkeys(match[2] or "" for match in found if match))
    codes = [_CODES[_LIKE.get(match[1], match[1])] if match else _O for match in found]
    numbers = [types.index(match[2] or "") if match else -1 for match in found]
    # One more for -1, which indexes from the end.
    return ParsedTags(np.array([*codes, _O], np.int8)[ids], np.array([*numbers, -1], np.int32)[ids], first, types)


def unknown_tags(names: Sequence[str]) -> list[str]:
    """The tags that fit no scheme."""
    return [name for name in names if name != "O" and not _TAG.fullmatch(name)]


def scheme_of_names(names: Sequence[str], usual: Scheme | None = None) -> Scheme | None:
    """The scheme indicated by the letters; None if they fit both BIO and IOB1. `usual` if nothing contradicts it."""
    letters = {name[0] for name in names if _TAG.fullmatch(name)}
    if not letters:
        return "none"
    if letters & set("LU"):
        return "BILOU"
    return "IOBES" if letters & set("ES") else None


def detect_scheme(names: Sequence[str], ids: np.ndarray, first: np.ndarray, usual: Scheme = "BIO") -> Scheme:
    """The scheme of scheme-like tag names: by their letters, then the one that fewer tags violate."""
    scheme = scheme_of_names(names)
    if scheme is not None:
        return scheme
    parts = parse_tags(names, ids, first)
    usual = usual if usual in ("BIO", "IOB1") else "BIO"
    other: Scheme = "IOB1" if usual == "BIO" else "BIO"
    return other if count_invalid(parts, other) < count_invalid(parts, usual) else usual


def count_invalid(parts: ParsedTags, scheme: Scheme) -> int:
    """How many tags violate the scheme."""
    return int(np.count_nonzero(parts.to_scheme(scheme).prefixes != parts.prefixes))


def _shift_right(values: np.ndarray, filler: int) -> np.ndarray:
    return np.concatenate([np.array([filler], values.dtype), values[:-1]]) if len(values) else values


def _join_tag(letter: str, name: str) -> str:
    return f"{letter}-{name}" if name else letter
