"""Owns the steps of a tokenizer on one text: what stands after each, and which of the text it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from tokenizers import AddedToken, PreTokenizedString, Tokenizer, models

from backend.contract.token_options import TokenOptions
from backend.contract.tokenizer_steps import MOST_CHARACTERS, Stage, Step, StepPart, TokenizerSteps
from backend.tokenizers.columns import NOWHERE, Columns
from backend.tokenizers.encoding import encode
from backend.tokenizers.sources import cleaned
from backend.tokenizers.steps import words
from backend.tokenizers.steps.wording import sentence, settings
from backend.tokenizers.vocabulary import Vocabulary, vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MOST_WORDS = 300
_NOTHING = "\0"


@dataclass(frozen=True)
class _Stretch:
    """Of the original text, from `start` on; `token` is the id of an added token, which steps leave alone."""

    text: str
    start: int
    end: int
    token: int | None = None


def steps(tokenizer: "PreTrainedTokenizerBase", text: str, pair: str | None, special_tokens: bool) -> TokenizerSteps:
    """Every step with what stands after it."""
    told, shortened = _told(text)
    if pair is not None:
        pair, also = _told(pair)
        shortened = shortened or also
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        name = type(tokenizer).__name__
        return TokenizerSteps(
            text=told, pair=pair, shortened=shortened,
            problem=f"{name} is written in Python and keeps its steps to itself; only its tokens can be shown.",
        )  # fmt: skip
    known = vocabulary_of(tokenizer)
    stretches, first = _added(backend, told)
    found = [first] if first else []
    found += _normalised(backend, stretches)
    splits, further = _parted(backend, stretches)
    found += further
    plain = encode(tokenizer, told, None, TokenOptions(special_tokens=False))
    found.append(_modelled(tokenizer, backend, plain))
    found += _processed(tokenizer, backend, told, pair, special_tokens, found[-1])
    return TokenizerSteps(
        text=told, pair=pair, shortened=shortened, steps=found, words=_traces(splits, known)
    )  # fmt: skip


def _told(text: str) -> tuple[str, bool]:
    """What is shown of a text, and whether that is less than the whole."""
    text = cleaned(text)[0]
    return text[:MOST_CHARACTERS], len(text) > MOST_CHARACTERS


# Added tokens


def _added(backend: Any, text: str) -> tuple[list[_Stretch], Step | None]:
    """The text cut at added tokens; those that are looked for in normalised text are found on the way too."""
    added = backend.get_added_tokens_decoder()
    seeker = Tokenizer(models.WordLevel({_NOTHING: 0}, unk_token=_NOTHING))
    seeker.normalizer = backend.normalizer
    for token in (added[number] for number in sorted(added)):
        (seeker.add_special_tokens if token.special else seeker.add_tokens)([_copied(token)])
    seeker.encode_special_tokens = backend.encode_special_tokens
    numbers = {token.content: number for number, token in added.items()}
    tokens = seeker.encode(text)
    stretches: list[_Stretch] = []
    for piece, (start, end), number in zip(tokens.tokens, tokens.offsets, tokens.ids, strict=True):
        token = numbers[piece] if number else None
        stretches.append(_Stretch(piece if number else text[start:end], start, end, token))
    if all(one.token is None for one in stretches):
        return [_Stretch(text, 0, len(text))] if text else [], None
    stretches = _with_what_lies_between(stretches, text)
    return stretches, _step("added_tokens", "added_tokens", None, [_part(one) for one in stretches])


def _copied(token: AddedToken) -> AddedToken:
    return AddedToken(
        token.content, single_word=token.single_word, lstrip=token.lstrip, rstrip=token.rstrip,
        normalized=token.normalized, special=token.special,
    )  # fmt: skip


def _with_what_lies_between(stretches: list[_Stretch], text: str) -> list[_Stretch]:
    """A normaliser may leave the ends of a stretch out of its offsets; they belong to it all the same."""
    whole: list[_Stretch] = []
    end = 0
    for one in [*(one for one in stretches if one.token is not None), _Stretch("", len(text), len(text))]:
        if one.start > end:
            whole.append(_Stretch(text[end : one.start], end, one.start))
        if one.token is not None:
            whole.append(one)
        end = max(end, one.end)
    return whole


# Normaliser and pre-tokenizer


def _normalised(backend: Any, stretches: Sequence[_Stretch]) -> list[Step]:
    found: list[Step] = []
    now = [one.text for one in stretches]
    for normalizer in _flat(backend.normalizer):
        before = now
        now = [
            text if one.token is not None else normalizer.normalize_str(text)
            for text, one in zip(before, stretches, strict=True)
        ]
        parts = [_part(one, text) for one, text in zip(stretches, now, strict=True)]
        found.append(_step("normalizer", type(normalizer).__name__, normalizer, parts, now != before))
    return found


def _parted(backend: Any, stretches: Sequence[_Stretch]) -> tuple[list[_Stretch], list[Step]]:
    """What the model gets, and the pre-tokenizer's steps."""
    chain = _flat(backend.pre_tokenizer)
    found: list[Step] = []
    splits = _splits(backend, [], stretches)
    for number, step in enumerate(chain, 1):
        before, splits = splits, _splits(backend, chain[:number], stretches)
        parts = [_part(one) for one in splits]
        changed = [one.text for one in before] != [one.text for one in splits]
        found.append(_step("pre_tokenizer", type(step).__name__, step, parts, changed))
    return splits, found


def _splits(backend: Any, chain: Sequence[Any], stretches: Sequence[_Stretch]) -> list[_Stretch]:
    found: list[_Stretch] = []
    for one in stretches:
        if one.token is not None:
            found.append(one)
            continue
        parted = PreTokenizedString(one.text)
        if backend.normalizer is not None:
            parted.normalize(backend.normalizer.normalize)
        for step in chain:
            step.pre_tokenize(parted)
        for text, (start, end), _ in parted.get_splits("original", "char"):
            if text:
                found.append(_Stretch(text, one.start + start, one.start + end))
    return found


def _flat(step: Any) -> list[Any]:
    if step is None:
        return []
    return [inner for one in step for inner in _flat(one)] if type(step).__name__ == "Sequence" else [step]


# Model and post-processor


def _modelled(tokenizer: Any, backend: Any, plain: Columns) -> Step:
    return _step("model", type(backend.model).__name__, backend.model, _parts(tokenizer, backend, plain))


def _processed(
    tokenizer: Any, backend: Any, text: str, pair: str | None, special_tokens: bool, before: Step
) -> list[Step]:
    if backend.post_processor is None:
        return []
    columns = encode(tokenizer, text, pair, TokenOptions(special_tokens=special_tokens))
    parts = _parts(tokenizer, backend, columns)
    chain = _flat_processors(backend.post_processor)
    names = " and ".join(name for name, _ in chain)
    changed = [(one.id, one.type) for one in parts] != [(one.id, one.type) for one in before.parts]
    only = chain[0][1] if len(chain) == 1 else None
    told = _step("post_processor", names, only, parts, changed)
    sentences = [sentence(name, "post_processor") for name, _ in chain]
    return [msgspec.structs.replace(told, sentence=" ".join(dict.fromkeys(one for one in sentences if one)))]


def _flat_processors(step: Any) -> list[tuple[str, Any]]:
    """Name and step; the members of a sequence of post-processors cannot all be taken out of it."""
    name = type(step).__name__
    if name != "Sequence":
        return [(name, step)]
    try:
        return [found for one in step for found in _flat_processors(one)]
    except TypeError:
        return [(name, step)]


def _parts(tokenizer: Any, backend: Any, columns: Columns) -> list[StepPart]:
    added = backend.get_added_tokens_decoder()
    pieces = tokenizer.convert_ids_to_tokens(columns.ids.tolist())
    rows = zip(
        pieces, *(getattr(columns, name).tolist() for name in ("start", "end", "ids", "type", "sequence")), strict=True
    )
    return [
        StepPart(str(piece), start, end, number in added or sequence == NOWHERE, number, kind, sequence)
        for piece, start, end, number, kind, sequence in rows
    ]


def _traces(splits: Sequence[_Stretch], known: Vocabulary) -> list[Any]:
    once = {one.text: one for one in reversed(splits) if one.token is None}
    ordered = sorted(once.values(), key=lambda one: one.start)[:MOST_WORDS]
    return [words.trace(one.text, one.start, one.end, known) for one in ordered]


# Parts


def _part(one: _Stretch, text: str | None = None) -> StepPart:
    return StepPart(one.text if text is None else text, one.start, one.end, one.token is not None, one.token)


def _step(stage: Stage, name: str, step: Any, parts: list[StepPart], changed: bool = True) -> Step:
    return Step(
        stage=stage, name=name, settings={} if step is None else settings(step), sentence=sentence(name, stage),
        parts=parts, changed=changed,
    )  # fmt: skip
