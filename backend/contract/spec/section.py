"""The base of every section: frozen, complete, strict about unknown keys, with its errors as one sentence."""

from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from backend.contract.errors import InputError


class Section(BaseModel):
    """A frozen group of settings. Every field has a title, a description, bounds and a default.

    Field extras in the JSON Schema: `advanced` (folded until asked for), `hidden` (accepted and never offered), `path` (a file or folder; relative values
    are taken from the spec file's folder), `group` (a heading of the form), `unit`,
    `decoding` (changes answers and scores alone: nothing that is trained on, so another value needs no new features).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=False)


AnySection = TypeVar("AnySection", bound=Section)


def validated(section: type[AnySection], values: dict[str, Any], prefix: str = "") -> AnySection:
    """The section made from `values`. Raises InputError that names the key, the value and the valid choices."""
    try:
        return section.model_validate(values)
    except ValidationError as error:
        raise InputError(*_first_mistake(section, error, prefix)) from None


def _first_mistake(section: type[Section], error: ValidationError, prefix: str) -> tuple[str, str]:
    mistakes = error.errors(include_url=False)
    mistake, names = mistakes[0], _names(mistakes[0])
    key = ".".join([*filter(None, [prefix]), *map(_shown, names)])
    if mistake["type"] == "extra_forbidden":
        owner, base = _owner(section, names[:-1]), ".".join(filter(None, [prefix, *names[:-1]]))
        near = get_close_matches(names[-1], _offered(owner), 1)
        known = f"did you mean {near[0]}?" if near else f"{base or 'a spec'} knows {', '.join(_offered(owner))}"
        return f"{key}: there is no such setting; {known}", key
    if mistake["type"] == "missing":
        return f"{key}: this setting is needed and has no default", key
    # A union has one mistake for each of its members.
    reasons = ", or ".join(dict.fromkeys(_reason(other["msg"]) for other in mistakes if _names(other) == names))
    if isinstance(mistake["input"], dict):  # settings that do not go together; they are more than one value
        return f"{key}: {reasons}", key
    return f"{key}: {mistake['input']!r} cannot be used: {reasons}", key


def _offered(section: type[Section]) -> list[str]:
    extras = ((name, field.json_schema_extra) for name, field in section.model_fields.items())
    return [name for name, extra in extras if not (isinstance(extra, dict) and extra.get("hidden"))]


def _names(mistake: ErrorDetails) -> list[str]:
    *before, last = mistake["loc"] or ("",)
    is_surely_key = mistake["type"] == "extra_forbidden"  # any text at all: it comes from the file
    return [str(part) for part in before if _is_key(part)] + ([str(last)] if is_surely_key or _is_key(last) else [])


def _shown(name: str) -> str:
    """A key as a sentence can hold it: one without visible letters in quotes."""
    return name if name.isprintable() and name.strip() else ascii(name)


def _reason(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message if message[:2].isupper() else message[0].lower() + message[1:]


def _is_key(part: int | str) -> bool:
    # A union adds its members' type names to the path; they are no keys of the spec.
    return isinstance(part, int) or (part.replace("_", "").isidentifier() and part not in _TYPE_NAMES)


_TYPE_NAMES = {"int", "float", "str", "bool", "none", "list", "dict"}


def _owner(section: type[Section], names: list[str]) -> type[Section]:
    for name in names:
        annotation = section.model_fields[name].annotation
        if not (isinstance(annotation, type) and issubclass(annotation, Section)):
            break
        section = annotation
    return section
