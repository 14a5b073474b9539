"""The user's input for a tokenizer: the options in query form, and the parts of the text to view separately."""

from collections.abc import Sequence
from typing import Any

import msgspec

from app.core.i18n import tr
from app.core.text.token_table import TokenTable
from backend.contract.tokens.batches import BatchQuestion
from backend.contract.tokens.options import TokenOptions
from backend.contract.tokens.tokens import Message, TokenizeQuestion


class TextOptions(TokenOptions, frozen=True, kw_only=True):
    """The user's options; with the defaults the tokenizer uses its own."""

    construction: dict[str, Any] = {}
    """What differs from the tokenizer's own: `add_prefix_space`, `do_lower_case`."""
    chat_template: str | None = None
    """In place of the tokenizer's own."""

    def question(self, tokenizer: str, **given: Any) -> dict[str, Any]:
        """Arguments of `tokenize`; `given` are the text or messages with their context."""
        if given.get("messages") is not None:
            given["chat_template"] = self.chat_template
        arguments = self._shared_options() | given
        if not self.windows or self.max_length is None:
            arguments |= {"windows": False, "stride": 0}
        return msgspec.to_builtins(TokenizeQuestion(tokenizer=tokenizer, options=self.construction, **arguments))

    def without_limits(self) -> "TextOptions":
        """The same for a whole file and for steps, which are neither cut nor padded."""
        return TextOptions(
            special_tokens=self.special_tokens, construction=self.construction, chat_template=self.chat_template
        )

    def batch_question(self, tokenizer: str, texts: list[str]) -> dict[str, Any]:
        """Arguments of `tokenize_batch`."""
        arguments = self._shared_options() | {"padding": self.padding or "longest", "windows": False, "stride": 0}
        return msgspec.to_builtins(
            BatchQuestion(tokenizer=tokenizer, options=self.construction, texts=texts, **arguments)
        )  # fmt: skip

    def _shared_options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in TokenOptions.__struct_fields__}


def messages_of(turns: list[tuple[str, str]]) -> list[Message]:
    """Roles and contents in the form of a query."""
    return [Message(role, content) for role, content in turns]


# Parts of what is written that can be looked at by themselves

MAX_WORDS = 500
"""Words that are offered one by one; a longer list would be slow to open."""
SHOWN = 32
"""Characters of a message."""
TEXT_TITLES = [tr("The first text"), tr("The second text")]


def message_titles(messages: Sequence[tuple[str, str]]) -> list[str]:
    """`2. user: What is a …` for each message."""
    return [f"{number}. {role}: {_shorten(content)}" for number, (role, content) in enumerate(messages, 1)]


def word_titles(text: str) -> list[str]:
    """`3. terminal` for each word."""
    return [f"{number}. {_shorten(word)}" for number, word in enumerate(text.split()[:MAX_WORDS], 1)]


def part_of_token(table: TokenTable, index: int) -> int | None:
    """The message, word or text of a pair that a token belongs to; None if it belongs to none."""
    if not 0 <= index < len(table):
        return None
    turns, place = table.answer.turns, int(table.columns["start"][index]) + table.begin
    if turns:
        return next((number for number, turn in enumerate(turns) if turn.start <= place < turn.end), None)
    name = "sequence" if len(table.answer.sources) > 1 else "word"
    found = int(table.columns[name][index])
    return found if found >= 0 else None


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN].rstrip()}…"
