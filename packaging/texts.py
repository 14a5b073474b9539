"""Owns the catalogues of the window's texts: `make texts` gathers them, brings every language up to date and compiles it.

Texts are the arguments of `tr`, `trn` and `said_in` in `app`, and the titles and descriptions of the backend's catalog.
The backend's sentences have a catalogue of their own, as templates (see `sentences.py`).
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import sentences
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from app.core.i18n import DOMAIN, QUESTIONS, SENTENCES, SHOWN
from backend.contract.processes import python_command

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ROOT / "resources" / "languages"
KEYWORDS = {"tr": (0,), "trn": (0, 1), "said_in": (1,)}
"""Function → which of its arguments are texts."""


def main() -> int:
    """Update and compile every language; returns how many texts wait for a translation, at most 1."""
    templates = {DOMAIN: gathered(), SENTENCES: gathered_sentences()}
    waiting = 0
    for folder in sorted(LANGUAGES.glob("*/LC_MESSAGES")):
        for domain, template in templates.items():
            catalogue = updated(folder / f"{domain}.po", template)
            missing = [message for message in catalogue if message.id and (not _is_whole(message) or message.fuzzy)]
            said = f"{folder.parent.name}, {domain}: {len(catalogue)} texts, {len(missing)} wait for a translation\n"
            sys.stdout.write(said)
            waiting += len(missing)
    return min(waiting, 1)


def gathered() -> Catalog:
    """All texts of the window, each with the files that say it."""
    template = Catalog(project="Burnish", charset="utf-8")
    for path in sorted((ROOT / "app").rglob("*.py")):
        for message in of_a_module(path):
            template.add(message, locations=[(path.relative_to(ROOT).as_posix(), None)])  # type: ignore[list-item]
    for context, text in QUESTIONS.items():
        template.add(text, context=context, locations=[("app/core/i18n.py", None)])  # type: ignore[list-item]
    for text in sorted(set(_of_the_backend())):
        template.add(text, locations=[("catalog", None)])  # type: ignore[list-item]
    return template


def gathered_sentences() -> Catalog:
    """All sentences of the backend that the window may show."""
    template = Catalog(project="Burnish", charset="utf-8")
    for text, files in sentences.of_the_backend().items():
        template.add(text, locations=[(file, None) for file in files])  # type: ignore[list-item]
    return template


def of_a_module(path: Path) -> Iterator[str | tuple[str, ...]]:
    """What a module looks up; a text with its plural as a pair. Also within f-strings, where Babel sees none."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if name in KEYWORDS:
            texts = [node.args[place] for place in KEYWORDS[name]]  # type: ignore[attr-defined]
            values = tuple(text.value for text in texts if isinstance(text, ast.Constant))
            if values:
                yield values if len(values) > 1 else values[0]


def updated(source: Path, template: Catalog) -> Catalog:
    """The catalogue in that file with the texts of the template, written and compiled; a new one where there is none."""
    language = source.parents[1].name
    if source.exists():
        with source.open("rb") as file:
            catalogue = read_po(file, locale=language)
    else:
        catalogue = Catalog(locale=language, header_comment="", charset="utf-8", fuzzy=False)
    begun = catalogue.creation_date
    catalogue.update(template, no_fuzzy_matching=True)
    catalogue.creation_date = begun  # else whoever gathers texts would conflict with everyone else who did
    catalogue.obsolete.clear()
    with source.open("wb") as file:
        write_po(file, catalogue, width=110, sort_output=True, omit_header=False, include_lineno=False)
    compile_(source)
    return catalogue


def compile_(source: Path) -> None:
    """Write the catalogue beside its source in the form that the window reads."""
    with source.open("rb") as file:
        catalogue = read_po(file)
    with source.with_suffix(".mo").open("wb") as file:
        write_mo(file, catalogue)


def _is_whole(message: Any) -> bool:
    return all(message.string) if message.pluralizable else bool(message.string)


def _of_the_backend() -> Iterator[str]:
    command = python_command("backend", "describe", "--json")
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    catalog = msgspec.json.decode(done.stdout)
    yield from _texts({name: part for name, part in catalog.items() if name not in ("devices", "problems", "versions")})


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        of_a_section = "properties" in part or "const" in part  # named by its class, described for programmers
        for key, value in part.items():
            if key in SHOWN and isinstance(value, str):
                if not of_a_section:
                    yield value
            else:
                yield from _texts(value)
    elif isinstance(part, list):
        for value in part:
            yield from _texts(value)


if __name__ == "__main__":
    raise SystemExit(main())
