"""Owns several texts as the padded batch that a model gets."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from backend.contract.errors import InputError
from backend.contract.token_batches import BatchQuestion, TokenGrid
from backend.tokenizers.columns import Columns
from backend.tokenizers.encoding import Options, encode_rows, limit_of, options_of
from backend.tokenizers.loading import stored_truncation
from backend.tokenizers.sources import cleaned
from backend.tokenizers.vocabulary import vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

EMPTY = -1
"""In place of an id where a row is shorter and nothing pads it."""


def grid(tokenizer: "PreTrainedTokenizerBase", question: BatchQuestion) -> TokenGrid:
    """Ids, mask and type ids. Raises InputError."""
    texts, pairs = question.texts, question.pairs
    if pairs is not None and len(pairs) != len(texts):
        raise InputError(f"{len(texts)} texts have {len(pairs)} pairs; give as many")
    found = [cleaned(one) for one in texts]
    second = None if pairs is None else [cleaned(one)[0] for one in pairs]
    options = options_of(question)
    rows = encode_rows(tokenizer, [text for text, _ in found], second, options)
    width = max((len(row) for row in rows), default=0)
    ids, mask, types = (np.full((len(rows), width), value, np.int64) for value in (EMPTY, 0, 0))
    for number, row in enumerate(rows):
        ids[number, : len(row)], mask[number, : len(row)], types[number, : len(row)] = row.ids, row.mask, row.type
    there = np.unique(ids[ids >= 0]).tolist()
    known = vocabulary_of(tokenizer)
    lengths = mask.sum(1).tolist()
    whole = _uncut(tokenizer, [text for text, _ in found], second, options, rows)
    pad = tokenizer.pad_token_id
    return TokenGrid(
        rows=len(rows),
        width=width,
        ids=ids.ravel().tolist(),
        mask=mask.ravel().tolist(),
        types=types.ravel().tolist(),
        lengths=lengths,
        left_out=[all_of - kept for all_of, kept in zip(whole, lengths, strict=True)],
        piece_ids=there,
        pieces=[str(one) for one in tokenizer.convert_ids_to_tokens(there)],
        special_ids=[one for one in there if one in known.special],
        pad_id=pad if isinstance(pad, int) else None,
        limit=limit_of(tokenizer),
        stored_truncation=stored_truncation(tokenizer),
    )


def _uncut(
    tokenizer: "PreTrainedTokenizerBase",
    texts: list[str],
    pairs: list[str] | None,
    options: Options,
    rows: list[Columns],
) -> list[int]:
    """How long each row is when nothing is cut off."""
    if options.max_length is None:
        return [int(row.mask.sum()) for row in rows]
    free = replace(options, max_length=None, padding="")
    return [len(row) for row in encode_rows(tokenizer, texts, pairs, free)]
