"""Owns a spec as text: YAML 1.2 in and out, and the dotted `--set key=value` changes."""

from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, SafeConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode

from backend.contract.errors import InputError
from backend.contract.spec_include import with_includes


class _Constructor(SafeConstructor):
    """The values of YAML 1.2's core schema, which knows no dates: `2026-11-21` is text."""


_Constructor.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


def parse(text: str, name: str = "spec") -> Any:
    """The plain values of YAML 1.2 text (`3e-5` is a number, `yes` is text, JSON is valid). Raises InputError."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _Constructor
    try:
        return yaml.load(text)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputError(f"{name}{place} is not valid YAML: {problem}") from None


def lines(text: str) -> dict[str, int]:
    """Dotted key → the line, from 1, in which it stands; empty for text that is no YAML or no mapping."""
    try:
        node = YAML(typ="safe", pure=True).compose(text)
    except YAMLError:
        return {}
    return dict(_lines(node, ""))


def _lines(node: Any, prefix: str) -> Iterator[tuple[str, int]]:
    if not isinstance(node, MappingNode):
        return
    for key, value in node.value:
        yield f"{prefix}{key.value}", key.start_mark.line + 1
        yield from _lines(value, f"{prefix}{key.value}.")


def read(path: Path) -> dict[str, Any]:
    """The mapping in a spec file, its includes with it. Raises InputError where a file is missing, unreadable or no mapping."""
    return with_includes(path, _read)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such spec file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: this spec file cannot be read: {error}") from None
    values = parse(text, str(path))
    if not isinstance(values, dict):
        raise InputError(f"{path}: a spec is a mapping of sections such as task, model and data")
    return values


def dump(values: dict[str, Any]) -> str:
    """Plain values as YAML 1.2 text, in the given order."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.allow_unicode = True
    yaml.width = 4096
    stream = StringIO()
    yaml.dump(values, stream)
    return stream.getvalue()


def with_changes(values: dict[str, Any], changes: list[str]) -> dict[str, Any]:
    """A copy of `values` with every `dotted.key=VALUE` applied; VALUE is YAML 1.2. Raises InputError."""
    parsed: dict[str, Any] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set {change!r}: write it as KEY=VALUE, for example training.learning_rate=3e-5")
        parsed[key.strip()] = parse(text, f"--set {key}")
    return with_values(values, parsed)


def with_values(values: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `values` with every value put at its dotted key. Raises InputError."""
    result = _copy(values)
    for key, value in changes.items():
        _set(result, key.split("."), value, key)
    return result


def _set(values: dict[str, Any], names: list[str], value: Any, key: str) -> None:
    for name in names[:-1]:
        inner = values.get(name)
        if inner is None:
            inner = values[name] = {}
        if not isinstance(inner, dict):
            raise InputError(f"{key}: {name} is a single value and has no settings of its own", key)
        values = inner
    values[names[-1]] = value


def _copy(values: dict[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, dict) else value for key, value in values.items()}
