"""Reads the catalog's JSON Schemas: a section with resolved references, and its defaults."""

from typing import Any

Schema = dict[str, Any]


def resolve(schema: Schema, root: Schema | None = None) -> Schema:
    """The schema with every `$ref` into its own `$defs` replaced by its target."""
    root = schema if root is None else root
    return {key: _resolve(value, root) for key, value in _target(schema, root).items() if key != "$defs"}


def _resolve(value: Any, root: Schema) -> Any:
    if isinstance(value, dict):
        return resolve(value, root)
    if isinstance(value, list):
        return [_resolve(item, root) for item in value]
    return value


def _target(schema: Schema, root: Schema) -> Schema:
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    target: Any = root
    for name in reference.removeprefix("#/").split("/"):
        target = target[name]
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def section(spec: Schema, name: str) -> Schema:
    """The schema of one section of the spec, for example `training`; empty if the spec has none."""
    part = spec.get("properties", {}).get(name)
    return resolve(part, spec) if isinstance(part, dict) else {}


def defaults(schema: Schema) -> dict[str, Any]:
    """Field → default, for the fields of a section that have one."""
    return {name: field["default"] for name, field in schema.get("properties", {}).items() if "default" in field}


def without(schema: Schema, names: set[str]) -> Schema:
    """The schema without some fields, for a form that shows them elsewhere."""
    left = {name: field for name, field in schema.get("properties", {}).items() if name not in names}
    return {**schema, "properties": left}


def only(schema: Schema, names: list[str]) -> Schema:
    """The schema with only these fields, in this order, none of them collapsed."""
    fields = schema.get("properties", {})
    kept = {name: {**fields[name], "advanced": False} for name in names if name in fields}
    return {**schema, "properties": kept}


def fold(schema: Schema) -> Schema:
    """The schema with every field collapsed by default."""
    fields = schema.get("properties", {})
    return {**schema, "properties": {name: {**field, "advanced": True} for name, field in fields.items()}}
