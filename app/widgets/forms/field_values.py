"""Owns turning the values of a spec into a line of text and back."""

import csv
import json
from typing import Any

from app.core.backend_sentences import told
from app.core.i18n import figure, plain
from app.widgets.forms.schema_field import FieldSchema
from backend.contract.errors import InputError
from backend.contract.spec_file import parse


class NotUsableError(ValueError):
    """The text in an editor is no value; the message says what to enter."""


def number_text(value: Any) -> str:
    """A number as people write it: 2e-05 stays short, 3.0 stays 3."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return figure(value).replace("e-0", "e-") if isinstance(value, float) else str(value)


def mixed_text(value: Any) -> str:
    """Any value in one line."""
    if value is None:
        return ""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value) if isinstance(value, str) else number_text(value)


def mixed_value(text: str, field: FieldSchema) -> Any:
    """What a line means for a field: one of its words, a number or a list where it takes such, else text."""
    text = text.strip()
    if not text:
        return None if field.nullable else ""
    if text in field.choices:
        return text
    if ("array" in field.kinds and text.startswith("[")) or ("object" in field.kinds and text.startswith("{")):
        try:
            return parse(text, field.title)
        except InputError as error:
            raise NotUsableError(f"{told(str(error))}.") from None
    if {"integer", "number"} & set(field.kinds):
        try:
            number = float(plain(text))
        except ValueError:
            return text
        return int(number) if number.is_integer() and "integer" in field.kinds else number
    return text


def list_text(values: Any) -> str:
    """A list in one line, its members separated by commas; a member with a comma stands in quotes."""
    return ", ".join(f'"{value}"' if isinstance(value, str) and "," in value else str(value) for value in values or ())


def list_value(text: str, field: FieldSchema) -> Any:
    """The members of a line: numbers where the list takes numbers, else texts as they are, patterns such as `*.0.*` too."""
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
    """A mapping whose numbers and truth values are written as the texts that they stand for."""
    if not isinstance(values, dict):
        return values
    return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
