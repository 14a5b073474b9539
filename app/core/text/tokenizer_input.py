"""Owns how a text is made into tokens on the Tokenizer page, as questions ask for it."""

from typing import Any

import msgspec

from backend.contract.tokens.batches import BatchQuestion
from backend.contract.tokens.options import TokenOptions
from backend.contract.tokens.tokens import Message, TokenizeQuestion


class TextOptions(TokenOptions, frozen=True, kw_only=True):
    """What a person has chosen; with the default values a tokenizer does what it does by itself."""

    construction: dict[str, Any] = {}
    """What differs from the tokenizer's own: `add_prefix_space`, `do_lower_case`."""
    chat_template: str | None = None
    """In place of the tokenizer's own."""

    def question(self, tokenizer: str, **given: Any) -> dict[str, Any]:
        """Arguments of `tokenize`; `given` are the text or messages and what belongs to them."""
        if given.get("messages") is not None:
            given["chat_template"] = self.chat_template
        asked = self._shared() | given
        if not self.windows or self.max_length is None:
            asked |= {"windows": False, "stride": 0}
        return msgspec.to_builtins(TokenizeQuestion(tokenizer=tokenizer, options=self.construction, **asked))

    def whole_question(self, tokenizer: str, **given: Any) -> dict[str, Any]:
        """Arguments of `tokenize` for a file or a very long text, which is never cut into windows or padded."""
        whole = TokenizeQuestion(
            tokenizer=tokenizer, options=self.construction, special_tokens=self.special_tokens, **given
        )
        return msgspec.to_builtins(whole)

    def batch_question(self, tokenizer: str, texts: list[str]) -> dict[str, Any]:
        """Arguments of `tokenize_batch`."""
        asked = self._shared() | {"padding": self.padding or "longest", "windows": False, "stride": 0}
        return msgspec.to_builtins(
            BatchQuestion(tokenizer=tokenizer, options=self.construction, texts=texts, **asked)
        )  # fmt: skip

    def _shared(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in TokenOptions.__struct_fields__}


def messages_of(turns: list[tuple[str, str]]) -> list[Message]:
    """Roles and contents as a question takes them."""
    return [Message(role, content) for role, content in turns]
