"""Owns how one value of a row reads on screen: lists of words as a sentence, answers and chats as people say them."""

from typing import Any

MAX_MEMBERS = 200
"""Of a list; what comes after is not read, let alone shown."""


def cell_text(value: Any, most: int) -> str:
    """At most so many characters of a value; nothing for a missing one."""
    text = value if isinstance(value, str) else _text(value)
    return text if len(text) <= most else f"{text[:most]}…"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return _mapping(value)
    if isinstance(value, list | tuple):
        return _list(list(value[:MAX_MEMBERS]))
    return str(value)


def _list(values: list[Any]) -> str:
    if any(isinstance(value, dict) for value in values):
        return "\n".join(_text(value) for value in values)
    # Words stay one sentence; texts that hold spaces themselves are kept apart.
    apart = any(isinstance(value, str) and " " in value for value in values)
    return (" | " if apart else " ").join(_text(value) for value in values)


def _mapping(value: dict[str, Any]) -> str:
    if {"role", "content"} <= value.keys():
        return f"{value['role']}: {_text(value['content'])}"
    if {"text", "answer_start"} <= value.keys():
        return _answers(value)
    return ", ".join(f"{name}: {_text(inner)}" for name, inner in value.items() if inner is not None)


def _answers(value: dict[str, Any]) -> str:
    """SQuAD's: each different text once, with the place where it begins."""
    texts, starts = value["text"], value["answer_start"]
    pairs = (
        list(zip(texts, starts, strict=False))
        if isinstance(texts, list) and isinstance(starts, list)
        else [(texts, starts)]
    )
    shown = dict.fromkeys(f"{text} (at {start})" for text, start in pairs if text is not None)
    return " | ".join(shown)
