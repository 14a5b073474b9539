"""Translates texts through GNU gettext catalogs and formats numbers for the current language.

A language is chosen before the page modules are imported, so that their constants are translated too.
"""

import gettext
import re
import string
from collections.abc import Sequence
from numbers import Real
from typing import Any

from backend.contract.resources import resource

DOMAIN = "burnish"
ENGLISH = "en"
SYSTEM = "system"
"""In place of a code: that of the desktop."""
SHOWN = ("title", "description")
"""Keys of the backend's catalog whose values are texts for people."""

THIN = "\u202f"
"""The space between groups of digits."""
SMALL, CAPITAL = "small", "capital"
NOUNS = "How nouns begin within a sentence: small or capital"
POINT, COMMA = "point", "comma"
DECIMALS = "What stands before decimals: point or comma"
QUESTIONS = {NOUNS: SMALL, DECIMALS: POINT}
"""Context → what is looked up in it. They are no texts: each catalogue answers how its language writes."""
_COMMAS = re.compile(r"""(?<![\w.,/\\'"“‘`=-])[1-9]\d{0,2}(?:,\d{3})+(?!\w|[,/\\'"”’`-]\S|\.\w*[^\W\d])""")
_PLAIN = re.compile(r"[-+]?\d*\.\d+(?:e[-+]?\d+)?", re.IGNORECASE)
_WRITTEN = re.compile(r"[-−+]?(?:\d+(?:\u202f\d{3})*(?:[.,]\d+)?|[.,]\d+)(?:e[-+]?\d+)?( ?%)?", re.IGNORECASE)
"""A number as the window writes it, and as people type it there."""


class _LocalisedFormatter(string.Formatter):
    """Formats numbers as the language does."""

    def format_field(self, value: Any, format_spec: str) -> str:
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        return figure(value, format_spec) if is_number else format(value, format_spec)


_FILLING = _LocalisedFormatter()
_present: gettext.NullTranslations = gettext.NullTranslations()
_code = ENGLISH
_writes_commas = False


def languages() -> list[str]:
    """The language codes that the window supports; English first."""
    found = resource("languages").glob(f"*/LC_MESSAGES/{DOMAIN}.mo")
    return [ENGLISH, *sorted(path.parents[1].name for path in found)]


def pick_language(wanted_languages: Sequence[str]) -> str:
    """The first supported language, by codes such as `de` or `de_AT`; English if there is none."""
    codes = (wanted.replace("-", "_").partition("_")[0].lower() for wanted in wanted_languages)
    known = languages()
    return next((code for code in codes if code in known), ENGLISH)


def choose(wanted: str) -> str:
    """Set the language by its code, or English if it is unknown. Returns its code."""
    global _present, _code, _writes_commas
    _code = pick_language([wanted])
    _present = _catalogue(_code)
    _writes_commas = _present.pgettext(DECIMALS, POINT) == COMMA
    return _code


def current_language() -> str:
    """The code of the current language."""
    return _code


def tr(text: str, /, **values: Any) -> str:
    """A text in the current language, with `values` for its `{placeholders}`."""
    found = _present.gettext(text)
    return _FILLING.vformat(found, (), values) if values else found


def lookup(text: str) -> str:
    """A text in the current language with its `{placeholders}` unfilled; unchanged if the catalog does not have it."""
    return _present.gettext(text) if text else text


def lookup_plural(one: str, many: str, count: int) -> str:
    """The plural form for a number in the current language, with its `{placeholders}` unfilled."""
    return _present.ngettext(one, many, count)


def said_in(code: str, text: str, /) -> str:
    """A text in a language other than the current one."""
    return _catalogue(code).gettext(text)


def fill(text: str, /, **values: Any) -> str:
    """Fill the `{placeholders}` of a text that was looked up before."""
    return _FILLING.vformat(text, (), values)


def trn(one: str, many: str, count: int, /, **values: Any) -> str:
    """A text in the plural form for a number, which `{count}` shows with thin spaces: `24 960 rows`."""
    return _FILLING.vformat(_present.ngettext(one, many, count), (), {"count": group_digits(count), **values})


def group_digits(value: float, digits: int = 0) -> str:
    """A number with this many decimals and thin spaces between thousands: `24 960`."""
    return figure(value, f",.{digits}f")


def figure(value: Any, form: str = "") -> str:
    """A number in a Python format, localised: `0.5` or `0,5`; `,` groups with thin spaces."""
    return localize_sign(format(value, form))


def localize_sign(number: str) -> str:
    """A number formatted by Python, with the language's decimal separator."""
    thin_groups = number.replace(",", THIN)
    return thin_groups.replace(".", ",") if _writes_commas else thin_groups


def localize_number(cell: str) -> str:
    """Localise a text that is only a number as programs write it; other texts are unchanged."""
    return localize_sign(cell) if _PLAIN.fullmatch(cell) else cell


def plain(text: str) -> str:
    """A number written by `figure`, or typed, as programs read it: `0.5`; other texts are unchanged."""
    if not _WRITTEN.fullmatch(text):
        return text
    number = text.replace(THIN, "").replace("−", "-")
    return number.replace(",", ".") if _writes_commas else number


def thin(sentence: str) -> str:
    """A backend sentence with thin spaces in counts: `30,522 tokens`; names, paths and quotes keep their commas."""
    return _COMMAS.sub(lambda found: found.group().replace(",", THIN), sentence) if "," in sentence else sentence


def inside(title: str) -> str:
    """A title inside a sentence: in lower case but for names such as F1, unless the language capitalises its nouns."""
    if _present.pgettext(NOUNS, SMALL) == CAPITAL:
        return title
    return " ".join(word if _is_name(word) else word.lower() for word in title.split(" "))


def _is_name(word: str) -> bool:
    """Such as F1, BLEU, chrF or LoRA."""
    return any(letter.isupper() or letter.isdigit() for letter in word[1:])


def translate_catalog(part: Any) -> Any:
    """A part of the backend's catalog as plain values, with titles and descriptions in the current language."""
    if isinstance(part, dict):
        return {
            key: tr(value) if key in SHOWN and isinstance(value, str) else translate_catalog(value)
            for key, value in part.items()
        }
    return [translate_catalog(value) for value in part] if isinstance(part, list) else part


def _catalogue(code: str) -> gettext.NullTranslations:
    if code == ENGLISH:
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, str(resource("languages")), [code])
