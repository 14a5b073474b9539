"""Reads a field's JSON Schema: which editor it needs, its values as text, and why a value is invalid."""

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from app.core.backend_messages import translate_message
from app.core.backend_words import capitalize, translate_word
from app.core.draft.draft_settings import value_words
from app.core.i18n import figure, group_digits, plain, tr
from backend.contract.errors import InputError
from backend.contract.spec_file import parse

AUTO = "auto"
"""The word that leaves a number to Burnish."""
_CODE = re.compile("`([^`]*)`")


@dataclass(frozen=True)
class FieldSchema:
    """One property of a section."""

    name: str
    schema: Mapping[str, Any]
    kinds: tuple[str, ...]
    """The JSON types that are allowed besides null, for example ("integer",)."""
    choices: tuple[Any, ...]
    nullable: bool
    required: bool = False
    _validator: Draft202012Validator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_validator", Draft202012Validator(dict(self.schema)))

    @property
    def title(self) -> str:
        """The field's label."""
        return str(self.schema.get("title") or capitalize(self.name.replace("_", " ")))

    @property
    def help(self) -> str:
        """One sentence about it; code is in quotation marks."""
        return _CODE.sub(lambda found: tr("“{title}”", title=found[1]), str(self.schema.get("description") or ""))

    @property
    def unit(self) -> str:
        """What a number counts."""
        return translate_word(str(self.schema.get("unit") or ""))

    @property
    def group(self) -> str:
        """The heading that it is grouped under."""
        return str(self.schema.get("group") or "")

    @property
    def advanced(self) -> bool:
        """Whether it is collapsed by default."""
        return bool(self.schema.get("advanced"))

    @property
    def default(self) -> Any:
        """The default value; None if the schema has none."""
        return self.schema.get("default")

    @property
    def examples(self) -> list[str]:
        """Commonly used values."""
        return [str(example) for example in self.schema.get("examples", ())]

    def choice_title(self, choice: Any) -> str:
        """A choice's display title."""
        return str(self.schema.get("choices", {}).get(choice, {}).get("title") or choice)

    def choice_words(self, choice: Any) -> str:
        """A choice in a line that takes other values too; in the current language."""
        return translate_word(self.choice_title(choice)) if self.editor == "mixed" else str(choice)

    @property
    def member_kinds(self) -> tuple[str, ...]:
        """The JSON types of a list's members; empty if they are lists or mappings."""
        parts = [
            part for one in _parts(self.schema) if one.get("type") == "array" for part in _parts(one.get("items", {}))
        ]
        kinds = tuple(str(part.get("type")) for part in parts)
        return kinds if kinds and set(kinds) <= {"string", "integer", "number"} else ()

    @property
    def holds_texts(self) -> bool:
        """Whether it is a mapping with text values, such as environment variables."""
        return any(
            one.get("type") == "object" and dict(one.get("additionalProperties") or {}).get("type") == "string"
            for one in _parts(self.schema)
            if isinstance(one.get("additionalProperties"), dict)
        )

    def bound(self, name: str) -> int | float | None:
        """A limit such as `minimum` of the first alternative that has one."""
        return next((part[name] for part in _parts(self.schema) if name in part), None)

    @property
    def editor(self) -> str:
        """boolean, switch (on, off or auto), enum, number (or auto), text, words, path, list, mixed or yaml."""
        if self.schema.get("path"):
            return "path"
        if self.kinds == ("boolean",):
            return "switch" if self.choices else "boolean"
        if self.choices and not self.kinds:
            return "enum"
        if self.kinds and set(self.kinds) <= {"integer", "number"} and self.choices in ((), (AUTO,)):
            return "number"
        if self.kinds == ("string",) and not self.choices:
            return "words" if len(self.examples) > 1 else "text"
        if self.kinds == ("array",) and not self.choices and self.member_kinds:
            return "list"
        if set(self.kinds) <= {"object", "array"} and not self.choices:
            return "yaml"
        return "mixed"

    def mistake(self, value: Any) -> str:
        """Why a value is invalid, as one plain sentence; empty if it is valid."""
        error = best_match(self._validator.iter_errors(value))
        return sentence_of(error, self) if error else ""


def fields_of(schema: Mapping[str, Any]) -> list[FieldSchema]:
    """The fields of an object schema, in order; `$ref` into its own `$defs` is resolved."""
    needed = schema.get("required", ())
    properties = schema.get("properties", {})
    return [field_of(name, _follow_reference(part, schema), name in needed) for name, part in properties.items()]


def field_of(name: str, schema: Mapping[str, Any], required: bool = False) -> FieldSchema:
    """One field."""
    kinds: list[str] = []
    choices: list[Any] = []
    nullable = False
    for part in _parts(schema):
        kind = part.get("type")
        named = kind if isinstance(kind, list) else [kind]
        nullable = nullable or "null" in named
        if "enum" in part or "const" in part:
            choices += part.get("enum") or [part["const"]]
        else:
            kinds += [one for one in named if one not in (None, "null")]
    return FieldSchema(name, schema, tuple(dict.fromkeys(kinds)), tuple(choices), nullable or None in choices, required)


def _parts(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The alternatives of a schema; itself if it has none."""
    return list(schema.get("anyOf") or schema.get("oneOf") or [schema])


def _follow_reference(part: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = part.get("$ref")
    if not isinstance(reference, str):
        return part
    target: Any = root
    for key in reference.removeprefix("#/").split("/"):
        target = target[key]
    return {**target, **{key: value for key, value in part.items() if key != "$ref"}}


_KIND_WORDS = {
    "integer": tr("a whole number"), "number": tr("a number such as 0.1 or 3e-5"), "string": tr("text"), "boolean": tr("yes or no"),
    "array": tr("a list such as [a, b]"), "object": tr("a mapping such as {name: value}"),
}  # fmt: skip


def accepted_words(field: FieldSchema) -> str:
    """The allowed values of a field, for people: `epoch`, `never` or a whole number."""
    words = [f"“{field.choice_words(choice)}”" for choice in field.choices if choice is not None]
    words += [_kind_words(kind, field) for kind in field.kinds if kind in _KIND_WORDS]
    if field.nullable:
        words.append(tr("nothing"))
    return (
        words[0]
        if len(words) == 1
        else tr("{words} or {words_2}", words=", ".join(words[:-1]), words_2=words[-1])
        if words
        else tr("another value")
    )


def _kind_words(kind: str, field: FieldSchema) -> str:
    usual = field.default
    if kind == "number" and isinstance(usual, int | float) and not isinstance(usual, bool):
        return tr("a number such as {usual}", usual=value_words(usual))
    return _KIND_WORDS[kind]


def sentence_of(error: ValidationError, field: FieldSchema) -> str:
    """A validation error in plain words."""
    limit = error.validator_value
    if isinstance(limit, int):
        limit = group_digits(limit)
    bounds = {
        "minimum": tr("Enter {limit} or more.", limit=limit),
        "maximum": tr("Enter {limit} or less.", limit=limit),
        "exclusiveMinimum": tr("Enter a number above {limit}.", limit=limit),
        "exclusiveMaximum": tr("Enter a number below {limit}.", limit=limit),
        "minLength": tr("This can't be empty."),
        "minItems": tr("Enter at least {limit}.", limit=limit),
        "maxLength": tr("Use at most {limit} characters.", limit=limit),
        "pattern": tr("The format is not valid."),
    }
    if "propertyNames" in error.schema_path:
        return tr("A spec can't set {name}. Set it in your environment instead.", name=error.instance)
    return bounds.get(str(error.validator)) or tr("Enter {wanted}.", wanted=accepted_words(field))


# Values as a line of text, and back


class NotUsableError(ValueError):
    """The text in an editor is not a valid value; the message says what to enter."""


def number_text(value: Any) -> str:
    """A number as people write it: 2e-05 stays short, 3.0 stays 3."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return figure(value).replace("e-0", "e-") if isinstance(value, float) else str(value)


def mixed_text(value: Any) -> str:
    """Any value on one line."""
    if value is None:
        return ""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value) if isinstance(value, str) else number_text(value)


def mixed_value(text: str, field: FieldSchema) -> Any:
    """The value of a line for a field: one of its words, a number or a list if allowed, else text."""
    text = text.strip()
    if not text:
        return None if field.nullable else ""
    for choice in field.choices:
        if choice is not None and text in (choice, field.choice_words(choice)):
            return choice
    if "," in text and text[0].isdecimal() and field.member_kinds and set(field.member_kinds) <= {"integer", "number"}:
        text = f"[{text}]"  # as people write several numbers
    if ("array" in field.kinds and text.startswith("[")) or ("object" in field.kinds and text.startswith("{")):
        try:
            return parse(text, field.title)
        except InputError as error:
            raise NotUsableError(f"{translate_message(str(error))}.") from None
    if {"integer", "number"} & set(field.kinds):
        try:
            number = float(plain(text))
        except ValueError:
            return text
        return int(number) if number.is_integer() and "integer" in field.kinds else number
    return text


def list_text(values: Any) -> str:
    """A list on one line, separated by commas; a member that contains a comma is quoted."""
    return ", ".join(f'"{value}"' if isinstance(value, str) and "," in value else str(value) for value in values or ())


def list_value(text: str, field: FieldSchema) -> Any:
    """The members of a line: numbers if the list holds numbers, else literal texts, also patterns like `*.0.*`."""
    inner = text.strip().removeprefix("[").removesuffix("]")
    cells = next(csv.reader([inner.replace("\n", ",")], skipinitialspace=True), [])
    members = [_member(cell.strip(), field.member_kinds) for cell in cells if cell.strip()]
    return members or (None if field.nullable else [])


def _member(text: str, kinds: tuple[str, ...]) -> Any:
    for kind, make in (("integer", int), ("number", float)):
        if kind in kinds:
            try:
                return make(text)
            except ValueError:
                continue
    return text


def with_texts(values: Any) -> Any:
    """A mapping whose numbers and booleans are converted to text."""
    if not isinstance(values, dict):
        return values
    return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
