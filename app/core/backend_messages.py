"""Translates the backend's messages into the language of the window, by their templates and values.

Answers and events carry a table of how their messages were made (`backend/contract/messages.py`); `learn` loads
it. A message without values is looked up as it is. Anything unknown, or not in the catalog, is shown in English.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar, get_args

import msgspec

from app.core import i18n
from app.core.i18n import ENGLISH, inside, thin, tr
from backend.contract.messages import Origin, Value, origin_of, placeholders

Part = TypeVar("Part")

FIELDS = {
    "cuts", "device", "differs", "guess_reasons", "hint", "losses", "measure", "message", "missing", "note", "notes", "precision_reason",
    "problem", "problems", "reason", "reasons", "refusal", "sentence", "sentences", "shortage", "skipped", "stored_truncation",
    "first_unusable", "title", "tokenizer", "unfit", "unreadable", "unusable_reasons", "use", "verdict", "warnings", "words",
}  # fmt: skip
"""Of the contract's answers and events: those that hold messages. Values of people's data stand under other names, but for:"""
NAMES = {
    "Compression.tokenizer", "DataReport.tokenizer", "ModelChoice.title", "TextCounts.tokenizer", "TrainingLengths.tokenizer",
}  # fmt: skip
"""Those among them that hold what a person has named."""
_WORD_PLACES = {"title", "task", "kind", "split", "unit", "what", "loses"}
"""Placeholders that single words of Burnish fill, which are in the catalogue too."""
_WORDS = {"train": "training", "runs": "Runs"}
DEEPEST = 8
"""Messages within messages that are translated."""


def translate_message(text: str) -> str:
    """A backend message in the current language; unchanged if it is not a message, and always in English."""
    return text if not text or i18n.current_language() == ENGLISH else _translate(text, 0)


def translate_messages(part: Part) -> Part:
    """An answer or event with its messages in the current language."""
    return part if i18n.current_language() == ENGLISH else _translate_part(part)


def _translate(text: str, depth: int) -> str:
    origin = origin_of(text)
    if origin is None or depth > DEEPEST:
        return i18n.lookup(text)
    template = _template(origin)
    values = {
        name: _value(name, origin.values[name], depth) for name in placeholders(template) if name in origin.values
    }
    try:
        return i18n.fill(template, **values)
    except (KeyError, ValueError):  # a slip of a translator
        return text


def _template(origin: Origin) -> str:
    if not origin.many:
        return i18n.lookup(origin.template)
    count = origin.values.get("count")
    return i18n.lookup_plural(origin.template, origin.many, count if isinstance(count, int) else 0)


def _value(name: str, value: Value, depth: int) -> Value:
    if not isinstance(value, str):
        return value
    if name.partition("_")[0] in _WORD_PLACES:
        return _word(_WORDS.get(value, value))
    if origin_of(value):
        return _translate(value, depth + 1)
    return thin(_sentence(value)) if " " in value.strip() else thin(value)


def _sentence(value: str) -> str:
    """A message without values; also inside another, without its capital and full stop."""
    found = i18n.lookup(value)
    whole = f"{value[:1].upper()}{value[1:]}."
    if found == value and (translated := i18n.lookup(whole)) != whole:
        return f"{translated[:1].lower()}{translated[1:].rstrip('.')}"
    return found


def _word(word: str) -> str:
    """A word or title of the window, also in lower case as inside a sentence."""
    if origin_of(word):
        return _translate(word, DEEPEST)
    title = f"{word[:1].upper()}{word[1:]}"
    found = i18n.lookup(word)
    return inside(tr(title)) if word and found == word and tr(title) != title else found


def _translate_part(part: Any) -> Any:
    if isinstance(part, msgspec.Struct):
        if not _may_hold(type(part)):
            return part
        kind = type(part).__name__
        values = {name: getattr(part, name) for name in part.__struct_fields__ if f"{kind}.{name}" not in NAMES}
        translated = {
            name: _all_translated(value) if name in FIELDS else _translate_part(value) for name, value in values.items()
        }
        changed = {name: value for name, value in translated.items() if value is not values[name]}
        return msgspec.structs.replace(part, **changed) if changed else part
    first = (
        next(iter(part.values() if isinstance(part, dict) else part), None) if isinstance(part, dict | list) else None
    )
    if not isinstance(first, msgspec.Struct) or not _may_hold(type(first)):
        return part  # of some ten thousand tokens none is looked at
    return (
        {key: _translate_part(one) for key, one in part.items()}
        if isinstance(part, dict)
        else [_translate_part(one) for one in part]
    )


@cache
def _may_hold(kind: type[msgspec.Struct]) -> bool:
    """Whether a value of that type contains, at any depth, a field for messages."""
    kinds = [kind]
    for one in kinds:
        fields = msgspec.structs.fields(one)
        if any(field.name in FIELDS for field in fields):
            return True
        kinds += [inner for field in fields for inner in _structs_in(field.type) if inner not in kinds]
    return False


def _structs_in(kind: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for inner in get_args(kind):
        yield from _structs_in(inner)


def _all_translated(value: Any) -> Any:
    """The same with every text in it translated; in counts by reason, the reasons."""
    if isinstance(value, str):
        return translate_message(value)
    if isinstance(value, list):
        return [_all_translated(one) for one in value]
    if isinstance(value, dict):
        return {
            translate_message(key) if isinstance(one, int) else key: _all_translated(one) for key, one in value.items()
        }
    return _translate_part(value)
