"""The subject of the steps: a text, a chat, words or a pair, or one part of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.tokens.options import TokenOptions
from backend.contract.tokens.steps import MAX_CHARACTERS, StepsQuestion
from backend.tokenizers import AnyTokenizer, chat
from backend.tokenizers.chat import Chat
from backend.tokenizers.encoding import encode
from backend.tokenizers.text import replace_surrogates, words_of

CUT_OTHERWISE = message(
    "Within the chat, some tokens of this message differ, because it is tokenized together with what comes "
    "before and after it."
)
NOT_TOLD_APART = message(
    "The chat template doesn't show where each message starts and ends, so these are the steps for the whole chat."
)


@dataclass(frozen=True)
class Subject:
    """A text with its context, as far as it is shown."""

    text: str
    pair: str | None = None
    """The other text; it comes before `text` if that is the second."""
    is_second: bool = False
    pre_split: bool = False
    special_tokens: bool = True
    shortened: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def both(self) -> tuple[str, str | None]:
        """First and second text, as passed to the tokenizer."""
        return (self.pair or "", self.text) if self.is_second else (self.text, self.pair)

    def options(self, special_tokens: bool) -> TokenOptions:
        """How it is tokenized."""
        return TokenOptions(special_tokens=special_tokens, pre_split=self.pre_split)


def subject_of(tokenizer: AnyTokenizer, question: StepsQuestion) -> Subject:
    """The requested subject. Raises InputError if there is no such part."""
    if question.messages is not None:
        return _of_chat(tokenizer, question)
    text, pair, part = replace_surrogates(question.text or "")[0], question.pair, question.part
    pair = None if pair is None else replace_surrogates(pair)[0]
    if question.pre_split and part is not None:
        text = _part_of(words_of(text)[0], part, "word")
    is_second = pair is not None and part == 1
    shown, other = (pair, text) if is_second else (text, pair)
    assert shown is not None
    return Subject(
        shown[:MAX_CHARACTERS],
        None if other is None else other[:MAX_CHARACTERS],
        is_second,
        question.pre_split,
        question.special_tokens,
        max(len(shown), len(other or "")) > MAX_CHARACTERS,
    )


def _of_chat(tokenizer: AnyTokenizer, question: StepsQuestion) -> Subject:
    written = chat.render_chat(tokenizer, question.messages or [], question.chat_template, question.generation_prompt)
    text, notes = replace_surrogates(written.text)[0], []
    if question.part is not None and not written.turns:
        notes = [NOT_TOLD_APART]
    elif question.part is not None:
        text, notes = _message(tokenizer, written, question.part)
    return Subject(
        text[:MAX_CHARACTERS], special_tokens=False, shortened=len(text) > MAX_CHARACTERS, notes=notes
    )  # fmt: skip


def _message(tokenizer: AnyTokenizer, written: Chat, part: int) -> tuple[str, list[str]]:
    turn = _part_of(written.turns, part, "message")
    whole = replace_surrogates(written.text)[0]
    text, plain = whole[turn.start : turn.end], TokenOptions(special_tokens=False)
    within = encode(tokenizer, whole, None, plain)
    own = within.ids[(within.start < turn.end) & (within.end > turn.start)]
    alone = encode(tokenizer, text, None, plain)
    alone = alone.ids[alone.end > alone.start]
    return text, [] if own.tolist() == alone.tolist() else [CUT_OTHERWISE]


def _part_of(parts: Sequence[Any], part: int, name: str) -> Any:
    if not 0 <= part < len(parts):
        raise InputError(
            "part: there is no {name} {part}; there are {parts}", name=name, part=part + 1, parts=len(parts)
        )
    return parts[part]
