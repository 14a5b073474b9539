"""Owns what a language model is asked: a question written out by the template, up to where its answer begins."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from backend.tasks._chat import Message, Template, instruction, messages_of, tokens_of


def question_ids(kind: str, cells: Mapping[str, Any], template: Template, tokenizer: Any) -> list[int]:
    """The tokens of one question; `cells` are a row's by their roles, and of a chat a plain text is the user's word.

    Raises InputError where the template refuses it.
    """
    written = template.write([_messages(kind, cells)], ["the prompt"])
    return tokens_of(written, tokenizer)[0].ids.tolist()


def _messages(kind: str, cells: Mapping[str, Any]) -> list[Message]:
    if kind == "instructions":
        return instruction({role: str(cells.get(role) or "") for role in ("system", "prompt", "input")})
    found = messages_of(cells["messages"])
    return [{"role": "user", "content": str(cells["messages"])}] if isinstance(found, str) else found


def prompts(features: pa.Table, tokenizer: Any) -> list[str]:
    """What the model got before it answered, special tokens and all."""
    lengths = features["prompt_length"].to_pylist()
    ids = [one[:length] for one, length in zip(features["input_ids"].to_pylist(), lengths, strict=True)]
    return tokenizer.batch_decode(ids)
