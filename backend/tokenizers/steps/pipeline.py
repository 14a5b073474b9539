"""Owns the steps of a tokenizer on one text: what stands after each, and which of the text it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from tokenizers import AddedToken, PreTokenizedString, Tokenizer, models

from backend.contract.tokens.steps import Stage, Step, StepPart, StepsQuestion, TokenizerSteps
from backend.tokenizers.columns import NOWHERE, Columns
from backend.tokenizers.encoding import encode
from backend.tokenizers.sources import words_of
from backend.tokenizers.steps import python_steps, words
from backend.tokenizers.steps.subject import Subject, subject_of
from backend.tokenizers.steps.wording import sentence, settings
from backend.tokenizers.vocabulary import Vocabulary, vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MAX_WORDS = 300
_NOTHING = "\0"


@dataclass(frozen=True)
class _Stretch:
    """Of the original text, from `start` on; `token` is the id of an added token, which steps leave alone."""

    text: str
    start: int
    end: int
    token: int | None = None
    first: int = 0
    """Where that which is tokenised with it begins: its word, or the whole text."""


def steps(tokenizer: "PreTrainedTokenizerBase", question: StepsQuestion) -> TokenizerSteps:
    """Every step with what stands after it. Raises InputError for a part that is not there."""
    subject = subject_of(tokenizer, question)
    plain = encode(tokenizer, subject.text, None, subject.options(special_tokens=False))
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    told = TokenizerSteps(text=subject.text, pair=subject.pair, shortened=subject.shortened, notes=subject.notes)
    if backend is None:
        found = [python_steps.unknown(tokenizer), python_steps.modelled(tokenizer, _parts(tokenizer, plain))]
        added = _processed_parts(tokenizer, subject)
        found += [python_steps.processed(added)] if added != found[-1].parts else []
        return msgspec.structs.replace(told, steps=found)
    known = vocabulary_of(tokenizer)
    whole = _beginnings(subject)
    stretches, first = _added(backend, whole)
    found = [_split(whole)] if len(whole) > 1 else []
    found += [first] if first else []
    found += _normalised(backend, stretches)
    splits, further = _parted(backend, stretches, subject.text)
    found += further
    found.append(_modelled(tokenizer, backend, plain))
    found += _processed(tokenizer, backend, subject, found[-1])
    return msgspec.structs.replace(told, steps=found, words=_traces(splits, known))


def _beginnings(subject: Subject) -> list[_Stretch]:
    """What goes through the steps by itself: the text, or each of its words."""
    text = subject.text
    if not subject.pre_split:
        return [_Stretch(text, 0, len(text))] if text else []
    found, begins = words_of(text)
    return [
        _Stretch(word, begin, begin + len(word), first=begin)
        for word, begin in zip(found, begins.tolist(), strict=True)
    ]


def _split(whole: list[_Stretch]) -> Step:
    return _step("words", "Words", None, [_part(one) for one in whole])


# Added tokens


def _added(backend: Any, whole: Sequence[_Stretch]) -> tuple[list[_Stretch], Step | None]:
    """The text cut at added tokens; those that are looked for in normalised text are found on the way too."""
    added = backend.get_added_tokens_decoder()
    seeker = Tokenizer(models.WordLevel({_NOTHING: 0}, unk_token=_NOTHING))
    seeker.normalizer = backend.normalizer
    for token in (added[number] for number in sorted(added)):
        (seeker.add_special_tokens if token.special else seeker.add_tokens)([_copied(token)])
    seeker.encode_special_tokens = backend.encode_special_tokens
    numbers = {token.content: number for number, token in added.items()}
    found = [cut for one in whole for cut in _cut_at_added(seeker, numbers, one)]
    if all(one.token is None for one in found):
        return list(whole), None
    return found, _step("added_tokens", "added_tokens", None, [_part(one) for one in found])


def _cut_at_added(seeker: Any, numbers: dict[str, int], one: _Stretch) -> list[_Stretch]:
    tokens = seeker.encode(one.text)
    rows = zip(tokens.tokens, tokens.offsets, tokens.ids, strict=True)
    stretches = [_Stretch(piece, start, end, numbers[piece]) for piece, (start, end), number in rows if number]
    return [
        _Stretch(cut.text, one.start + cut.start, one.start + cut.end, cut.token, one.first)
        for cut in _with_what_lies_between(stretches, one.text)
    ]


def _copied(token: AddedToken) -> AddedToken:
    return AddedToken(
        token.content, single_word=token.single_word, lstrip=token.lstrip, rstrip=token.rstrip,
        normalized=token.normalized, special=token.special,
    )  # fmt: skip


def _with_what_lies_between(tokens: list[_Stretch], text: str) -> list[_Stretch]:
    whole: list[_Stretch] = []
    end = 0
    for one in [*tokens, _Stretch("", len(text), len(text))]:
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


def _parted(backend: Any, stretches: Sequence[_Stretch], text: str) -> tuple[list[_Stretch], list[Step]]:
    """What the model gets, and the pre-tokenizer's steps."""
    chain = _flat(backend.pre_tokenizer)
    found: list[Step] = []
    splits = _splits(backend, [], stretches, text)
    for number, step in enumerate(chain, 1):
        before, splits = splits, _splits(backend, chain[:number], stretches, text)
        parts = [_part(one) for one in splits]
        changed = [one.text for one in before] != [one.text for one in splits]
        found.append(_step("pre_tokenizer", type(step).__name__, step, parts, changed))
    return splits, found


def _splits(backend: Any, chain: Sequence[Any], stretches: Sequence[_Stretch], whole: str) -> list[_Stretch]:
    found: list[_Stretch] = []
    for one in stretches:
        if one.token is not None:
            found.append(one)
            continue
        parted, own = PreTokenizedString(whole[one.first : one.end]), one.start - one.first
        if own:  # some steps do at the beginning of a text what they do nowhere else
            parted.split(lambda _, text, own=own: [text[:own], text[own:]])
        if backend.normalizer is not None:
            parted.normalize(backend.normalizer.normalize)
        for step in chain:
            step.pre_tokenize(parted)
        for text, (start, end), _ in parted.get_splits("original", "char"):
            if text and start >= own:
                found.append(_Stretch(text, one.first + start, one.first + end))
    return found


def _flat(step: Any) -> list[Any]:
    if step is None:
        return []
    return [inner for one in step for inner in _flat(one)] if type(step).__name__ == "Sequence" else [step]


# Model and post-processor


def _modelled(tokenizer: Any, backend: Any, plain: Columns) -> Step:
    return _step("model", type(backend.model).__name__, backend.model, _parts(tokenizer, plain))


def _processed_parts(tokenizer: Any, subject: Subject) -> list[StepPart]:
    return _parts(tokenizer, encode(tokenizer, *subject.both, subject.options(subject.special_tokens)))


def _processed(tokenizer: Any, backend: Any, subject: Subject, before: Step) -> list[Step]:
    if backend.post_processor is None:
        return []
    parts = _processed_parts(tokenizer, subject)
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


def _parts(tokenizer: Any, columns: Columns) -> list[StepPart]:
    added = tokenizer.added_tokens_decoder
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
    ordered = sorted(once.values(), key=lambda one: one.start)[:MAX_WORDS]
    return [words.trace(one.text, one.start, one.end, known) for one in ordered]


# Parts


def _part(one: _Stretch, text: str | None = None) -> StepPart:
    return StepPart(one.text if text is None else text, one.start, one.end, one.token is not None, one.token)


def _step(stage: Stage, name: str, step: Any, parts: list[StepPart], changed: bool = True) -> Step:
    return Step(
        stage=stage, name=name, settings={} if step is None else settings(step), sentence=sentence(name, stage),
        parts=parts, changed=changed,
    )  # fmt: skip
