"""Owns what can be said of a tokenizer without a text."""

from typing import TYPE_CHECKING

from backend.contract.tokens import TokenizerDescription, TokenizerOption
from backend.tokenizers import options
from backend.tokenizers.encoding import limit_of
from backend.tokenizers.loading import stored_truncation
from backend.tokenizers.vocabulary import vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def described(tokenizer: "PreTrainedTokenizerBase", name: str) -> TokenizerDescription:
    """All that `TokenizerDescription` asks."""
    known = vocabulary_of(tokenizer)
    ids = tokenizer.get_vocab().values()
    return TokenizerDescription(
        name=name,
        found=str(tokenizer.name_or_path or name),
        tokenizer_class=type(tokenizer).__name__,
        fast=bool(tokenizer.is_fast),
        model=known.kind,
        byte_level=known.byte_level,
        byte_fallback=known.byte_fallback,
        vocabulary=len(tokenizer),
        highest_id=max(ids, default=-1),
        added_tokens=len(known.added),
        special_tokens={role: str(token) for role, token in tokenizer.special_tokens_map.items()},
        limit=limit_of(tokenizer),
        padding_side=tokenizer.padding_side,
        truncation_side=tokenizer.truncation_side,
        stored_truncation=stored_truncation(tokenizer),
        chat_template=tokenizer.chat_template if isinstance(tokenizer.chat_template, str) else "",
        options=[TokenizerOption(*one) for one in options.taken(tokenizer)],
    )
