"""Formats a chat with the tokenizer's template, with the position of each message."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.tokens.chat_template import PLAIN, PLAIN_WITH_BEGINNING, template_among
from backend.contract.tokens.tokens import Message, MessageSpan
from backend.models.chat_rendering import RenderRequest, TemplateRefusal, render
from backend.tokenizers import AnyTokenizer

FIELD = "task.template"
NOTE = message("This tokenizer has no chat template: a plain one is used, as in training.")


@dataclass(frozen=True)
class Chat:
    """A chat as text."""

    text: str
    turns: tuple[MessageSpan, ...]
    notes: tuple[str, ...]


def render_chat(
    tokenizer: AnyTokenizer, messages: Sequence[Message], template: str | None, generation_prompt: bool
) -> Chat:
    """The text of a chat. Raises InputError if it is empty, or the template rejects it."""
    if not messages:
        raise InputError("the chat has no messages; add one", "messages")
    own = template or template_among(tokenizer.chat_template)
    source = own or plain_template(tokenizer)
    turns = [{"role": one.role, "content": one.content} for one in messages]
    text, places = _render(tokenizer, turns, source, generation_prompt)
    return Chat(text, tuple(places), () if own else (NOTE,))


def plain_template(tokenizer: AnyTokenizer) -> str:
    """The fallback template, here and in training, for a tokenizer without one."""
    return PLAIN_WITH_BEGINNING if _adds_bos(tokenizer) else PLAIN


def _render(
    tokenizer: AnyTokenizer, turns: list[dict[str, str]], source: str, prompt: bool
) -> tuple[str, list[MessageSpan]]:
    """The text and each message's position; no positions if the template rejects a prefix or renders it differently."""
    prefixes = [(number, False) for number in range(1, len(turns) + 1)]
    template, special = tokenizer.get_chat_template(source), tokenizer.special_tokens_map
    try:
        (whole,) = render(template, special, [RenderRequest(turns, prompt)])
    except TemplateRefusal as refusal:
        problem = (
            message(
                "the chat template is not valid Jinja ({reason}); correct it, or use the tokenizer's own",
                reason=refusal.reason,
            )
            if refusal.is_syntax
            else message(
                "the chat template rejects these messages ({reason}); change the messages or the template",
                reason=refusal.reason,
            )
        )
        raise InputError(problem, FIELD, at_line=refusal.line) from None
    try:
        (parts,) = render(template, special, [RenderRequest(turns, prompt, prefixes)])
    except TemplateRefusal:
        return whole.text, []
    return whole.text, _message_spans(turns, parts.ends)


def _message_spans(turns: list[dict[str, str]], ends: Sequence[int | None]) -> list[MessageSpan]:
    found, begin = [], 0
    for turn, end in zip(turns, ends, strict=True):
        if end is None or end < begin:
            return []
        found.append(MessageSpan(turn["role"], begin, end))
        begin = end
    return found


def _adds_bos(tokenizer: AnyTokenizer) -> bool:
    first = tokenizer("")["input_ids"][:1]
    return tokenizer.bos_token_id is not None and first == [tokenizer.bos_token_id]
