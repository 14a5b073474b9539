"""The steps of a tokenizer on one text: the result of each, its alignment with the text, and what it does."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from tokenizers import AddedToken, PreTokenizedString, Tokenizer, models

from backend.contract.messages import join, message
from backend.contract.tokens.steps import Stage, Step, StepPart, StepsQuestion, TokenizerSteps
from backend.tokenizers import AnyTokenizer, offsets
from backend.tokenizers.encoding import encode
from backend.tokenizers.steps.models import trace
from backend.tokenizers.steps.subject import Subject, subject_of
from backend.tokenizers.text import words_of
from backend.tokenizers.token_table import NOWHERE, Columns
from backend.tokenizers.vocabulary.pieces import Vocabulary, vocabulary_of

MAX_WORDS = 300
_NOTHING = "\0"


@dataclass(frozen=True)
class _Stretch:
    """A stretch of the original text, from `start` on; `token` is the id of an added token, which steps skip."""

    text: str
    start: int
    end: int
    token: int | None = None
    first: int = 0
    """Where the unit that is tokenised with it starts: its word, or the whole text."""


def steps(tokenizer: AnyTokenizer, question: StepsQuestion) -> TokenizerSteps:
    """Every step with its result. Raises InputError for a part that does not exist."""
    subject = subject_of(tokenizer, question)
    plain = encode(tokenizer, subject.text, None, subject.options(special_tokens=False))
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    answer = TokenizerSteps(text=subject.text, pair=subject.pair, shortened=subject.shortened, notes=subject.notes)
    if backend is None:
        return msgspec.structs.replace(answer, steps=_python_steps(tokenizer, subject, _parts(tokenizer, plain)))
    known = vocabulary_of(tokenizer)
    whole = _initial_stretches(subject)
    stretches, first = _split_added(backend, whole)
    found = [_step("words", "Words", None, [_part(one) for one in whole])] if len(whole) > 1 else []
    found += [first] if first else []
    found += _normalise(backend, stretches)
    splits, further = _pre_tokenize(backend, stretches, subject.text)
    found += further
    found.append(_step("model", type(backend.model).__name__, backend.model, _parts(tokenizer, plain)))
    found += _post_process(tokenizer, backend, subject, found[-1])
    return msgspec.structs.replace(answer, steps=found, words=_traces(splits, known))


def _traces(splits: Sequence[_Stretch], known: Vocabulary) -> list[Any]:
    once = {one.text: one for one in reversed(splits) if one.token is None}
    ordered = sorted(once.values(), key=lambda one: one.start)[:MAX_WORDS]
    return [trace(one.text, one.start, one.end, known) for one in ordered]


def _initial_stretches(subject: Subject) -> list[_Stretch]:
    """What passes through the steps separately: the text, or each of its words."""
    text = subject.text
    if not subject.pre_split:
        return [_Stretch(text, 0, len(text))] if text else []
    found, begins = words_of(text)
    return [
        _Stretch(word, begin, begin + len(word), first=begin)
        for word, begin in zip(found, begins.tolist(), strict=True)
    ]


# Added tokens


def _split_added(backend: Any, whole: Sequence[_Stretch]) -> tuple[list[_Stretch], Step | None]:
    """The text split at added tokens, including those that are matched in normalised text."""
    added = backend.get_added_tokens_decoder()
    seeker = Tokenizer(models.WordLevel({_NOTHING: 0}, unk_token=_NOTHING))
    seeker.normalizer = backend.normalizer
    for token in (added[number] for number in sorted(added)):
        (seeker.add_special_tokens if token.special else seeker.add_tokens)([_copy_token(token)])
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
        for cut in _fill_gaps(stretches, one.text)
    ]


def _copy_token(token: AddedToken) -> AddedToken:
    return AddedToken(
        token.content, single_word=token.single_word, lstrip=token.lstrip, rstrip=token.rstrip,
        normalized=token.normalized, special=token.special,
    )  # fmt: skip


def _fill_gaps(tokens: list[_Stretch], text: str) -> list[_Stretch]:
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


def _normalise(backend: Any, stretches: Sequence[_Stretch]) -> list[Step]:
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


def _pre_tokenize(backend: Any, stretches: Sequence[_Stretch], text: str) -> tuple[list[_Stretch], list[Step]]:
    """The model's input, and the pre-tokenizer's steps."""
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


def _post_processed_parts(tokenizer: Any, subject: Subject) -> list[StepPart]:
    return _parts(tokenizer, encode(tokenizer, *subject.both, subject.options(subject.special_tokens)))


def _post_process(tokenizer: Any, backend: Any, subject: Subject, before: Step) -> list[Step]:
    if backend.post_processor is None:
        return []
    parts = _post_processed_parts(tokenizer, subject)
    chain = _flat_processors(backend.post_processor)
    names = " and ".join(name for name, _ in chain)
    changed = [(one.id, one.type) for one in parts] != [(one.id, one.type) for one in before.parts]
    only = chain[0][1] if len(chain) == 1 else None
    step = _step("post_processor", names, only, parts, changed)
    sentences = [_sentence_of(name, "post_processor") for name, _ in chain]
    return [msgspec.structs.replace(step, sentence=join(" ", dict.fromkeys(one for one in sentences if one)))]


def _flat_processors(step: Any) -> list[tuple[str, Any]]:
    """Name and step; not every member of a sequence of post-processors can be extracted."""
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


def _python_steps(tokenizer: AnyTokenizer, subject: Subject, parts: list[StepPart]) -> list[Step]:
    """What is known of the steps of a tokenizer that is written in Python: its pieces, and what is put around them."""
    name = type(tokenizer).__name__
    where = (
        message("their positions in the text are certain, because each is one byte or character")
        if offsets.are_exact(tokenizer)
        else message("their positions in the text were found by searching")
    )
    before = Step(
        stage="normalizer",
        name=message("Before the model"),
        sentence=message(
            "{name} is written in Python, so it does not report what it does to a text before splitting it.", name=name
        ),
        changed=False,
        known=False,
    )
    pieces = message("These are the pieces; the tokenizer does not report how it found them, and {where}.", where=where)
    found = [before, Step(stage="model", name=name, sentence=pieces, parts=parts)]
    added = _post_processed_parts(tokenizer, subject)
    around = message("Adds special tokens around the text, and type IDs.")
    last = Step(stage="post_processor", name="Special tokens", sentence=around, parts=added)
    return [*found, last] if added != parts else found


# Parts


def _part(one: _Stretch, text: str | None = None) -> StepPart:
    return StepPart(one.text if text is None else text, one.start, one.end, one.token is not None, one.token)


def _step(stage: Stage, name: str, step: Any, parts: list[StepPart], changed: bool = True) -> Step:
    return Step(
        stage=stage, name=name, settings={} if step is None else _settings_of(step), sentence=_sentence_of(name, stage),
        parts=parts, changed=changed,
    )  # fmt: skip


LONGEST = 120
_SENTENCES = {
    "BertNormalizer": message(
        "Removes control characters, puts spaces around Chinese characters and, depending on its settings, "
        "lowercases and strips accents."
    ),
    "Lowercase": message("Converts all letters to lowercase."),
    "NFC": message("Composes letters and marks (é as one character)."),
    "NFD": message("Separates letters and marks (é becomes e and an accent)."),
    "NFKC": message("Replaces compatibility forms (ﬁ, Ａ, ²) and composes letters and marks."),
    "NFKD": message("Replaces compatibility forms (ﬁ, Ａ, ²) and separates letters and marks."),
    "Nmt": message("Removes control characters and replaces other kinds of whitespace with plain spaces."),
    "Precompiled": message("Replaces characters according to the table in the SentencePiece model (mostly NFKC)."),
    "Prepend": message("Adds a character before the text."),
    "Replace": message("Replaces one text with another."),
    "Strip": message("Removes spaces at both ends."),
    "StripAccents": message("Removes accents."),
    "ByteLevel": message(
        "Writes every byte of the text as one of 256 printable characters (Ġ is the space), so that nothing is "
        "ever unknown."
    ),
    "BertPreTokenizer": message("Splits words at whitespace and at every punctuation mark."),
    "Whitespace": message("Splits words at whitespace, and letters from other characters."),
    "WhitespaceSplit": message("Splits words at whitespace."),
    "Metaspace": message(
        "Writes spaces as ▁ and, depending on its settings, splits words there and adds one before the text."
    ),
    "Split": message("Splits the text using a pattern."),
    "Digits": message("Splits digits from everything else."),
    "Punctuation": message("Splits off punctuation marks."),
    "UnicodeScripts": message("Splits the text where the script changes."),
    "CharDelimiterSplit": message("Splits the text at one character."),
    "FixedLength": message("Splits the text into chunks of equal length."),
    "BPE": message("Starts from single characters and repeatedly merges the pair that comes first in its list."),
    "WordPiece": message("Repeatedly takes the longest matching piece of the vocabulary, from left to right."),
    "Unigram": message(
        "Of all ways to split a word, chooses the most probable one (the highest product of its pieces' probabilities)."
    ),
    "WordLevel": message("Looks up each word as a whole."),
    "TemplateProcessing": message("Adds special tokens around the text, and type IDs."),
    "BertProcessing": message("Adds [CLS] and [SEP], and type IDs."),
    "RobertaProcessing": message("Adds <s> and </s>."),
    "Words": message("The text was given as words: each one goes through all steps separately."),
    "added_tokens": message("Extracts the added tokens from the text; later steps do not change them."),
}
_OF_POST_PROCESSOR = {
    "ByteLevel": message("Depending on its settings, excludes the space before a word from its offsets.")
}


def _sentence_of(name: str, stage: str) -> str:
    """What a step does; empty for an unknown one."""
    own = _OF_POST_PROCESSOR if stage == "post_processor" else {}
    return own.get(name) or _SENTENCES.get(name, "")


def _settings_of(step: Any) -> dict[str, str]:
    """A step's settings in the library's words; long ones (tables, vocabularies) are left out."""
    try:
        stored = json.loads(step.__getstate__())
    except (TypeError, ValueError, AttributeError):  # a step written in Python has no settings that could be told
        return {}
    kept = {name: value for name, value in stored.items() if name not in ("type", "vocab", "merges", "special_tokens")}
    texts = {name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for name, value in kept.items()}  # fmt: skip
    return {name: text for name, text in texts.items() if len(text) <= LONGEST}
