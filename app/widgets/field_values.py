"""Owns turning the values of a spec into a line of text and back."""

from typing import Any

from app.widgets.schema_field import FieldSchema
from backend.contract.errors import InputError
from backend.contract.spec.file import parse


class NotUsableError(ValueError):
    """The text in an editor is no value; the message says what to enter."""


def number_text(value: Any) -> str:
    """A number as people write it: 2e-05 stays short, 3.0 stays 3."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value).replace("e-0", "e-") if isinstance(value, float) else str(value)


def mixed_text(value: Any) -> str:
    """Any value in one line."""
    if value is None:
        return ""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return str(value) if isinstance(value, str) else number_text(value)


def mixed_value(text: str, field: FieldSchema) -> Any:
    """What a line means for a field: one of its words, a number or a list where it takes such, else text."""
    text = text.strip()
    if not text:
        return None if field.nullable else ""
    if text in field.choices:
        return text
    if "array" in field.kinds and text.startswith("["):
        try:
            return parse(text, field.title)
        except InputError as error:
            raise NotUsableError(f"{error}.") from None
    if {"integer", "number"} & set(field.kinds):
        try:
            number = float(text)
        except ValueError:
            return text
        return int(number) if number.is_integer() and "integer" in field.kinds else number
    return text
