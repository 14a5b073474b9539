"""Owns the translations of one language, read from the PO file that its translators write: no compiled copy can be stale."""

import gettext
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from backend.contract.errors import InputError

_PLURAL = re.compile(r"plural=([^;]+)")
_JSON = json.JSONDecoder(strict=False)
Entry = dict[str, str]
"""Keyword of the format (`msgid`, `msgstr[1]`, …) → what stands behind it; `fuzzy` where it is only a guess."""


class Translations:
    """Texts under their English words; one that is not translated yet, or only guessed, stays English."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._texts: dict[tuple[str, str], str] = {}
        self._counted: dict[str, list[str]] = {}
        self._form: Callable[[int], int] = lambda count: int(count != 1)
        for entry in entries:
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        text = entry.get("msgid", "")
        forms = [said for keyword, said in sorted(entry.items()) if keyword.startswith("msgstr")]
        if not text:
            self._read_header("".join(forms))
        elif "fuzzy" in entry or not all(forms):
            return
        elif "msgid_plural" in entry:
            self._counted[text] = forms
        else:
            self._texts[entry.get("msgctxt", ""), text] = forms[0]

    def _read_header(self, header: str) -> None:
        if found := _PLURAL.search(header):
            self._form = gettext.c2py(found[1].strip())

    def text(self, text: str, context: str = "") -> str:
        """A text; `context` is what tells it from one of the same words."""
        return self._texts.get((context, text), text)

    def counted(self, one: str, many: str, count: int) -> str:
        """A text in the form that belongs to a number."""
        if one in self._counted:
            forms = self._counted[one]
            return forms[min(self._form(count), len(forms) - 1)]
        return one if count == 1 else many


def read(path: Path) -> Translations:
    """The translations in a PO file. Raises InputError with the line that is none."""
    return Translations(_entries(path))


def _entries(path: Path) -> Iterator[Entry]:
    entry: Entry = {}
    keyword = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if keyword.startswith("msgstr") and not line.startswith(("msgstr", '"')):
            yield entry
            entry, keyword = {}, ""
        try:
            if line.startswith('"'):
                entry[keyword] += _unquoted(line)
            elif line.startswith("#,") and "fuzzy" in line:
                entry["fuzzy"] = ""
            elif line.strip() and not line.startswith("#"):
                keyword, _, said = line.partition(" ")
                entry[keyword] = _unquoted(said)
        except (KeyError, ValueError) as error:
            raise InputError(f"{path}, line {number}, is none of a PO file and has to be mended: {line}") from error
    yield entry


def _unquoted(said: str) -> str:
    """What stands in quotation marks: the format escapes like JSON does, which reads it a hundred times as fast as we would."""
    text = _JSON.decode(said)
    if not isinstance(text, str):
        raise ValueError(said)
    return text
