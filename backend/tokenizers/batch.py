"""Several texts as the padded batch that a model receives."""

import numpy as np
from msgspec.structs import replace

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.tokens.batches import MAX_CELLS, BatchQuestion, TokenGrid
from backend.contract.tokens.options import TokenOptions
from backend.tokenizers import AnyTokenizer
from backend.tokenizers.encoding import check, encode_rows, limit_of
from backend.tokenizers.loading import ensure_pad_token
from backend.tokenizers.options import stored_truncation
from backend.tokenizers.text import replace_surrogates
from backend.tokenizers.token_table import Columns
from backend.tokenizers.tokenize import surrogate_notes
from backend.tokenizers.vocabulary.pieces import vocabulary_of

EMPTY = -1
"""In place of an id where a row is shorter and nothing pads it."""


def grid(tokenizer: AnyTokenizer, question: BatchQuestion) -> TokenGrid:
    """Ids, masks and type ids. Raises InputError."""
    texts, replaced = zip(*map(replace_surrogates, question.texts), strict=True) if question.texts else ((), ())
    options = replace(question, windows=False, stride=0)
    lacks_pad = bool(options.padding) and tokenizer.pad_token_id is None
    if not lacks_pad:
        check(tokenizer, options, False)
    rows = encode_rows(tokenizer, list(texts), replace(options, padding=""))
    width = _width(tokenizer, options, rows)
    if width * len(rows) > MAX_CELLS:
        raise InputError(
            "{rows:,} rows of {width:,} tokens are too many for one batch; use fewer texts, or set a max_length",
            rows=len(rows),
            width=width,
        )
    pad = ensure_pad_token(tokenizer)
    filler = (pad, 0, tokenizer.pad_token_type_id) if options.padding else (EMPTY, 0, 0)
    ids, mask, types = (np.full((len(rows), width), value, np.int64) for value in filler)
    ahead = bool(options.padding) and (options.padding_side or tokenizer.padding_side) == "left"
    for number, row in enumerate(rows):
        place = slice(width - len(row), width) if ahead else slice(0, len(row))
        ids[number, place], mask[number, place], types[number, place] = row.ids, row.mask, row.type
    there = np.unique(ids[ids >= 0]).tolist()
    known = vocabulary_of(tokenizer)
    lengths = mask.sum(1).tolist()
    uncut = replace(options, max_length=None, padding="")
    whole = rows if options.max_length is None else encode_rows(tokenizer, list(texts), uncut)
    notes = surrogate_notes(sum(replaced))
    if lacks_pad:
        notes = (
            *notes,
            message("This tokenizer has no padding token: rows are padded with ID {pad}, as in training.", pad=pad),
        )
    return TokenGrid(
        rows=len(rows),
        width=width,
        ids=ids.ravel().tolist(),
        mask=mask.ravel().tolist(),
        types=types.ravel().tolist(),
        lengths=lengths,
        left_out=[len(row) - kept for row, kept in zip(whole, lengths, strict=True)],
        piece_ids=there,
        pieces=[str(one) for one in tokenizer.convert_ids_to_tokens(there)],
        special_ids=[one for one in there if one in known.special],
        pad_id=pad if options.padding else None,
        limit=limit_of(tokenizer),
        stored_truncation=stored_truncation(tokenizer),
        notes=list(notes),
    )


def _width(tokenizer: AnyTokenizer, options: TokenOptions, rows: list[Columns]) -> int:
    """How long rows are filled to."""
    longest = max((len(row) for row in rows), default=0)
    if not options.padding:
        return longest
    if options.padding == "max_length":
        limit = options.max_length or limit_of(tokenizer)
        if limit is None:
            raise InputError("padding to max_length requires a max_length, because this tokenizer has no limit of its " "own; set max_length")  # fmt: skip
        longest = max(longest, limit)
    multiple = options.pad_to_multiple_of or 1
    return -(-longest // multiple) * multiple
