"""Tokens added to a tokenizer: which pieces they replace, how often they would occur, and the extended tokenizer."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.tokens.training import ProposedToken, ProposedTokens, TokenCounts
from backend.tokenizers import AnyTokenizer
from backend.tokenizers.options import ADDED_SPECIAL, apply
from backend.tokenizers.token_counts import TokenCounter, batches
from backend.tokenizers.vocabulary.pieces import vocabulary_of

Encode = Callable[[str], list[int]]


@dataclass(frozen=True)
class Extension:
    """Tokens to add."""

    add: Sequence[str] = ()
    special: Sequence[str] = ()
    """Those that are never a part of ordinary text: left out when a text is shown, never split."""
    whole_words: bool = False
    """Ordinary ones match only as whole words."""


def propose(tokenizer: AnyTokenizer, extension: Extension) -> ProposedTokens:
    """How each proposed token's text is tokenized now, and why one cannot be added."""
    wanted = [(text, False) for text in extension.add] + [(text, True) for text in extension.special]
    seen: set[str] = set()
    found = []
    for text, special in wanted:
        found.append(_propose(tokenizer, text, special, again=text in seen))
        seen.add(text)
    return ProposedTokens(tokens=found, vocabulary=len(tokenizer))


def extend(tokenizer: AnyTokenizer, extension: Extension) -> int:
    """Add the tokens to `tokenizer`, in place; returns how many are new.

    Raises InputError if one cannot be added, or none is new.
    """
    tokens = propose(tokenizer, extension).tokens
    if wrong := next((each for each in tokens if each.problem and each.known is None), None):
        raise InputError("{text}: {problem}", text=repr(wrong.text), problem=wrong.problem)
    if not any(not each.problem for each in tokens):
        raise InputError(
            message("all of these are already tokens; enter a new one") if tokens else message("specify a token to add")
        )
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
            "the IDs of this tokenizer have gaps, so a new token would take the ID of another; the "
            "tokenizer cannot be extended"
        )
    return added


def count(
    before: AnyTokenizer,
    after: AnyTokenizer,
    texts: Iterable[str],
    wanted: Sequence[str],
    done: Callable[[int], None] = lambda count: None,
) -> TokenCounts:
    """Count occurrences; `after` is `before` extended; `done` receives the number of texts counted."""
    found: Counter[int] = Counter()
    rows = tokens = 0
    old, new = TokenCounter(before), TokenCounter(after)
    for part in batches(texts):
        for ids in new.ids(part):
            found.update(ids)
        rows, tokens = rows + len(part), tokens + int(old.counts(part)[0].sum())
        done(rows)
    places: Any = after.convert_tokens_to_ids(list(wanted))
    counts = {text: found[place] for text, place in zip(wanted, places, strict=True)}
    return TokenCounts(counts=counts, rows=rows, tokens_before=tokens, tokens_after=found.total())


def _propose(tokenizer: AnyTokenizer, text: str, special: bool, *, again: bool) -> ProposedToken:
    if problem := _problem(text, again=again):
        return ProposedToken(text, special, [], [], problem=problem)
    ids = list(pieces_of(tokenizer, text))
    known = _id_of(tokenizer, text)
    is_there = known is not None and (not special or known in tokenizer.all_special_ids)
    pieces = list(tokenizer.convert_ids_to_tokens(ids))
    problem = message("it is already a token (ID {known})", known=known) if is_there else ""
    return ProposedToken(text, special, pieces, ids, known, problem)


def _problem(text: str, *, again: bool) -> str:
    if not text.strip():
        return message("a token must have at least one character")
    if again:
        return message("it occurs twice")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return message("it contains half a character (a lone surrogate); enter it again")
    return ""


def _id_of(tokenizer: AnyTokenizer, text: str) -> int | None:
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    return backend.token_to_id(text) if backend is not None else tokenizer.get_vocab().get(text)


def pieces_of(tokenizer: AnyTokenizer, text: str) -> tuple[int, ...]:
    """The ids for `text` now, without those that only mark a space before it and without unknown ones."""
    return _known_ids(tokenizer, list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]))


def replaced_pieces(tokenizer: AnyTokenizer, own: "AnyTokenizer | None") -> dict[int, tuple[int, ...]]:
    """Id of each added token → the ids that it replaces.

    `own` is the tokenizer that the model was trained with, whose ids `tokenizer` extends; without it every added
    token counts. Tokens whose text had no ids before have none.
    """
    first = first_new(own) if own is not None else tokenizer.vocab_size
    added = {place: token.content for place, token in tokenizer.added_tokens_decoder.items() if place >= first}
    if not added:
        return {}
    encode = (
        _encoder_without(tokenizer, first)
        if own is None
        else lambda text: list(own(text, add_special_tokens=False)["input_ids"])
    )
    return {place: _known_ids(own or tokenizer, encode(text)) for place, text in sorted(added.items())}


def first_new(tokenizer: AnyTokenizer) -> int:
    """The first id that is beyond all of its tokens."""
    return max(tokenizer.get_vocab().values(), default=-1) + 1


def rows_needed(tokenizer: AnyTokenizer) -> int:
    """The table rows needed to cover every id; ids may have gaps, and two tokens may share one."""
    return max(len(tokenizer), first_new(tokenizer))


def extends(tokenizer: AnyTokenizer, own: AnyTokenizer) -> bool:
    """Whether every token of `own` has the same id in `tokenizer`."""
    ids: Mapping[str, int] = tokenizer.get_vocab()
    return all(ids.get(token) == place for token, place in own.get_vocab().items())


def _encoder_without(tokenizer: AnyTokenizer, first: int) -> Encode:
    """The tokenizer without the tokens added from the id `first` on."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return lambda text: []  # a slow tokenizer cannot forget what it knows
    from tokenizers import Tokenizer  # only where tokens were added

    values = json.loads(backend.to_str())
    values["added_tokens"] = [token for token in values["added_tokens"] if token["id"] < first]
    before = Tokenizer.from_str(json.dumps(values))
    return lambda text: list(before.encode(text, add_special_tokens=False).ids)


def _known_ids(tokenizer: AnyTokenizer, ids: list[int]) -> tuple[int, ...]:
    unknown = vocabulary_of(tokenizer).unknown
    known = [place for place in ids if place != unknown]
    return tuple(place for place in known if str(tokenizer.decode([place])).strip()) or tuple(known)
