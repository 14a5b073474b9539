"""Owns a chat on its way to a text: written out by the tokenizer's template, with where each message lies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backend.contract.errors import InputError
from backend.contract.tokens import Message, Turn

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PLAIN = (
    "{% for message in messages %}"
    "{% if message.role == 'system' %}{{ message.content }}\n\n"
    "{% elif message.role == 'assistant' %}Assistant: {{ message.content }}{{ eos_token }}\n"
    "{% else %}User: {{ message.content }}\n"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)
"""For a tokenizer without a template; what a run trains with then."""
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
    own = template or (tokenizer.chat_template if isinstance(tokenizer.chat_template, str | dict) else None)
    source = own or (("{{ bos_token }}" if _begins(tokenizer) else "") + PLAIN)
    turns = [{"role": one.role, "content": one.content} for one in messages]
    text = _text(tokenizer, turns, source, generation_prompt)
    return Chat(text, tuple(_places(tokenizer, turns, source, text)), () if own else (NOTE,))


def _text(tokenizer: "PreTrainedTokenizerBase", turns: list[dict[str, str]], source: Any, prompt: bool) -> str:
    from jinja2 import TemplateError

    try:
        found = tokenizer.apply_chat_template(
            turns, chat_template=source, tokenize=False, add_generation_prompt=prompt
        )  # fmt: skip
    except (TemplateError, TypeError, ValueError, KeyError, RecursionError) as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(
            f"the chat template refuses these messages ({why}); change the messages or the template", "task.template"
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
