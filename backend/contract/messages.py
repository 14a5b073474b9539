"""Messages for people: English text that remembers its template and values, so that the window can translate it.

`message("{path} has no column {column}", path=path, column=column)` is an ordinary `str`: terminals, logs, files and scripts
do not need to know about this. The process remembers how its latest messages were made. Helper replies and events
carry that beside the text as a table, `{text: [template, values]}`, which the window loads with `learn`.
A message without values needs no entry: its text is the template. `make texts` collects the templates for translators.
"""

import dataclasses
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import islice
from numbers import Integral, Real
from typing import Any

Value = str | int | float

LONGEST_TEXT = 4_000
"""Characters of the longest message whose template is remembered; what is longer is a listing, and is shown as it is."""
MAX_REMEMBERED = 10_000
"""Messages that a process remembers; the oldest is forgotten, and is shown in English from then on."""
MAX_VALUES = 40
MAX_ENTRIES = 1_000
"""Entries that are read of one table; an answer or event of ours has a few."""
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([a-z]\w*)(?::(,?(?:\.\d\d?)?[dfg%]?))?\}|[{}]")
"""A placeholder is a plain name, perhaps with a number's format: never an attribute or an item of a value."""


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """How a text was made; `many` is the plural template, used for every `count` but 1."""

    template: str
    values: Mapping[str, Value]
    many: str = ""

    def encoded(self) -> list[Any]:
        """The entry in a table: `[template, values]` or `[one, many, values]`."""
        return [self.template, *filter(None, [self.many]), self.values]


_origins: OrderedDict[str, Origin] = OrderedDict()


def message(template: str, /, **values: Any) -> str:
    """A sentence with its values; braces without values stay. Values that are messages are translated with it."""
    if not values:
        return template
    return _remember(template.format(**values), template, values)


def plural(one: str, many: str, count: int, /, **values: Any) -> str:
    """The form of a sentence that matches a number, which `{count}` or `{count:,}` shows."""
    values = {"count": count, **values}
    return _remember((one if count == 1 else many).format(**values), one, values, many)


def join(separator: str, parts: Iterable[str]) -> str:
    """Join several messages into one text."""
    values = {f"part_{number}": part for number, part in enumerate(parts)}
    if len(values) < 2:
        return "".join(values.values())
    return message(separator.join(f"{{{name}}}" for name in values), **values)


def _remember(text: str, template: str, values: dict[str, Any], many: str = "") -> str:
    if len(text) <= LONGEST_TEXT:
        _keep(text, Origin(template, {name: _plain(value) for name, value in values.items()}, many))
    return text


def _keep(text: str, origin: Origin) -> None:
    _origins.pop(text, None)  # threads write here too: what another one has forgotten meanwhile must not be missed
    _origins[text] = origin
    while len(_origins) > MAX_REMEMBERED:
        _origins.popitem(last=False)


def _plain(value: Any) -> Value:
    if isinstance(value, bool) or not isinstance(value, Real):
        return format(value)
    return int(value) if isinstance(value, Integral) else float(value)


def origin_of(text: str) -> Origin | None:
    """How a text was made; None if it is not a message, has no values, or is too old."""
    return _origins.get(text)


def table_of(part: Any) -> dict[str, list[Any]]:
    """The table of all messages in an answer or event, including those used as values."""
    found: dict[str, list[Any]] = {}
    texts = list(_texts(part)) if _origins else []
    while texts:
        text = texts.pop()
        origin = _origins.get(text)
        if origin is not None and text not in found:
            found[text] = origin.encoded()
            texts += [value for value in origin.values.values() if isinstance(value, str)]
    return found


def _texts(part: Any) -> Iterable[str]:
    """The texts in a nested value. Long lists of numbers or tokens are skipped."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping):
        for key, value in part.items():
            yield from _texts(key)
            yield from _texts(value)
    elif isinstance(part, list | tuple):
        if part and isinstance(part[0], str):
            yield from (text for text in part if isinstance(text, str) and text in _origins)
        elif part and not isinstance(part[0], int | float):
            for value in part:
                yield from _texts(value)
    else:
        for name in getattr(part, "__struct_fields__", ()) or getattr(part, "__dataclass_fields__", ()):
            if name != "messages":  # a table
                yield from _texts(getattr(part, name))


def learn(table: Any) -> None:
    """Remember a table's messages. It may be untrusted: an entry that does not produce exactly its text is ignored."""
    if isinstance(table, Mapping):
        for text, encoded in islice(table.items(), MAX_ENTRIES):
            if origin := _checked(text, encoded):
                _keep(text, origin)


def _checked(text: Any, encoded: Any) -> Origin | None:
    if not (
        isinstance(text, str) and len(text) <= LONGEST_TEXT and isinstance(encoded, list) and 2 <= len(encoded) <= 3
    ):
        return None
    *templates, values = encoded
    if not (isinstance(values, Mapping) and len(values) <= MAX_VALUES):
        return None
    if not all(isinstance(one, str) and len(one) <= LONGEST_TEXT for one in (*templates, *values)):
        return None
    if not all(type(value) in (str, int, float) and value != text for value in values.values()):
        return None
    form = templates[0] if len(templates) == 1 or values.get("count") == 1 else templates[1]
    try:
        is_true = fill(form, values) == text
    except (KeyError, ValueError):
        return None
    return Origin(templates[0], values, "".join(templates[1:])) if is_true else None


def fill(template: str, values: Mapping[str, Value]) -> str:
    """Fill in a template's values as `message` would, and nothing more.

    Raises KeyError or ValueError for an invalid template, or one with missing values.
    """

    def shown(found: re.Match[str]) -> str:
        if found[0] in ("{{", "}}"):
            return found[0][0]
        if found[1] is None:
            raise ValueError("a brace alone")
        return format(values[found[1]], found[2] or "")

    return _PLACEHOLDER.sub(shown, template)


def placeholders(template: str) -> list[str]:
    """The names in a template, in order."""
    return [found[1] for found in _PLACEHOLDER.finditer(template) if found[1]]
