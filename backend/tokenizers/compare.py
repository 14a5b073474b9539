"""Owns the comparison of tokenizers on one text: the tokens of each by line, and where they are not cut alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from backend.contract.errors import InputError
from backend.contract.tokens.comparison import FEWEST, MOST, ComparedToken, TextComparison, TextCounts
from backend.tokenizers import guessed_offsets
from backend.tokenizers.sources import cleaned
from backend.tokenizers.vocabulary import vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Tokenizers = Sequence[tuple[str, "PreTrainedTokenizerBase"]]
"""Names and the tokenizers themselves."""


def check_number(tokenizers: Sequence[str]) -> None:
    """Raises InputError unless there are two to four."""
    if not FEWEST <= len(tokenizers) <= MOST:
        raise InputError(f"tokenizers: {FEWEST} to {MOST} can be compared, not {len(tokenizers)}", "tokenizers")


@dataclass(frozen=True)
class _Cut:
    """The tokens of one tokenizer; `spans` are begin and end in characters, (tokens, 2)."""

    ids: list[int]
    pieces: list[str]
    special: list[bool]
    spans: np.ndarray
    unknown: int


def compare_text(tokenizers: Tokenizers, text: str, special_tokens: bool = True) -> TextComparison:
    """Every tokenizer's tokens of the whole text."""
    text = cleaned(text)[0]
    cut = [_cut(tokenizer, text, special_tokens) for _, tokenizer in tokenizers]
    solid = _solid_before(text)
    differing, places = _differences([solid[each.spans] for each in cut])
    return TextComparison(
        tokens=[
            token
            for number, each in enumerate(cut)
            for token in _tokens(number, each, text, _lines(each.spans, text, solid), differing[number])
        ],
        counts=[
            TextCounts(
                tokenizer=name,
                tokens=len(each.ids),
                special=sum(each.special),
                unknown=each.unknown,
                differing=int(differing[number].sum()),
            )
            for number, ((name, _), each) in enumerate(zip(tokenizers, cut, strict=True))
        ],
        lines=text.count("\n") + 1,
        characters=len(text),
        words=len(text.split()),
        places=places,
    )


def _tokens(number: int, cut: _Cut, text: str, lines: list[int], differing: np.ndarray) -> Iterator[ComparedToken]:
    for place, (begin, end) in enumerate(cut.spans.tolist()):
        yield ComparedToken(
            number, lines[place], cut.ids[place], cut.pieces[place], text[begin:end], begin, end,
            cut.special[place], bool(differing[place]),
        )  # fmt: skip


def _cut(tokenizer: "PreTrainedTokenizerBase", text: str, special_tokens: bool) -> _Cut:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        ids = list(tokenizer(text, add_special_tokens=special_tokens, truncation=False, verbose=False)["input_ids"])
        spans = guessed_offsets.spans(tokenizer, ids, text)
    else:
        encoding = backend.encode(text, add_special_tokens=special_tokens)
        ids, spans = encoding.ids, encoding.offsets
    special, unknown = set(tokenizer.all_special_ids), vocabulary_of(tokenizer).unknown
    return _Cut(
        ids=ids,
        pieces=[str(piece) for piece in tokenizer.convert_ids_to_tokens(ids)],
        special=[token in special for token in ids],
        spans=np.array(list(spans), np.int64).reshape(-1, 2),
        unknown=0 if unknown is None else ids.count(unknown),
    )


def _solid_before(text: str) -> np.ndarray:
    """How many characters that are no space stand before each place of the text, (characters + 1,). Counted so, GPT-2's
    ` the` and BERT's `the` are one span."""
    solid = np.fromiter((not sign.isspace() for sign in text), np.int64, len(text))
    return np.concatenate([[0], np.cumsum(solid)])


def _lines(spans: np.ndarray, text: str, solid: np.ndarray) -> list[int]:
    """The line of each token's first character that is no space; what stands nowhere stays with the token before."""
    breaks = np.array([place for place, sign in enumerate(text) if sign == "\n"], np.int64)
    begin, end = spans[:, 0], spans[:, 1]
    solid_places = np.flatnonzero(np.diff(solid))
    has_solid = solid[end] > solid[begin]
    first = begin.copy()
    first[has_solid] = solid_places[solid[begin[has_solid]]]
    return np.maximum.accumulate(np.searchsorted(breaks, first)).tolist() if len(spans) else []


def _differences(spans: list[np.ndarray]) -> tuple[list[np.ndarray], int]:
    """For each token whether some tokenizer cuts otherwise there, and how many such stretches the text has.

    A border is common if every tokenizer has one there; between two neighbouring common borders all cut alike unless
    one has a border within.
    """
    borders = [np.unique(span[span[:, 0] < span[:, 1]]) for span in spans]
    common = borders[0]
    for each in borders[1:]:
        common = np.intersect1d(common, each, assume_unique=True)
    odd = np.setdiff1d(np.unique(np.concatenate(borders)), common)
    differing = []
    for span in spans:
        within = np.searchsorted(odd, span[:, 1], "right") > np.searchsorted(odd, span[:, 0], "left")
        differing.append(within & (span[:, 0] < span[:, 1]))
    return differing, len(np.unique(np.searchsorted(common, odd)))
