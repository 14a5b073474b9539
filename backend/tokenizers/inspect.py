"""Owns what a tokenizer makes of a text, for people to look at: tokens with their place in the text, and back again."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from backend.contract.tokens import Token, Tokens
from backend.tokenizers.loading import stored_truncation

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def tokenize(tokenizer: "PreTrainedTokenizerBase", text: str, special_tokens: bool = True) -> Tokens:
    """Every token of `text`, nothing truncated or padded; `special_tokens` adds those the model expects."""
    ids, spans = _encode(tokenizer, text, special_tokens)
    special = set(tokenizer.all_special_ids)
    pieces = tokenizer.convert_ids_to_tokens(ids)
    tokens = [
        Token(id=token, piece=piece, text=text[start:end], start=start, end=end, special=token in special)
        for token, piece, (start, end) in zip(ids, pieces, spans, strict=True)
    ]
    return Tokens(
        tokens=tokens,
        characters=len(text),
        words=len(text.split()),
        unknown=sum(token == tokenizer.unk_token_id for token in ids),
        truncated_at=tokenizer.model_max_length if len(ids) > tokenizer.model_max_length else None,
        stored_truncation=stored_truncation(tokenizer),
    )


def decode(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int], skip_special: bool = False) -> str:
    """The text of `ids`; an id that the tokenizer does not have appears as `⟨no token 99999⟩`."""
    parts = []
    for known, run in groupby(ids, lambda token: _exists(tokenizer, token)):
        if known:
            parts.append(str(tokenizer.decode(list(run), skip_special_tokens=skip_special)))
        else:
            parts.extend(f"⟨no token {token}⟩" for token in run)
    return "".join(parts)


def as_json(tokens: Tokens) -> dict[str, Any]:
    """What `burnish tokenize --json` prints; `offsets` count characters of the text."""
    return {
        "ids": [token.id for token in tokens.tokens],
        "pieces": [token.piece for token in tokens.tokens],
        "offsets": [[token.start, token.end] for token in tokens.tokens],
        "texts": [token.text for token in tokens.tokens],
        "special": [token.special for token in tokens.tokens],
        "characters": tokens.characters,
        "words": tokens.words,
        "unknown": tokens.unknown,
        "truncated_at": tokens.truncated_at,
        "stored_truncation": tokens.stored_truncation,
    }


def _encode(
    tokenizer: "PreTrainedTokenizerBase", text: str, special_tokens: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    # verbose: transformers would warn on stderr about a text longer than the model's limit; `truncated_at` says so.
    if tokenizer.is_fast:
        encoding = tokenizer(
            text, add_special_tokens=special_tokens, truncation=False, return_offsets_mapping=True, verbose=False
        )
        return list(encoding["input_ids"]), [(start, end) for start, end in encoding["offset_mapping"]]
    ids = list(tokenizer(text, add_special_tokens=special_tokens, truncation=False, verbose=False)["input_ids"])
    return ids, list(_guessed_spans(_texts(tokenizer, ids), text))


def _texts(tokenizer: "PreTrainedTokenizerBase", ids: Iterable[int]) -> Iterator[str]:
    special = set(tokenizer.all_special_ids)
    return ("" if token in special else str(tokenizer.decode([token])).strip() for token in ids)


def _guessed_spans(texts: Iterable[str], text: str) -> Iterator[tuple[int, int]]:
    """Where each piece stands, for tokenizers that do not tell: the next place at which its text occurs."""
    end = 0
    for piece in texts:
        start = text.find(piece, end) if piece else -1
        if start < 0:
            yield end, end
        else:
            end = start + len(piece)
            yield start, end


def _exists(tokenizer: "PreTrainedTokenizerBase", token: int) -> bool:
    if not 0 <= token < 2**31:  # the backend raises OverflowError outside of its number type
        return False
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return token < len(tokenizer) if backend is None else backend.id_to_token(token) is not None
