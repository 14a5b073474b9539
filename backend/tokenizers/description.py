"""Owns what can be said of a tokenizer without a text."""

from typing import TYPE_CHECKING

from backend.contract.rpc.chat_template import template_among
from backend.contract.tokens.options import Side
from backend.contract.tokens.tokens import TokenizerDescription
from backend.tokenizers import chat, options, stored
from backend.tokenizers.encoding import limit_of
from backend.tokenizers.loading import opening_note
from backend.tokenizers.naming import Named
from backend.tokenizers.vocabulary import vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def described(tokenizer: "PreTrainedTokenizerBase", named: Named) -> TokenizerDescription:
    """All that `TokenizerDescription` asks."""
    known = vocabulary_of(tokenizer)
    own = template_among(tokenizer.chat_template)
    ids = tokenizer.get_vocab().values()
    return TokenizerDescription(
        name=named.name_or_path,
        found=str(tokenizer.name_or_path or named.name_or_path),
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
        padding_side=_side(tokenizer.padding_side),
        truncation_side=_side(tokenizer.truncation_side),
        stored_truncation=stored.truncation(tokenizer),
        stored=stored.options(tokenizer),
        chat_template=own or chat.plain_template(tokenizer),
        chat_template_is_plain=not own,
        options=options.taken(tokenizer),
        notes=[note for note in (named.note, opening_note(tokenizer)) if note],
    )


def _side(value: str) -> Side:
    return "left" if value == "left" else "right"
