"""Decoding: ids to text and pieces to ids, where unknown ones are marked instead of raising an error."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from backend.contract.messages import message
from backend.contract.tokens.batches import Decoded, DecodedRow, PiecesAsText
from backend.tokenizers import AnyTokenizer


def decode(
    tokenizer: AnyTokenizer, ids: Sequence[int], skip_special: bool = False, clean_up: bool | None = None
) -> str:
    """The text of `ids`; an unknown id appears as `⟨no token 99999⟩`."""
    parts = []
    options: dict[str, Any] = {} if clean_up is None else {"clean_up_tokenization_spaces": clean_up}
    for known, run in groupby(ids, lambda token: exists(tokenizer, token)):
        if known:
            parts.append(str(tokenizer.decode(list(run), skip_special_tokens=skip_special, **options)))
        else:
            parts.extend(message("⟨no token {token}⟩", token=token) for token in run)
    return "".join(parts)


def decode_rows(
    tokenizer: AnyTokenizer,
    rows: Sequence[Sequence[int]],
    skip_special: bool = False,
    clean_up: bool | None = None,
) -> Decoded:
    """Several lists of ids as text."""
    return Decoded([_row(tokenizer, list(ids), skip_special, clean_up) for ids in rows])


def pieces_to_text(tokenizer: AnyTokenizer, pieces: Sequence[str]) -> PiecesAsText:
    """The ids of pieces and their text; an unknown piece appears as `⟨no piece abc⟩`."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    id_of = tokenizer.get_vocab().get if backend is None else backend.token_to_id
    ids = [_id(id_of, piece) for piece in pieces]
    parts = []
    for known, run in groupby(zip(ids, pieces, strict=True), lambda pair: pair[0] >= 0):
        if known:
            parts.append(str(tokenizer.decode([number for number, _ in run], skip_special_tokens=False)))
        else:
            parts.extend(message("⟨no piece {piece}⟩", piece=piece) for _, piece in run)
    return PiecesAsText(text="".join(parts), ids=ids, unknown=[place for place, number in enumerate(ids) if number < 0])


def exists(tokenizer: AnyTokenizer, token: int) -> bool:
    """Whether the tokenizer has this id; vocabularies may have gaps."""
    if not 0 <= token < 2**31:  # the backend raises OverflowError outside of its number type
        return False
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return token < len(tokenizer) if backend is None else backend.id_to_token(token) is not None


def _row(tokenizer: AnyTokenizer, ids: list[int], skip_special: bool, clean_up: bool | None) -> DecodedRow:
    there = [exists(tokenizer, token) for token in ids]
    names = iter(tokenizer.convert_ids_to_tokens([token for token, known in zip(ids, there, strict=True) if known]))
    return DecodedRow(
        text=decode(tokenizer, ids, skip_special, clean_up),
        with_special=decode(tokenizer, ids, False, False),
        without_special=decode(tokenizer, ids, True, False),
        cleaned=decode(tokenizer, ids, False, True),
        pieces=[str(next(names)) if known else "" for known in there],
        missing=[place for place, known in enumerate(there) if not known],
    )


def _id(id_of: Callable[[str], int | None], piece: str) -> int:
    try:
        found = id_of(piece)
    except (TypeError, UnicodeEncodeError):  # a lone surrogate is not a piece
        return -1
    return -1 if found is None else int(found)
