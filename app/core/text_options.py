"""Owns how a text is made into tokens on the Tokenizer page, as questions ask for it."""

import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

from backend.contract.token_batches import BatchQuestion
from backend.contract.tokens import Message, Padding, Side, TokenizeQuestion, Truncation


@dataclass(frozen=True)
class TextOptions:
    """None leaves to the tokenizer what it does by itself."""

    special_tokens: bool = True
    construction: dict[str, Any] = field(default_factory=dict)
    """What differs from the tokenizer's own: `add_prefix_space`, `do_lower_case`."""
    max_length: int | None = None
    truncation: Truncation = "longest_first"
    truncation_side: Side | None = None
    windows: bool = False
    stride: int = 0
    padding: Padding = ""
    padding_side: Side | None = None
    pad_to_multiple_of: int | None = None
    chat_template: str | None = None
    """In place of the tokenizer's own."""

    def question(self, tokenizer: str, **given: Any) -> dict[str, Any]:
        """Arguments of `tokenize`; `given` are the text, file or messages and what belongs to them."""
        windows = self.windows and self.max_length is not None
        if given.get("messages") is not None:
            given["chat_template"] = self.chat_template
        return msgspec.to_builtins(
            TokenizeQuestion(
                tokenizer=tokenizer, options=self.construction, special_tokens=self.special_tokens,
                max_length=self.max_length, truncation=self.truncation, truncation_side=self.truncation_side,
                windows=windows, stride=self.stride if windows else 0, padding=self.padding,
                padding_side=self.padding_side, pad_to_multiple_of=self.pad_to_multiple_of, **given,
            )
        )  # fmt: skip

    def file_question(self, tokenizer: str, path: str) -> dict[str, Any]:
        """Arguments of `tokenize` for a file, which is never cut into windows or padded."""
        whole = TokenizeQuestion(
            tokenizer=tokenizer, options=self.construction, special_tokens=self.special_tokens, file=path
        )
        return msgspec.to_builtins(whole)

    def batch_question(self, tokenizer: str, texts: list[str]) -> dict[str, Any]:
        """Arguments of `tokenize_batch`."""
        return msgspec.to_builtins(
            BatchQuestion(
                tokenizer=tokenizer, texts=texts, options=self.construction, special_tokens=self.special_tokens,
                max_length=self.max_length, truncation_side=self.truncation_side, padding=self.padding or "longest",
                padding_side=self.padding_side, pad_to_multiple_of=self.pad_to_multiple_of,
            )
        )  # fmt: skip


def messages_of(turns: list[tuple[str, str]]) -> list[Message]:
    """Roles and contents as a question takes them."""
    return [Message(role, content) for role, content in turns]


def stored_limits(sentence: str) -> tuple[int | None, Padding]:
    """The truncation and padding that a tokenizer's file has stored, from the sentence that tells of them."""
    cut = re.search(r"truncation to (\d+)", sentence)
    filled = re.search(r"padding to (\d+|the longest)", sentence)
    padding: Padding = "" if filled is None else "longest" if filled[1].startswith("the") else "max_length"
    length = cut or (filled if padding == "max_length" else None)
    return int(length[1]) if length else None, padding
