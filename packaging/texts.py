"""Update the catalogues of the window's texts: gather the texts, bring every language up to date and compile it (`make texts`).

Texts are the arguments of `tr`, `trn` and `said_in` in `app`, the templates of `message`, `plural` and errors in `backend`, and the
titles and descriptions of the backend's catalog.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script has only its own folder there, and would find the installed checkout instead

from app.core.i18n import DOMAIN, QUESTIONS, SHOWN  # noqa: E402
from backend.contract.processes import python_command  # noqa: E402

LANGUAGES = ROOT / "resources" / "languages"
KEYWORDS = {"tr": None, "trn": (1, 2), "said_in": (2,), "message": None, "plural": (1, 2)}
"""Function → which of its arguments are texts, as Babel counts them; None for the first alone."""
ERRORS = {"InputError": None, "RunFailed": None, "UnsupportedModelError": None}
"""Gathered in a second pass, as Babel sees no call within the call of another keyword."""
OF_TERMINAL = ("commands/", "importing/")
"""Folders whose errors are read in a terminal alone, in English; what the window reads too says `message`."""


def main() -> int:
    """Update and compile every language; returns how many texts wait for a translation, at most 1."""
    template = gathered()
    waiting = 0
    for folder in sorted(LANGUAGES.glob("*/LC_MESSAGES")):
        catalogue = updated(folder / f"{DOMAIN}.po", template)
        missing = [message for message in catalogue if message.id and (not _is_whole(message) or message.fuzzy)]
        sys.stdout.write(f"{folder.parent.name}: {len(catalogue)} texts, {len(missing)} wait for a translation\n")
        waiting += len(missing)
    return min(waiting, 1)


def gathered() -> Catalog:
    """All texts of the window, each with the files that say it."""
    template = Catalog(project="Burnish", charset="utf-8")
    for package, keywords in (("app", KEYWORDS), ("backend", KEYWORDS), ("backend", ERRORS)):
        for path, _, text, _, _ in extract_from_dir(
            ROOT / package, method_map=[("**.py", "python")], keywords=keywords
        ):
            if not (keywords is ERRORS and path.startswith(OF_TERMINAL)):
                template.add(text, locations=[(f"{package}/{path}", None)])  # type: ignore[list-item]
    for context, text in QUESTIONS.items():
        template.add(text, context=context, locations=[("app/core/i18n.py", None)])  # type: ignore[list-item]
    for text in sorted(set(_of_the_catalog())):
        template.add(text, locations=[("catalog", None)])  # type: ignore[list-item]
    return template


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


def _of_the_catalog() -> Iterator[str]:
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
