"""Writes docs/settings.md: every setting of a spec, from the one declaration that forms and --set also use.

`make docs` writes it; a test says when it is out of date.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from backend.catalog import catalog
from backend.contract.spec.environment import XLA_FLAGS
from backend.contract.spec.search import SearchSection

PAGE = Path(__file__).with_name("settings.md")
SECTIONS = ("model", "data", "training", "evaluation", "hardware")
HEAD = """# Settings

A spec has the sections below. Give a setting in the spec file, or on the command line as `--set section.name=VALUE`, for
example `--set training.epochs=5`; values are YAML 1.2. A setting without a default is required. `make docs` generates this
page from the program's declarations.
"""

Schema = dict[str, Any]


def page() -> str:
    """The whole page as Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    known = catalog()
    definitions = known.spec["$defs"]
    yield HEAD
    yield "## The spec itself\n"
    yield from _table({name: it for name, it in known.spec["properties"].items() if name not in SECTIONS}, known.spec)
    for task in known.tasks:
        yield f"## task: {{type: {task.name}}}\n\n{task.description}\n"
        yield from _table(
            {name: it for name, it in task.settings["properties"].items() if name != "type"}, task.settings
        )
        yield "| input (see `data.columns`) | |\n|---|---|"
        yield from (f"| `{it.name}` | {_text(it.description)} |" for it in task.columns)
        yield f"\nMetrics: {', '.join(f'`{name}`' for name in task.metrics)}.\n"
    for section in SECTIONS:
        schema = next(it for it in definitions.values() if it["title"].lower() == f"{section}section")
        yield f"## {section}\n\n{schema['description'].splitlines()[0]}\n"
        yield from _table(schema["properties"], schema)
        if section == "training":
            yield from _members("optimizer", [one for one in known.optimizers if one.settings.get("properties")])
        if section == "data":
            yield from _members("source", known.sources)
        if section == "hardware":
            yield _variables(schema["properties"]["environment"])
            yield from _members("engine", known.engines)

    yield from _adapters(known.adapters)
    yield from _search()


def _search() -> Iterator[str]:
    yield "## search\n\nOnly in the spec of a search (see [Searching settings](guide/search.md)).\n"
    schema = SearchSection.model_json_schema()
    yield from _table(schema["properties"], schema)
    for name in ("halving", "confirm"):
        inner = schema["$defs"][f"{name.capitalize()}Section"]
        yield f"### search: {{{name}: …}}\n\n{_text(inner['description'])}\n"
        yield from _table(inner["properties"], inner)


def _variables(environment: Schema) -> str:
    def listed(names: Iterable[str]) -> str:
        return ", ".join(f"`{name}`" for name in names)

    return (
        "`environment` may set the following variables. None of them can load code, access a file or reach another machine. Set\n"
        f"any other in your own environment. {listed(environment['propertyNames']['enum'])}.\n\n"
        f"`XLA_FLAGS` and `LIBTPU_INIT_ARGS` may contain these flags, each with `--` before it: {listed(XLA_FLAGS)}.\n"
    )


def _adapters(adapters: list[Any]) -> Iterator[str]:
    for adapter in adapters:
        yield f"## adapter: {{type: {adapter.name}}}\n\n{adapter.description}\n"
        fields = {name: it for name, it in adapter.settings["properties"].items() if name != "type"}
        yield from _table(fields, adapter.settings)


def _members(kind: str, members: list[Any]) -> Iterator[str]:
    for member in members:
        yield f"### With {kind}: {member.name}\n\n{member.description.rstrip('.')}.\n"
        if member.settings.get("properties"):
            yield from _table(member.settings["properties"], member.settings)


def _table(properties: dict[str, Schema], schema: Schema) -> Iterator[str]:
    yield "| setting | values | default | |"
    yield "|---|---|---|---|"
    for name, it in properties.items():
        if it.get("hidden"):
            continue
        needed = name in schema.get("required", ())
        default = "" if needed else f"`{json.dumps(it.get('default'), ensure_ascii=False)}`"
        cells = (f"`{name}`", _values(it), default, _text(it.get("description", "")))
        yield f"| {' | '.join(cells)} |"
    yield ""


def _values(it: Schema) -> str:
    if "anyOf" in it:
        return " or ".join(dict.fromkeys(_values(choice) for choice in it["anyOf"]))
    if "enum" in it:
        return ", ".join(f"`{value}`" for value in it["enum"])
    if "$ref" in it:
        return "a section"
    if "const" in it:
        return f"`{it['const']}`"
    kind = {"null": "empty", "array": "list", "object": "mapping", "string": "text", "boolean": "`true`, `false`"}
    plain = kind.get(it.get("type", ""), it.get("type", "any"))
    if it.get("type") == "array" and "items" in it:
        plain = f"list of {_values(it['items'])}"
    return " ".join(filter(None, [plain, _bounds(it)]))


def _bounds(it: Schema) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return ", ".join(f"{sign} {_number(it[name])}" for name, sign in signs.items() if name in it)


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _text(description: str) -> str:
    return " ".join(description.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
