"""Owns the measure of a tokenizer on texts: how many tokens it makes of how many words, characters and bytes."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from backend.contract.tokens.making import Compression
from backend.tokenizers.vocabulary import vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

AT_ONCE = 256


def compression(
    tokenizer: "PreTrainedTokenizerBase",
    name: str,
    texts: Iterable[str],
    done: Callable[[int], None] = lambda count: None,
) -> Compression:
    """Without special tokens, nothing truncated; `done` is told how many texts are measured."""
    strange = vocabulary_of(tokenizer).unknown
    rows = tokens = words = characters = size = unknown = 0
    for part, encoded in ids_of(tokenizer, texts):
        rows += len(part)
        tokens += sum(map(len, encoded))
        words += sum(len(text.split()) for text in part)
        characters += sum(map(len, part))
        size += sum(len(text.encode("utf-8", "surrogatepass")) for text in part)
        unknown += sum(ids.count(strange) for ids in encoded) if strange is not None else 0
        done(rows)
    return Compression(
        tokenizer=name, vocabulary=len(tokenizer), rows=rows, tokens=tokens, words=words, characters=characters,
        bytes=size, unknown=unknown,
    )  # fmt: skip


def ids_of(tokenizer: "PreTrainedTokenizerBase", texts: Iterable[str]) -> Iterator[tuple[list[str], list[list[int]]]]:
    """Some texts at a time, with their ids."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    waiting = iter(texts)
    while part := list(islice(waiting, AT_ONCE)):
        if backend is not None:  # three times as fast as asking transformers, which makes masks too
            yield part, [each.ids for each in backend.encode_batch_fast(part, add_special_tokens=False)]
        else:
            yield part, list(tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"])
