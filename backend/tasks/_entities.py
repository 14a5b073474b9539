"""Owns tagging schemes: which words an entity spans, and how its tags are written in BIO, IOB1, IOBES and BILOU.

Entities are read as conlleval and seqeval's default mode read them, from any scheme and from tags that follow none:
an entity begins at B or S, after E or S, after O and where the type changes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Scheme = Literal["BIO", "IOB1", "IOBES", "BILOU", "none"]

_TAG = re.compile(r"([BIESLU])(?:-(.*))?", re.DOTALL)
_LIKE = {"L": "E", "U": "S"}
_O, _B, _I, _E, _S = range(5)
_CODES = {"B": _B, "I": _I, "E": _E, "S": _S}
_LETTERS = {"BIO": "OBI", "IOB1": "OBI", "IOBES": "OBIES", "BILOU": "OBILU"}


@dataclass(frozen=True)
class Parts:
    """Tags of words one after another, taken apart; sentences are kept apart by `first`."""

    prefixes: np.ndarray  # (words,) int8: O, B, I, E, S as 0 … 4
    types: np.ndarray  # (words,) int32, index into names; -1 outside
    first: np.ndarray  # (words,) bool, first word of a sentence
    names: tuple[str, ...]

    def begins(self) -> np.ndarray:
        """(words,) bool, first word of an entity."""
        before, type_before = _shifted(self.prefixes, _O), _shifted(self.types, -1)
        opens = np.isin(self.prefixes, (_B, _S)) | np.isin(before, (_O, _E, _S)) | (self.types != type_before)
        return (self.prefixes != _O) & (opens | self.first)

    def written(self, scheme: Scheme) -> "Parts":
        """The same entities with the prefixes of another scheme (BILOU is held as IOBES)."""
        inside, begins = self.prefixes != _O, self.begins()
        after = np.append(begins | ~inside | self.first, True)[1:]  # the next word is no part of the same entity
        prefixes = np.where(inside, _I, _O).astype(np.int8)
        if scheme in ("IOBES", "BILOU"):
            prefixes[inside & after] = _E
            prefixes[begins] = _B
            prefixes[begins & after] = _S
        elif scheme == "IOB1":
            touches = ~self.first & (_shifted(self.types, -1) == self.types)
            prefixes[begins & touches] = _B
        else:
            prefixes[begins] = _B
        return Parts(prefixes, self.types, self.first, self.names)

    def tags(self, scheme: Scheme) -> tuple[tuple[str, ...], np.ndarray]:
        """Every possible tag, and (words,) which of them each word has."""
        letters = _LETTERS[scheme if scheme in _LETTERS else "IOBES"]
        names = ("O", *(_joined(letter, name) for letter in letters[1:] for name in self.names))
        return names, np.where(self.prefixes == _O, 0, 1 + (self.prefixes - 1) * len(self.names) + self.types)


def taken_apart(names: Sequence[str], ids: np.ndarray, first: np.ndarray) -> Parts:
    """Prefix and type of every word whose tag is `names[id]`; -1 is outside, as is what is no tag of a scheme."""
    found = [_TAG.fullmatch(name) for name in names]
    types = tuple(dict.fromkeys(match[2] or "" for match in found if match))
    codes = [_CODES[_LIKE.get(match[1], match[1])] if match else _O for match in found]
    numbers = [types.index(match[2] or "") if match else -1 for match in found]
    # One more for -1, which indexes from the end.
    return Parts(np.array([*codes, _O], np.int8)[ids], np.array([*numbers, -1], np.int32)[ids], first, types)


def strangers(names: Sequence[str]) -> list[str]:
    """The tags that no scheme knows."""
    return [name for name in names if name != "O" and not _TAG.fullmatch(name)]


def scheme_of_names(names: Sequence[str], usual: Scheme | None = None) -> Scheme | None:
    """The scheme that the letters alone tell; None where they leave BIO and IOB1 open. `usual` where nothing speaks."""
    letters = {name[0] for name in names if _TAG.fullmatch(name)}
    if not letters:
        return "none"
    if letters & set("LU"):
        return "BILOU"
    return "IOBES" if letters & set("ES") else None


def scheme_of(names: Sequence[str], ids: np.ndarray, first: np.ndarray, usual: Scheme = "BIO") -> Scheme:
    """The scheme of tags whose names look like one: by their letters, then by what fewer tags offend against."""
    told = scheme_of_names(names)
    if told is not None:
        return told
    parts = taken_apart(names, ids, first)
    usual = usual if usual in ("BIO", "IOB1") else "BIO"
    other: Scheme = "IOB1" if usual == "BIO" else "BIO"
    return other if offences(parts, other) < offences(parts, usual) else usual


def offences(parts: Parts, scheme: Scheme) -> int:
    """How many tags do not follow the scheme."""
    return int(np.count_nonzero(parts.written(scheme).prefixes != parts.prefixes))


def _shifted(values: np.ndarray, filler: int) -> np.ndarray:
    return np.concatenate([np.array([filler], values.dtype), values[:-1]]) if len(values) else values


def _joined(letter: str, name: str) -> str:
    return f"{letter}-{name}" if name else letter
