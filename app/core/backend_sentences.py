"""Owns the backend's sentences in the language of the window: known by their templates, their values put back in.

The backend writes English, into events and answers that others read too. A template is what stands in its code
(`{path}: no row {row}`); `make texts` gathers them. What no template knows stays as it is.
"""

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar, get_args

import msgspec

from app.core import i18n
from app.core.i18n import ENGLISH, THIN, inside, tr

Part = TypeVar("Part")

FIELDS = {
    "cuts", "differs", "guess_reasons", "hint", "measure", "message", "missing", "note", "notes", "precision_reason",
    "problem", "problems", "reason", "reasons", "sentence", "shortage", "skipped", "stored_truncation",
    "first_unusable", "title", "tokenizer", "unfit", "unreadable", "unusable_reasons", "use", "warnings", "words",
}  # fmt: skip
"""Of the contract's answers and events: those that hold sentences. Values of people's data stand under other names, but for:"""
NAMES = {
    "Compression.tokenizer", "DataReport.tokenizer", "ModelChoice.title", "TextCounts.tokenizer", "TrainingLengths.tokenizer",
}  # fmt: skip
"""Those among them that hold what a person has named."""
_NAMED = {"title", "task", "kind", "split", "unit", "what", "loses", "name", "names", "words"}
"""Places that words of the window's own catalogue may fill."""
_FREE = {"name", "names", "words"}
"""Those of them that people's own words fill too, so that only the words below are translated there."""
_WORDS = {
    "train": "training", "training": "training", "validation": "validation", "test": "test", "runs": "Runs",
    "CPU": "CPU",
}  # fmt: skip
FEW_LETTERS = 10
"""A template with fewer letters knows a sentence only if its values are single words or known themselves."""
_BEGINNING = re.compile(r"(.+?: |\S+:\d+ |[^;]+? (?=is ))(.+)", re.DOTALL)
"""A setting, a file or a place in it before what is said of it."""
_KEY = re.compile(r"[a-z_]+(\.\w+)+: ")
_KEPT_PLACE = re.compile(r"(?:\w\.|\bsplit )\{(\w+)\}")
"""Part of a setting's key (`data.{split}`), or the name by which data knows a split."""
_SEPARATORS = {"\n": "\n", ". ": ". ", "; ": "; ", ", or ": tr(", or "), ", ": ", "}
"""What the backend joins sentences and lists with."""
LONGEST = 1000
"""Letters of the longest text that is looked up: what is longer is a listing or a library's, and takes minutes to try."""
_GROUPED = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
_KEPT = 2000


def told(text: str) -> str:
    """A sentence of the backend in the present language; as it is where no template knows it, and in English always."""
    if not text or len(text) > LONGEST or i18n.chosen() == ENGLISH:
        return text
    return _book(i18n.chosen()).told(text)


def told_in(part: Part) -> Part:
    """An answer or event with the sentences in it in the present language."""
    return part if i18n.chosen() == ENGLISH else _told_in(part)


def _told_in(part: Any) -> Any:
    if isinstance(part, msgspec.Struct):
        if not _may_hold(type(part)):
            return part
        kind = type(part).__name__
        values = {name: getattr(part, name) for name in part.__struct_fields__ if f"{kind}.{name}" not in NAMES}
        said = {name: _sentences(value) if name in FIELDS else _told_in(value) for name, value in values.items()}
        changed = {name: value for name, value in said.items() if value is not values[name]}
        return msgspec.structs.replace(part, **changed) if changed else part
    first = (
        next(iter(part.values() if isinstance(part, dict) else part), None) if isinstance(part, dict | list) else None
    )
    if not isinstance(first, msgspec.Struct) or not _may_hold(type(first)):
        return part  # of some ten thousand tokens none is looked at
    return (
        {key: _told_in(one) for key, one in part.items()} if isinstance(part, dict) else [_told_in(one) for one in part]
    )


@cache
def _may_hold(kind: type[msgspec.Struct]) -> bool:
    """Whether something of that kind, or within it, has a field for sentences."""
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


def _sentences(value: Any) -> Any:
    """The same with every text in it told; of counts by reason the reasons are."""
    if isinstance(value, str):
        return told(value)
    if isinstance(value, list):
        return [_sentences(one) for one in value]
    if isinstance(value, dict):
        return {told(key) if isinstance(one, int) else key: _sentences(one) for key, one in value.items()}
    return _told_in(value)


@cache
def _book(code: str) -> "_Book":
    return _Book(i18n.sentences(code))


class _Book:
    """The templates of one language; those that say most come first."""

    def __init__(self, said: dict[str, str]) -> None:
        sound = {text: words for text, words in said.items() if _places(text) == _places(words)}
        self._exact = {text.format(): words.format() for text, words in sound.items() if not _places(text)}
        templates = [_Template(text, words) for text, words in sound.items() if _places(text)]
        self._templates = sorted(templates, key=lambda one: (one.letters, len(one.text)), reverse=True)
        self._known: dict[str, str] = {}

    def told(self, text: str) -> str:
        if text not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[text] = self._found(text) or self._after_beginning(text) or self._in_parts(text) or text
        return self._known[text]

    def _found(self, text: str) -> str:
        return self._exact.get(text) or next(self._filled(text), "")

    def _filled(self, text: str) -> Iterator[str]:
        for template in self._templates:
            values = template.values(text)
            if values is None:
                continue
            if _KEY.match(next(iter(values.values()))) and template.text.startswith("{"):
                continue  # the key of a field stays where pages look for it
            for between in ("; ", ", or "):
                if any(between in value for value in values.values()) and (several := self._joined(text, between)):
                    yield several
            said = {
                name: value if name in template.kept else self._value(name, value) for name, value in values.items()
            }
            if template.letters >= FEW_LETTERS or all(
                _is_word(values[name]) or said[name] != values[name] for name in values
            ):
                yield template.words.format(**said)

    def _after_beginning(self, text: str) -> str:
        parts = _BEGINNING.fullmatch(text)
        said = (self._found(parts[2]) or self._after_beginning(parts[2])) if parts else ""
        return f"{parts[1]}{said}" if parts and said else ""

    def _in_parts(self, text: str) -> str:
        return next(filter(None, (self._joined(text, between) for between in _SEPARATORS if between in text)), "")

    def _joined(self, text: str, between: str) -> str:
        """Of several sentences, or of a list, where each is known; single words are where sentences follow them."""
        parts, said = text.split(between), []
        for part in parts:
            said.append(self._found(part) or (part if between == "; " and _is_word(part) else ""))
            if not said[-1]:
                return ""
        return _SEPARATORS[between].join(said) if said != parts else ""

    def _value(self, name: str, value: str) -> str:
        if _GROUPED.fullmatch(value):
            return value.replace(",", THIN)
        name = name.partition("_")[0]
        if name in _NAMED and (value in _WORDS or name not in _FREE):
            value = _in_catalogue(_WORDS.get(value, value))
        if whole := self._exact.get(f"{value[:1].upper()}{value[1:]}."):
            return f"{whole[:1].lower()}{whole[1:].rstrip('.')}"  # a sentence within another
        return self.told(value) if " " in value.strip() else value


@dataclass(frozen=True)
class _Template:
    """A sentence of the backend with places, and what it is in another language."""

    text: str
    words: str

    @cached_property
    def letters(self) -> int:
        """How much of a sentence is the template's own."""
        return sum(sign.isalpha() for piece in self._pieces for sign in piece)

    @cached_property
    def kept(self) -> set[str]:
        """Places whose values stay as they are."""
        return set(_KEPT_PLACE.findall(self.text))

    def values(self, text: str) -> dict[str, str] | None:
        """What stands in the places of a sentence; None of another one."""
        begins, longest, ends = self._marks
        is_alike = longest in text and text.startswith(begins) and text.endswith(ends)
        found = self._pattern.fullmatch(text) if is_alike else None
        return found.groupdict() if found else None

    @cached_property
    def _pieces(self) -> list[str]:
        return [piece for piece, *_ in string.Formatter().parse(self.text)]

    @cached_property
    def _marks(self) -> tuple[str, str, str]:
        """What a sentence begins with, holds and ends with: quicker to look for than the pattern."""
        return self._pieces[0], max(self._pieces, key=len), "" if self.text.endswith("}") else self._pieces[-1]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = string.Formatter().parse(self.text)
        made = (re.escape(piece) + _place(name) for piece, name, *_ in parts)
        return re.compile("".join(made), re.DOTALL)


def _place(name: str | None) -> str:
    """What fills it: anything, but the name of a class is one word."""
    if name is None:
        return ""
    return rf"(?P<{name}>\w+)" if name == "class_name" else f"(?P<{name}>.*?)"


def _in_catalogue(word: str) -> str:
    """A word or title of the window, also one that was made small to stand within a sentence."""
    title = f"{word[:1].upper()}{word[1:]}"
    found = tr(word) if word else ""
    return inside(tr(title)) if word and found == word and tr(title) != title else found


def _places(text: str) -> set[str] | None:
    """The names of a template's places; None where a brace has no other, so that a slip of a translator breaks nothing."""
    try:
        return {name for _, name, *_ in string.Formatter().parse(text) if name is not None}
    except ValueError:
        return None


def _is_word(value: str) -> bool:
    return bool(value) and " " not in value
