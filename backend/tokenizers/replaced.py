"""Owns which pieces stand for a text where it is no token of its own: what an added token replaces."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from backend.tokenizers.vocabulary import vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Encode = Callable[[str], list[int]]


def pieces_of(tokenizer: "PreTrainedTokenizerBase", text: str) -> tuple[int, ...]:
    """The ids that stand for `text` now, without what only marks a space before it and without unknown ones."""
    return _telling(tokenizer, list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]))


def replaced(tokenizer: "PreTrainedTokenizerBase", own: "PreTrainedTokenizerBase | None") -> dict[int, tuple[int, ...]]:
    """Id of each added token → the ids that stood for it before.

    `own` is the tokenizer that the model was trained with, of which `tokenizer` has every id; without it every added
    token counts. Tokens that nothing stood for have no ids.
    """
    first = first_new(own) if own is not None else tokenizer.vocab_size
    added = {place: token.content for place, token in tokenizer.added_tokens_decoder.items() if place >= first}
    if not added:
        return {}
    encode = (
        _without(tokenizer, first)
        if own is None
        else lambda text: list(own(text, add_special_tokens=False)["input_ids"])
    )
    return {place: _telling(own or tokenizer, encode(text)) for place, text in sorted(added.items())}


def first_new(tokenizer: "PreTrainedTokenizerBase") -> int:
    """The first id that none of its tokens has."""
    return max(tokenizer.get_vocab().values(), default=-1) + 1


def rows_needed(tokenizer: "PreTrainedTokenizerBase") -> int:
    """How many rows a table must have so that every id has one; ids may have gaps, and two tokens the same id."""
    return max(len(tokenizer), first_new(tokenizer))


def extends(tokenizer: "PreTrainedTokenizerBase", own: "PreTrainedTokenizerBase") -> bool:
    """Whether every token of `own` has the same id in `tokenizer`."""
    ids: Mapping[str, int] = tokenizer.get_vocab()
    return all(ids.get(token) == place for token, place in own.get_vocab().items())


def _without(tokenizer: "PreTrainedTokenizerBase", first: int) -> Encode:
    """The tokenizer as it would be without what was added from the id `first` on."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return lambda text: []  # a slow tokenizer cannot forget what it knows
    from tokenizers import Tokenizer  # only where tokens were added

    values = json.loads(backend.to_str())
    values["added_tokens"] = [token for token in values["added_tokens"] if token["id"] < first]
    before = Tokenizer.from_str(json.dumps(values))
    return lambda text: list(before.encode(text, add_special_tokens=False).ids)


def _telling(tokenizer: "PreTrainedTokenizerBase", ids: list[int]) -> tuple[int, ...]:
    unknown = vocabulary_of(tokenizer).unknown
    known = [place for place in ids if place != unknown]
    return tuple(place for place in known if str(tokenizer.decode([place])).strip()) or tuple(known)
