"""Owns a tokenizer with more tokens: what proposed ones replace, how often they would occur, and the extended tokenizer."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backend.contract.errors import InputError
from backend.contract.tokens.making import ProposedToken, ProposedTokens
from backend.tokenizers.compression import ids_of
from backend.tokenizers.options import ADDED_SPECIAL, apply
from backend.tokenizers.replaced import pieces_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Extension:
    """Tokens to be added."""

    add: Sequence[str] = ()
    special: Sequence[str] = ()
    """Those that are never a part of ordinary text: left out when a text is shown, never split."""
    whole_words: bool = False
    """Lets ordinary ones be found only where nothing of a word stands beside them."""


def proposed(tokenizer: "PreTrainedTokenizerBase", extension: Extension) -> ProposedTokens:
    """What stands for each proposed token now, and why one cannot be added."""
    wanted = [(text, False) for text in extension.add] + [(text, True) for text in extension.special]
    seen: set[str] = set()
    found = []
    for text, special in wanted:
        found.append(_proposed(tokenizer, text, special, again=text in seen))
        seen.add(text)
    return ProposedTokens(tokens=found, vocabulary=len(tokenizer))


def extend(tokenizer: "PreTrainedTokenizerBase", extension: Extension) -> int:
    """Add the tokens to `tokenizer`, which becomes another one; how many it has more.

    Raises InputError where one cannot be added, or none is new.
    """
    tokens = proposed(tokenizer, extension).tokens
    if wrong := next((each for each in tokens if each.problem and each.known is None), None):
        raise InputError(f"{wrong.text!r}: {wrong.problem}")
    if not any(not each.problem for each in tokens):
        raise InputError("every one of these is a token already; name a new one" if tokens else "name a token to add")
    before, ids = len(tokenizer), set(tokenizer.get_vocab().values())
    from tokenizers import AddedToken  # only where tokens are added

    texts = [each.text for each in tokens if not each.special and not each.problem]
    new: Any = [AddedToken(text, single_word=extension.whole_words) for text in texts]
    tokenizer.add_tokens(new)
    apply(tokenizer, {ADDED_SPECIAL: [each.text for each in tokens if each.special and not each.problem]})
    added = len(tokenizer) - before
    if len({*tokenizer.get_vocab().values()} - ids) < added:
        # The library counts pieces where it should look for the largest id.
        raise InputError(
            "the ids of this tokenizer have gaps, so that a new token would take another's id; it cannot be extended"
        )
    return added


@dataclass(frozen=True)
class Counted:
    """How often proposed tokens occur in texts, and how many tokens there are with and without them."""

    counts: dict[str, int]
    rows: int
    before: int
    after: int


def count(
    before: "PreTrainedTokenizerBase",
    after: "PreTrainedTokenizerBase",
    texts: Iterable[str],
    wanted: Sequence[str],
    done: Callable[[int], None] = lambda count: None,
) -> Counted:
    """`after` is the extended tokenizer of `before`; `done` is told how many texts are counted."""
    found: Counter[int] = Counter()
    rows = tokens = 0
    for part, encoded in ids_of(after, texts):
        for ids in encoded:
            found.update(ids)
        [(_, old)] = ids_of(before, part)
        rows, tokens = rows + len(part), tokens + sum(map(len, old))
        done(rows)
    places: Any = after.convert_tokens_to_ids(list(wanted))
    counts = {text: found[place] for text, place in zip(wanted, places, strict=True)}
    return Counted(counts, rows, tokens, found.total())


def _proposed(tokenizer: "PreTrainedTokenizerBase", text: str, special: bool, *, again: bool) -> ProposedToken:
    if problem := _problem(text, again=again):
        return ProposedToken(text, special, [], [], problem=problem)
    ids = list(pieces_of(tokenizer, text))
    known = _id_of(tokenizer, text)
    is_there = known is not None and (not special or known in tokenizer.all_special_ids)
    pieces = list(tokenizer.convert_ids_to_tokens(ids))
    problem = f"it is a token already (id {known})" if is_there else ""
    return ProposedToken(text, special, pieces, ids, known, problem)


def _problem(text: str, *, again: bool) -> str:
    if not text.strip():
        return "a token has at least one letter or sign"
    if again:
        return "it is named twice"
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return "it holds half of a sign (a lone surrogate); write it anew"
    return ""


def _id_of(tokenizer: "PreTrainedTokenizerBase", text: str) -> int | None:
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    return backend.token_to_id(text) if backend is not None else tokenizer.get_vocab().get(text)
