"""Owns how a text is made into tokens on the Tokenizer page, as questions ask for it and as a run's settings."""

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

    def question(self, tokenizer: str, **given: Any) -> dict[str, Any]:
        """Arguments of `tokenize`; `given` are the text, file or messages and what belongs to them."""
        windows = self.windows and self.max_length is not None
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

    def run_settings(self) -> dict[str, Any]:
        """Spec key → value of those that a run has."""
        found: dict[str, Any] = {}
        if self.max_length is not None:
            found["task.max_length"] = self.max_length
        own = {**self.construction, "truncation_side": self.truncation_side, "padding_side": self.padding_side}
        return found | {f"model.tokenizer_options.{name}": value for name, value in own.items() if value is not None}

    def left_behind(self) -> list[str]:
        """What was changed here and a run decides by itself."""
        changed = {
            "windows and their overlap (a task has its own setting)": self.windows,
            "padding": bool(self.padding),
            "special tokens": not self.special_tokens,
        }
        return [words for words, is_changed in changed.items() if is_changed]


def taken_over(settings: dict[str, Any]) -> str:
    """The settings in words: `max_length 128, add_prefix_space true`."""
    shown = {True: "on", False: "off"}
    return ", ".join(
        f"{key.rpartition('.')[2]} {shown.get(value, value) if isinstance(value, bool) else value}"
        for key, value in settings.items()
    )


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
