"""Owns a chat on its way to a text: written out by the tokenizer's template, with where each message lies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backend.contract.chat_template import PLAIN, PLAIN_WITH_BEGINNING, STUMBLES, line_of, reason_of, template_among
from backend.contract.errors import InputError
from backend.contract.tokens import Message, Turn

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FIELD = "task.template"
NOTE = "This tokenizer has no chat template: a plain one is used, as in training."


@dataclass(frozen=True)
class Chat:
    """A chat as text."""

    text: str
    turns: tuple[Turn, ...]
    notes: tuple[str, ...]


def written(
    tokenizer: "PreTrainedTokenizerBase", messages: Sequence[Message], template: str | None, generation_prompt: bool
) -> Chat:
    """The text of a chat. Raises InputError where it is empty, or the template refuses it."""
    if not messages:
        raise InputError("the chat has no messages; add one", "messages")
    own = template or template_among(tokenizer.chat_template)
    source = own or plain_template(tokenizer)
    turns = [{"role": one.role, "content": one.content} for one in messages]
    text = _text(tokenizer, turns, source, generation_prompt)
    return Chat(text, tuple(_places(tokenizer, turns, source, text)), () if own else (NOTE,))


def plain_template(tokenizer: "PreTrainedTokenizerBase") -> str:
    """What takes its place, here and in training, where it has none."""
    return PLAIN_WITH_BEGINNING if _begins(tokenizer) else PLAIN


def _text(tokenizer: "PreTrainedTokenizerBase", turns: list[dict[str, str]], source: Any, prompt: bool) -> str:
    from jinja2 import TemplateError, TemplateSyntaxError

    try:
        found = tokenizer.apply_chat_template(
            turns, chat_template=source, tokenize=False, add_generation_prompt=prompt
        )  # fmt: skip
    except TemplateSyntaxError as error:
        raise InputError(
            f"the chat template is no Jinja ({reason_of(error)}); correct it, or take the tokenizer's own",
            FIELD,
            line_of(error),
        ) from None
    except (TemplateError, *STUMBLES) as error:
        raise InputError(
            f"the chat template refuses these messages ({reason_of(error)}); change the messages or the template",
            FIELD,
            line_of(error),
        ) from None
    return str(found)


def _places(tokenizer: "PreTrainedTokenizerBase", turns: list[dict[str, str]], source: Any, text: str) -> list[Turn]:
    """None where the template writes a beginning otherwise than the whole, or refuses it."""
    found, begin = [], 0
    for number, turn in enumerate(turns, 1):
        try:
            part = _text(tokenizer, turns[:number], source, False)
        except InputError:
            return []
        if not text.startswith(part) or len(part) < begin:
            return []
        found.append(Turn(turn["role"], begin, len(part)))
        begin = len(part)
    return found


def _begins(tokenizer: "PreTrainedTokenizerBase") -> bool:
    first = tokenizer("")["input_ids"][:1]
    return tokenizer.bos_token_id is not None and first == [tokenizer.bos_token_id]
