"""Owns the comparison of tokenizers on many texts: tokens per row, word and character, and by language."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from backend.contract.tokens.comparison import DataComparison, LanguageCounts
from backend.data.split_statistics import spread_of_counts
from backend.tokenizers.compare import Tokenizers
from backend.tokenizers.counting import Report, TokenCounter, batches

BARS = 40
"""Of a histogram, at most."""
SHOWN_SHARE = 0.995
"""Of the rows that the bars reach; a few very long ones would press the others together."""


@dataclass
class _Sums:
    """What has been counted in one language; a number for each tokenizer where there are several."""

    tokens: np.ndarray
    unknown: np.ndarray
    sizes: np.ndarray = field(default_factory=lambda: np.zeros(4, np.int64))
    """Rows, words, characters, bytes."""

    def told(self, language: str) -> LanguageCounts:
        rows, words, characters, octets = self.sizes.tolist()
        return LanguageCounts(
            language=language,
            rows=rows,
            words=words,
            characters=characters,
            bytes=octets,
            tokens=self.tokens.tolist(),
            unknown=self.unknown.tolist(),
        )


def compare_data(
    tokenizers: Tokenizers,
    texts: Iterable[str],
    languages: Iterable[str],
    report: Report,
    column: str = "",
    language_column: str = "",
) -> DataComparison:
    """Count the tokens of every text; `languages` has one for each text and is looked at if there is a column of them."""
    started = time.monotonic()
    counters = [TokenCounter(tokenizer) for _, tokenizer in tokenizers]
    sums: dict[str, _Sums] = {}
    lengths: list[Counter[int]] = [Counter() for _ in counters]
    spoken = iter(languages)
    done = 0
    for batch in batches(texts):
        counted = [counter.counts(batch) for counter in counters]
        tokens, unknown = (np.stack([each[place] for each in counted]) for place in (0, 1))  # (tokenizers, rows)
        sizes = np.array([(1, len(text.split()), len(text), len(text.encode("utf-8", "replace"))) for text in batch]).T
        names = np.array([next(spoken) for _ in batch], object)
        for name in dict.fromkeys(names.tolist()):
            own = names == name
            found = sums.setdefault(name, _Sums(*(np.zeros(len(counters), np.int64) for _ in range(2))))
            found.tokens += tokens[:, own].sum(axis=1)
            found.unknown += unknown[:, own].sum(axis=1)
            found.sizes += sizes[:, own].sum(axis=1)
        for each, row in zip(lengths, tokens, strict=True):
            each.update(row.tolist())
        done += len(batch)
        report(done)
    bins = _bins(lengths)
    return DataComparison(
        tokenizers=[name for name, _ in tokenizers],
        column=column,
        language_column=language_column,
        total=_total(sums, len(counters)).told(""),
        languages=_by_rows(sums) if language_column else [],
        spreads=[spread_of_counts(each) for each in lengths],
        bins=bins,
        histograms=[_histogram(each, bins) for each in lengths],
        seconds=time.monotonic() - started,
    )


def _total(sums: dict[str, _Sums], tokenizers: int) -> _Sums:
    whole = _Sums(np.zeros(tokenizers, np.int64), np.zeros(tokenizers, np.int64))
    for each in sums.values():
        whole.tokens += each.tokens
        whole.unknown += each.unknown
        whole.sizes += each.sizes
    return whole


def _by_rows(sums: dict[str, _Sums]) -> list[LanguageCounts]:
    told = [each.told(name) for name, each in sums.items()]
    return sorted(told, key=lambda one: (-one.rows, one.language))


def _bins(lengths: list[Counter[int]]) -> list[int]:
    """Begins of the bars, all as wide as a whole number of tokens, and the end of the last."""
    longest = max((_reaching(each) for each in lengths if each), default=0)
    width = longest // BARS + 1
    return list(range(0, longest + width + 1, width))


def _reaching(lengths: Counter[int]) -> int:
    """The length that nearly all rows do not exceed."""
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
