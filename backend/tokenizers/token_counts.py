"""Counts the tokens of many texts: per text, per piece, and how well a tokenizer compresses."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from backend.contract.tokens.training import Compression
from backend.tokenizers import AnyTokenizer
from backend.tokenizers.vocabulary.pieces import vocabulary_of

BATCH = 512
"""Texts that are cut at once, between two looks at the progress."""
BATCH_CHARACTERS = 1_000_000
"""Characters after which a batch is full however few texts it has: long ones would pile up in memory."""
Report = Callable[[int], None]
"""Told how many texts are done."""


class TokenCounter:
    """Counts with one tokenizer, using only ids; special tokens are not added."""

    def __init__(self, tokenizer: AnyTokenizer) -> None:
        self._tokenizer = tokenizer
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self._unknown = vocabulary_of(tokenizer).unknown

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text."""
        if self._backend is not None:  # three times as fast as asking transformers, which makes masks too
            return [one.ids for one in self._backend.encode_batch_fast(list(texts), add_special_tokens=False)]
        cut = self._tokenizer(list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False)
        return [list(ids) for ids in cut["input_ids"]]

    def counts(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """How many tokens each text has, and how many of them are unknown."""
        found = self.ids(texts)
        lengths = np.fromiter((len(ids) for ids in found), np.int64, len(found))
        unknown = self._unknown
        if unknown is None:
            return lengths, np.zeros(len(found), np.int64)
        return lengths, np.fromiter((ids.count(unknown) for ids in found), np.int64, len(found))


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts in lists small enough to tokenize in a moment."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if len(batch) == BATCH or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def count_pieces(tokenizer: AnyTokenizer, texts: Iterable[str], report: Report) -> np.ndarray:
    """How often each id occurs in the texts, shape (highest id + 1,)."""
    counter = TokenCounter(tokenizer)
    totals = np.zeros(0, np.int64)
    done = 0
    for batch in batches(texts):
        ids = counter.ids(batch)
        found = np.bincount(np.fromiter((token for one in ids for token in one), np.int64), minlength=len(totals))
        found[: len(totals)] += totals
        totals = found
        done += len(batch)
        report(done)
    return totals


def counts_of_ids(ids: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The counts of these ids; 0 for those that never occurred."""
    found = np.zeros(len(ids), np.int64)
    known = ids < len(counts)
    found[known] = counts[ids[known]]
    return found


def measure_compression(tokenizer: AnyTokenizer, name: str, texts: Iterable[str]) -> Compression:
    """Without special tokens or truncation."""
    counter = TokenCounter(tokenizer)
    rows = tokens = words = characters = size = unknown = 0
    for part in batches(texts):
        lengths, strange = counter.counts(part)
        rows += len(part)
        tokens += int(lengths.sum())
        words += sum(len(text.split()) for text in part)
        characters += sum(map(len, part))
        size += sum(len(text.encode("utf-8", "surrogatepass")) for text in part)
        unknown += int(strange.sum())
    return Compression(
        tokenizer=name, vocabulary=len(tokenizer), rows=rows, tokens=tokens, words=words, characters=characters,
        bytes=size, unknown=unknown,
    )  # fmt: skip
