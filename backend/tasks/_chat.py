"""Turns prompts and conversations into tokens: messages from rows, the chat template, and truncation to a length."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE
from backend.contract.messages import message
from backend.contract.tokens.chat_template import PLAIN, PLAIN_WITH_BEGINNING, STUMBLES, reason_of, template_among
from backend.data.rows import Rows
from backend.models.chat_rendering import RenderedChat, RenderRequest, TemplateRefusal, render
from backend.tasks._language_models import texts
from backend.tasks.task import Columns

Message = dict[str, str]
"""`role` (system, user, assistant …) and `content`."""

_MARKS_OF_ANSWERS = re.compile(r"{%-?\s*(end)?generation\s*-?%}")
"""A tag that transformers adds to Jinja."""
_ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant", "model": "assistant"}


def instructions(rows: Rows, columns: Columns, chunk: range) -> list[list[Message]]:
    """Prompt (followed by its input) and, if present, the system message before and the response after it."""
    cells = {
        role: texts(rows, columns[role], chunk)
        for role in ("system", "prompt", "input", "response")
        if role in columns and columns[role] in rows.table.column_names
    }
    return [
        instruction(dict(zip(cells, values, strict=True)))
        for values in zip(*cells.values(), strict=True)
    ]  # fmt: skip


def instruction(cells: Mapping[str, str]) -> list[Message]:
    """One prompt as messages, without empty parts."""
    question = "\n\n".join(part for part in (cells["prompt"], cells.get("input", "")) if part.strip())
    texts = {"system": cells.get("system", ""), "user": question, "assistant": cells.get("response", "")}
    return [{"role": role, "content": content} for role, content in texts.items() if content.strip()]


def chats(rows: Rows, columns: Columns, chunk: range) -> list[list[Message] | str]:
    """The messages of each row, or why a cell holds none."""
    return [messages_of(cell) for cell in rows.table[columns["messages"]].slice(chunk.start, len(chunk)).to_pylist()]


def messages_of(cell: Any) -> list[Message] | str:
    """The messages of a cell: a list, or JSON of one, of `{role, content}` or `{from, value}`; else an error."""
    if isinstance(cell, str):
        try:
            cell = json.loads(cell) if cell.strip() else []
        except (ValueError, RecursionError):
            return message("messages that are not a JSON list")
    if not isinstance(cell, list) or not cell:
        return message("no messages")
    found = [_message(one) for one in cell]
    return (
        message("a message without a role or content") if None in found else [one for one in found if one is not None]
    )


def _message(one: Any) -> Message | None:
    if not isinstance(one, dict):
        return None
    role, content = one.get("role") or one.get("from"), one.get("content", one.get("value"))
    if not isinstance(role, str) or not isinstance(content, str):
        return None
    return {"role": _ROLES.get(role, role), "content": content}


def is_answered(messages: Sequence[Message]) -> bool:
    """Whether the last message is the assistant's."""
    return bool(messages) and messages[-1]["role"] == "assistant"


@dataclass(frozen=True)
class RenderedConversation:
    """A conversation as text; `answers` are the assistant's spans, first and past-the-end character."""

    text: str
    answers: list[tuple[int, int]]


@dataclass(frozen=True)
class ConversationTokens:
    """A conversation as tokens; `turn` (tokens,) counts the answers from 1 and is 0 between them."""

    ids: np.ndarray
    turn: np.ndarray


class ChatTemplate:
    """Formats conversations with the tokenizer's own template, the built-in one, or the user's."""

    def __init__(self, setting: str, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        own = template_among(tokenizer.chat_template) if setting == "auto" else setting
        # A template writes the beginning of text itself; the built-in one where the tokenizer would.
        first = tokenizer("")["input_ids"][:1]
        begins = tokenizer.bos_token_id is not None and first == [tokenizer.bos_token_id]
        of_tokenizer = message("the chat template of the tokenizer {name_or_path}", name_or_path=tokenizer.name_or_path)
        self._name = of_tokenizer if setting == "auto" and own else message("the chat template")
        self.source: Any = own or (PLAIN_WITH_BEGINNING if begins else PLAIN)

    def write(self, conversations: Sequence[list[Message]], places: Sequence[str]) -> list[RenderedConversation]:
        """Format each in full; if the last message is not the assistant's, up to where its answer starts.

        Raises InputError that names the row if the template rejects it, or renders a prefix differently from
        the whole.
        """
        requests = [
            RenderRequest(messages, not is_answered(messages), _borders(messages)) for messages in conversations
        ]
        template = self._tokenizer.get_chat_template(self.source)
        try:
            found = render(template, self._tokenizer.special_tokens_map, requests)
        except TemplateRefusal as refusal:
            raise InputError(
                "task.template: {name} rejects {places} ({reason}); correct the row, or use another template",
                "task.template",
                name=self._name,
                places=places[refusal.position],
                reason=refusal.reason,
            ) from None
        return [_to_conversation(*one) for one in zip(found, requests, places, strict=True)]


def _borders(messages: list[Message]) -> list[tuple[int, bool]]:
    """The prefixes up to each answer, and up to its end if more follows."""
    found = []
    for number, one in enumerate(messages):
        if one["role"] == "assistant":
            found.append((number, True))
            if number < len(messages) - 1:
                found.append((number + 1, False))
    return found


def _to_conversation(rendered: RenderedChat, request: RenderRequest, place: str) -> RenderedConversation:
    if None in rendered.ends:
        raise InputError(
            "task.template: it writes the start of {place} differently when the conversation "
            "continues, so answers cannot be distinguished from prompts; use another template",
            "task.template",
            place=place,
        )
    borders = [end for end in rendered.ends if end is not None]
    if not request.prompt:
        borders.append(len(rendered.text))
    return RenderedConversation(rendered.text, list(zip(borders[::2], borders[1::2], strict=True)))


def check_template(template: str) -> str:
    """The template. Raises ValueError if it is not valid Jinja."""
    from jinja2 import Environment, TemplateError  # the catalog reads this module without it

    try:
        Environment(extensions=["jinja2.ext.loopcontrols"]).parse(_MARKS_OF_ANSWERS.sub("", template))
    except (TemplateError, *STUMBLES) as error:
        raise ValueError(
            message(
                "it is not a Jinja template ({error}); use auto for the tokenizer's own template",
                error=reason_of(error),
            )
        ) from None
    return template


def tokenize_conversations(
    conversations: list[list[Message]], places: list[str], template: ChatTemplate, tokenizer: Any, *, append_end: bool
) -> list[ConversationTokens]:
    """The tokens of every conversation, formatted by the template.

    If wanted, the last answer ends with the end-of-text token where the template adds none.
    """
    written = template.write(conversations, places)
    end = tokenizer.eos_token_id if append_end else None
    found = tokens_of(written, tokenizer)
    if end is None:
        return found
    return [
        _append_end(tokens, end) if is_answered(messages) else tokens
        for messages, tokens in zip(conversations, found, strict=True)
    ]  # fmt: skip


def _append_end(tokens: ConversationTokens, end: int) -> ConversationTokens:
    last = tokens.turn.max(initial=0)
    if not last or end in tokens.ids[tokens.turn == last]:
        return tokens
    return ConversationTokens(np.append(tokens.ids, np.int32(end)), np.append(tokens.turn, np.int32(last)))


def tokens_of(written: list[RenderedConversation], tokenizer: Any) -> list[ConversationTokens]:
    """The tokens of every text, none crossing an answer's boundary; special tokens are the template's."""
    given = {"add_special_tokens": False, "return_attention_mask": False, "verbose": False}
    if not tokenizer.is_fast:
        return [_tokenize_pieces(one, tokenizer) for one in written]
    encoded = tokenizer([one.text for one in written], return_offsets_mapping=True, **given)
    found = []
    for one, ids, offsets in zip(written, encoded["input_ids"], encoded["offset_mapping"], strict=True):
        begins, ends = np.array(offsets, dtype=np.int64).reshape(-1, 2).T
        borders = np.array([border for answer in one.answers for border in answer], dtype=np.int64)
        crossed = ((begins[:, None] < borders) & (ends[:, None] > borders)).any()
        # A token across the border would be part prompt, part answer: the prompt alone is tokenised otherwise.
        found.append(
            _tokenize_pieces(one, tokenizer)
            if crossed
            else ConversationTokens(np.array(ids, np.int32), _turn_numbers(one, begins))
        )
    return found


def _turn_numbers(one: RenderedConversation, begins: np.ndarray) -> np.ndarray:
    turn = np.zeros(len(begins), dtype=np.int32)
    for number, (start, stop) in enumerate(one.answers, 1):
        turn[(begins >= start) & (begins < stop)] = number
    return turn


def _tokenize_pieces(one: RenderedConversation, tokenizer: Any) -> ConversationTokens:
    borders = [0, *(border for answer in one.answers for border in answer), len(one.text)]
    pieces = [one.text[start:stop] for start, stop in pairwise(borders)]
    ids = [tokenizer(piece, add_special_tokens=False)["input_ids"] if piece else [] for piece in pieces]
    turns = [(number + 1) // 2 if number % 2 else 0 for number in range(len(pieces))]
    return ConversationTokens(
        np.array([token for piece in ids for token in piece], np.int32),
        np.repeat(np.array(turns, np.int32), [len(piece) for piece in ids]),
    )


@dataclass(frozen=True)
class Fitted:
    """A truncated conversation: token ids, which of them are targets, and how many come before the answer."""

    ids: np.ndarray
    labels: np.ndarray
    prompt_length: int


LARGEST_SHARE = 0.75
"""Of the length that an answer may take from its prompt."""


def fit_to_length(tokens: ConversationTokens, length: int, *, answered: bool, room: int | None, on_all: bool) -> Fitted:
    """Truncate to at most `length` tokens. `room` is reserved for a generated answer; None for an answer that is given.

    The prompt is cut at its start, but only until the answer has three quarters of the length; then the
    answer is cut at its end. An earlier answer without its start is not trained on.
    """
    count = len(tokens.ids)
    last = int(np.flatnonzero(tokens.turn == tokens.turn.max())[0]) if answered and tokens.turn.any() else count
    wanted = count - last if room is None else room
    most = length - min(wanted, int(length * LARGEST_SHARE))
    first = max(0, last - most)
    prompt_length = last - first
    stop = min(count, last + length - prompt_length)
    ids, turn = tokens.ids[first:stop], tokens.turn[first:stop].copy()
    if first and turn[0] and turn[0] == tokens.turn[first - 1]:
        turn[turn == turn[0]] = 0
    labels = ids if on_all else np.where(turn > 0, ids, IGNORE).astype(np.int32)
    return Fitted(ids, labels, prompt_length)


def least_length(counts: np.ndarray, prompts: np.ndarray, room: int) -> np.ndarray:
    """The smallest length at which `fit_to_length` cuts nothing of `counts` tokens, `prompts` of them before an answer
    with `room` reserved. (conversations,)
    """
    # A prompt may fill the length less the room, but always a quarter of the length, rounded up.
    with_room, by_share = prompts + room, np.maximum(4 * prompts.astype(np.int64) - 3, 1)
    return np.maximum(counts, np.minimum(with_room, by_share))


def question_ids(kind: str, cells: Mapping[str, Any], template: ChatTemplate, tokenizer: Any) -> list[int]:
    """The tokens of one question; `cells` are a row's by role, and for a chat plain text is the user's message.

    Raises InputError if the template rejects it.
    """
    written = template.write([_messages(kind, cells)], ["the prompt"])
    return tokens_of(written, tokenizer)[0].ids.tolist()


def _messages(kind: str, cells: Mapping[str, Any]) -> list[Message]:
    if kind == "instructions":
        return instruction({role: str(cells.get(role) or "") for role in ("system", "prompt", "input")})
    found = messages_of(cells["messages"])
    return [{"role": "user", "content": str(cells["messages"])}] if isinstance(found, str) else found


def prompt_texts(features: pa.Table, tokenizer: Any) -> list[str]:
    """The model's input before each answer, including special tokens."""
    lengths = features["prompt_length"].to_pylist()
    ids = [one[:length] for one, length in zip(features["input_ids"].to_pylist(), lengths, strict=True)]
    return tokenizer.batch_decode(ids)
