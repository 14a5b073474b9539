"""Compares tokenizers: on one text, where they split differently, and on many texts, by language and length."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from backend.contract.errors import InputError
from backend.contract.tokens.comparison import (
    FEWEST,
    MOST,
    ComparedToken,
    DataComparison,
    LanguageCounts,
    TextComparison,
    TextCounts,
)
from backend.contract.tokens.options import TokenOptions
from backend.data.split_statistics import summarise_counts
from backend.tokenizers import AnyTokenizer
from backend.tokenizers.encoding import encode
from backend.tokenizers.text import replace_surrogates
from backend.tokenizers.token_counts import Report, TokenCounter, batches
from backend.tokenizers.token_table import Columns
from backend.tokenizers.vocabulary.pieces import vocabulary_of

Tokenizers = Sequence[tuple[str, AnyTokenizer]]
"""Names and the tokenizers themselves."""
BARS = 40
"""Of a histogram, at most."""
SHOWN_SHARE = 0.995
"""Of the rows that the bars reach; a few very long ones would press the others together."""


def check_number(tokenizers: Sequence[str]) -> None:
    """Raises InputError unless there are two to four tokenizers."""
    if not FEWEST <= len(tokenizers) <= MOST:
        raise InputError(
            "tokenizers: {fewest} to {most} can be compared, not {tokenizers}",
            "tokenizers",
            fewest=FEWEST,
            most=MOST,
            tokenizers=len(tokenizers),
        )


def compare_text(tokenizers: Tokenizers, text: str, special_tokens: bool = True) -> TextComparison:
    """Every tokenizer's tokens of the whole text."""
    text, options = replace_surrogates(text)[0], TokenOptions(special_tokens=special_tokens)
    columns = [encode(tokenizer, text, None, options) for _, tokenizer in tokenizers]
    solid = _solid_before(text)
    differing, places = _differences([solid[np.stack([each.start, each.end], 1)] for each in columns])
    found: list[ComparedToken] = []
    counts = []
    for number, (name, tokenizer) in enumerate(tokenizers):
        own = list(_tokens(number, tokenizer, columns[number], text, solid, differing[number]))
        found += own
        unknown = vocabulary_of(tokenizer).unknown
        counts.append(
            TextCounts(
                tokenizer=name,
                tokens=len(own),
                special=sum(token.special for token in own),
                unknown=sum(token.id == unknown for token in own),
                differing=int(differing[number].sum()),
            )
        )
    lines, words = text.count("\n") + 1, len(text.split())
    return TextComparison(tokens=found, counts=counts, lines=lines, characters=len(text), words=words, places=places)


def _tokens(
    number: int, tokenizer: AnyTokenizer, columns: Columns, text: str, solid: np.ndarray, differing: np.ndarray
) -> Iterator[ComparedToken]:
    ids, special = columns.ids.tolist(), set(tokenizer.all_special_ids)
    spans = np.stack([columns.start, columns.end], 1)
    rows = zip(
        ids,
        tokenizer.convert_ids_to_tokens(ids),
        spans.tolist(),
        _lines(spans, text, solid),
        differing.tolist(),
        strict=True,
    )
    for token, piece, (start, end), line, differs in rows:
        yield ComparedToken(number, line, token, str(piece), text[start:end], start, end, token in special, differs)


def _solid_before(text: str) -> np.ndarray:
    """The number of non-space characters before each position of the text, (characters + 1,). In these units, GPT-2's
    ` the` and BERT's `the` are the same span."""
    solid = np.fromiter((not sign.isspace() for sign in text), np.int64, len(text))
    return np.concatenate([[0], np.cumsum(solid)])


def _lines(spans: np.ndarray, text: str, solid: np.ndarray) -> list[int]:
    """The line of each token's first non-space character; a token without one stays with the one before."""
    breaks = np.array([place for place, sign in enumerate(text) if sign == "\n"], np.int64)
    begin, end = spans[:, 0], spans[:, 1]
    solid_places = np.flatnonzero(np.diff(solid))
    has_solid = solid[end] > solid[begin]
    first = begin.copy()
    first[has_solid] = solid_places[solid[begin[has_solid]]]
    return np.maximum.accumulate(np.searchsorted(breaks, first)).tolist() if len(spans) else []


def _differences(spans: list[np.ndarray]) -> tuple[list[np.ndarray], int]:
    """For each token whether some tokenizer splits differently there, and the number of such regions.

    A boundary is common if every tokenizer has it; between two neighbouring common boundaries all agree unless
    one has a boundary inside.
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


def compare_data(
    tokenizers: Tokenizers,
    texts: Iterable[str],
    languages: Iterable[str],
    report: Report,
    column: str = "",
    language_column: str = "",
) -> DataComparison:
    """Count the tokens of every text; `languages` has one per text and is used only if there is a language column."""
    started = time.monotonic()
    counters = [TokenCounter(tokenizer) for _, tokenizer in tokenizers]
    sums: dict[str, np.ndarray] = {}
    lengths: list[Counter[int]] = [Counter() for _ in counters]
    spoken = iter(languages)
    done = 0
    for batch in batches(texts):
        counted = [counter.counts(batch) for counter in counters]
        tokens, unknown = (np.stack([each[place] for each in counted]) for place in (0, 1))  # (tokenizers, rows)
        sizes = np.array([(1, len(text.split()), len(text), len(text.encode("utf-8", "replace"))) for text in batch]).T
        numbers = np.concatenate([sizes, tokens, unknown])  # (4 + 2 × tokenizers, rows)
        names = np.array([next(spoken) for _ in batch], object)
        for name in dict.fromkeys(names.tolist()):
            sums[name] = sums.get(name, 0) + numbers[:, names == name].sum(axis=1)
        for each, row in zip(lengths, tokens, strict=True):
            each.update(row.tolist())
        done += len(batch)
        report(done)
    bins = _bins(lengths)
    none = np.zeros(4 + 2 * len(counters), np.int64)
    by_language = [_language_counts(name, found) for name, found in sums.items()]
    return DataComparison(
        tokenizers=[name for name, _ in tokenizers],
        column=column,
        language_column=language_column,
        total=_language_counts("", sum(sums.values(), none)),
        languages=sorted(by_language, key=lambda one: (-one.rows, one.language)) if language_column else [],
        spreads=[summarise_counts(each) for each in lengths],
        bins=bins,
        histograms=[_histogram(each, bins) for each in lengths],
        seconds=time.monotonic() - started,
    )


def _language_counts(language: str, sums: np.ndarray) -> LanguageCounts:
    """Of rows, words, characters, bytes, the tokens of each tokenizer, and its unknown ones."""
    (rows, words, characters, octets), each = sums[:4].tolist(), sums[4:].tolist()
    half = len(each) // 2
    return LanguageCounts(
        language=language, rows=rows, words=words, characters=characters, bytes=octets, tokens=each[:half],
        unknown=each[half:],
    )  # fmt: skip


def _bins(lengths: list[Counter[int]]) -> list[int]:
    """The starts of the bars, whose width is a whole number of tokens, and the end of the last."""
    longest = max((_covering_length(each) for each in lengths if each), default=0)
    width = longest // BARS + 1
    return list(range(0, longest + width + 1, width))


def _covering_length(lengths: Counter[int]) -> int:
    """The length that almost no row exceeds."""
    wanted, seen = SHOWN_SHARE * lengths.total(), 0
    for length in sorted(lengths):
        seen += lengths[length]
        if seen >= wanted:
            return length
    return 0


def _histogram(lengths: Counter[int], bins: list[int]) -> list[int]:
    bars = [0] * (len(bins) - 1)
    width = bins[1] - bins[0]
    for length, rows in lengths.items():
        bars[min(length // width, len(bars) - 1)] += rows
    return bars
