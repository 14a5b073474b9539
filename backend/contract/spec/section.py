"""The base of every section: frozen, complete, strict about unknown keys, with one-sentence errors."""

from difflib import get_close_matches
from functools import reduce
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from backend.contract.errors import InputError
from backend.contract.messages import message, plural


class Section(BaseModel):
    """A frozen group of settings. Every field has a title, a description, bounds and a default.

    Field extras in the JSON Schema: `advanced` (folded until asked for), `hidden` (accepted and never offered), `path` (a file or folder; relative values
    are taken from the spec file's folder), `group` (a heading of the form), `unit`,
    `decoding` (changes answers and scores alone: nothing that is trained on, so another value needs no new features).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=False)


AnySection = TypeVar("AnySection", bound=Section)


def validate(section: type[AnySection], values: dict[str, Any], prefix: str = "") -> AnySection:
    """Build the section from `values`. Raises InputError that names the key, the value and the valid choices."""
    try:
        return section.model_validate(values)
    except ValidationError as error:
        raise InputError(*_first_mistake(section, error, prefix)) from None


def _first_mistake(section: type[Section], error: ValidationError, prefix: str) -> tuple[str, str]:
    mistakes = error.errors(include_url=False)
    mistake, names = mistakes[0], _names(mistakes[0])
    key = ".".join([*filter(None, [prefix]), *map(_format_key, names)])
    if mistake["type"] == "extra_forbidden":
        owner, base = _section_of(section, names[:-1]), ".".join(filter(None, [prefix, *names[:-1]]))
        near = get_close_matches(names[-1], _offered_names(owner), 1)
        known = (
            message("did you mean {near}?", near=near[0])
            if near
            else message(
                "the settings in {base} are {owner}", base=base or "a spec", owner=", ".join(_offered_names(owner))
            )
        )
        return message("{key}: no such setting; {known}", key=key, known=known), key
    if mistake["type"] == "missing":
        return message("{key}: this setting is required and has no default", key=key), key
    # A union has one mistake for each of its members.
    reasons = reduce(_either, dict.fromkeys(_to_reason(other) for other in mistakes if _names(other) == names))
    if isinstance(mistake["input"], dict):  # settings that do not go together; they are more than one value
        return message("{key}: {reasons}", key=key, reasons=reasons), key
    return message(
        "{key}: {mistake} cannot be used: {reasons}", key=key, mistake=repr(mistake["input"]), reasons=reasons
    ), key


def _offered_names(section: type[Section]) -> list[str]:
    extras = ((name, field.json_schema_extra) for name, field in section.model_fields.items())
    return [name for name, extra in extras if not (isinstance(extra, dict) and extra.get("hidden"))]


def _names(mistake: ErrorDetails) -> list[str]:
    *before, last = mistake["loc"] or ("",)
    is_surely_key = mistake["type"] == "extra_forbidden"  # any text at all: it comes from the file
    return [str(part) for part in before if _is_key(part)] + ([str(last)] if is_surely_key or _is_key(last) else [])


def _format_key(name: str) -> str:
    """A key formatted for a sentence: in quotes if it has no visible letters."""
    return name if name.isprintable() and name.strip() else ascii(name)


def _either(first: str, second: str) -> str:
    return message("{first}, or {second}", first=first, second=second)


def _to_reason(mistake: ErrorDetails) -> str:
    reason = mistake["msg"].removeprefix("Value error, ")
    reason = reason if reason[:2].isupper() else reason[0].lower() + reason[1:]
    known = _known_reason(mistake["type"], mistake.get("ctx", {}))
    return known if known == reason else reason


def _known_reason(kind: str, facts: dict[str, Any]) -> str:
    """pydantic's complaint about a value, as a message."""
    if kind == "string_too_short":
        return plural(
            "string should have at least {count} character",
            "string should have at least {count} characters",
            facts["min_length"],
        )
    if kind == "too_short":
        return plural(
            "list should have at least {count} item after validation, not {actual}",
            "list should have at least {count} items after validation, not {actual}",
            facts["min_length"],
            actual=facts["actual_length"],
        )
    if kind == "literal_error" and " or " in facts["expected"]:
        first, last = facts["expected"].rsplit(" or ", 1)
        return message("input should be {first} or {last}", first=first, last=last)
    # For a float bound, `ctx` has 0.0 where the message has 0.
    return message(_REASONS[kind], **{name: _plain(fact) for name, fact in facts.items()}) if kind in _REASONS else ""


def _plain(fact: Any) -> Any:
    return int(fact) if isinstance(fact, float) and fact.is_integer() else fact


def _is_key(part: int | str) -> bool:
    # A union adds its members' type names to the path; they are not spec keys.
    return isinstance(part, int) or (part.replace("_", "").isidentifier() and part not in _TYPE_NAMES)


_REASONS = {
    "greater_than": message("input should be greater than {gt}"),
    "greater_than_equal": message("input should be greater than or equal to {ge}"),
    "less_than": message("input should be less than {lt}"),
    "less_than_equal": message("input should be less than or equal to {le}"),
    "literal_error": message("input should be {expected}"),
    "int_type": message("input should be a valid integer"),
    "int_parsing": message("input should be a valid integer, unable to parse string as an integer"),
    "int_from_float": message("input should be a valid integer, got a number with a fractional part"),
    "float_type": message("input should be a valid number"),
    "float_parsing": message("input should be a valid number, unable to parse string as a number"),
    "finite_number": message("input should be a finite number"),
    "string_type": message("input should be a valid string"),
    "string_pattern_mismatch": message("string should match pattern {pattern}"),
    "bool_type": message("input should be a valid boolean"),
    "bool_parsing": message("input should be a valid boolean, unable to interpret input"),
    "list_type": message("input should be a valid list"),
    "dict_type": message("input should be a valid dictionary"),
    "model_type": message("input should be a valid dictionary or instance of {class_name}"),
}
"""The kind of a mistake → what pydantic says of it."""
_TYPE_NAMES = {"int", "float", "str", "bool", "none", "list", "dict"}


def _section_of(section: type[Section], names: list[str]) -> type[Section]:
    for name in names:
        annotation = section.model_fields[name].annotation
        if not (isinstance(annotation, type) and issubclass(annotation, Section)):
            break
        section = annotation
    return section
