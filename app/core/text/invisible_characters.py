"""Shows whitespace and invisible characters, and names them."""

import unicodedata

from app.core.i18n import tr

NONE = "∅"
"""Stands for a token without any text."""
_LABELS = {
    0x00A0: "NBSP",
    0x00AD: "SHY",
    0x061C: "ALM",
    0x180E: "MVS",
    0x200B: "ZWSP",
    0x200C: "ZWNJ",
    0x200D: "ZWJ",
    0x200E: "LRM",
    0x200F: "RLM",
    0x2028: "LS",
    0x2029: "PS",
    0x202A: "LRE",
    0x202B: "RLE",
    0x202C: "PDF",
    0x202D: "LRO",
    0x202E: "RLO",
    0x202F: "NNBSP",
    0x2060: "WJ",
    0x2061: "FA",
    0x2062: "IT",
    0x2063: "IS",
    0x2064: "IP",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0x205F: "MMSP",
    0x3000: "IDSP",
    0xFE0E: "VS15",
    0xFE0F: "VS16",
    0xFEFF: "BOM",
    0xFFF9: "IAA",
    0xFFFA: "IAS",
    0xFFFB: "IAT",
    0xFFFC: "OBJ",
}
JOINERS = frozenset((0x200C, 0x200D, *range(0xFE00, 0xFE10), *range(0xE0020, 0xE0080), *range(0xE0100, 0xE01F0)))
"""They belong to the character before them, and are shown only if they are alone."""


_C0 = (
    "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
)


def _controls() -> dict[int, str]:
    shown = {code: f"⟨{label}⟩" for code, label in enumerate(_C0.split())}
    shown |= {code: f"⟨{code:02X}⟩" for code in range(0x80, 0xA0)}
    return {**shown, 0x7F: "⟨DEL⟩", 0x0A: "⏎", 0x09: "⇥"}


def _table() -> dict[int, str]:
    spaces = {code: f"⟨{unicodedata.name(chr(code))}⟩" for code in range(0x2000, 0x200B)}
    labels = {code: f"⟨{label}⟩" for code, label in _LABELS.items() if code not in JOINERS}
    return {**_controls(), **spaces, **labels, 0x1680: "⟨OGHAM SPACE⟩", 0x85: "⟨NEL⟩", 0x20: "·"}


SHOWN: dict[int, str] = _table()
"""Code point → its visible replacement when white space is shown."""
HIDDEN: dict[int, str] = {
    **{code: "" for code in SHOWN if chr(code).isprintable() is False},
    **{code: " " for code in SHOWN if chr(code).isspace()},
    0x09: "    ",
}
"""Code point → its replacement when white space is not shown: nothing that would break the line."""


SPACES = str.maketrans({" ": "·", "\n": "⏎", "\t": "⇥"})
"""The same of usual spaces alone."""


def visible(text: str, whitespace: bool = True) -> str:
    """A token's text made visible: spaces as dots, line breaks as arrows, others by short name; never empty."""
    if not whitespace:
        return _on_a_circle(text).translate(HIDDEN) or " "
    if text and all(ord(letter) in JOINERS for letter in text):
        return "".join(f"⟨{short_name(letter)}⟩" for letter in text)
    return _on_a_circle(text).translate(SHOWN) or NONE


def _on_a_circle(text: str) -> str:
    """Put a combining mark without its letter on a dotted circle, as in the Unicode charts."""
    first = text[:1]
    is_mark = first > "\u02ff" and unicodedata.category(first)[0] == "M" and ord(first) not in JOINERS
    return f"◌{text}" if is_mark else text


def short_name(letter: str) -> str:
    """`ZWJ`, `VS16`, `U+E0101`."""
    code = ord(letter)
    if 0xFE00 <= code <= 0xFE0F:
        return f"VS{code - 0xFE00 + 1}"
    return _LABELS.get(code, f"U+{code:04X}")


def name(letter: str) -> str:
    """`U+200B ZERO WIDTH SPACE`; control characters have their standard names."""
    code = ord(letter)
    known = unicodedata.name(letter, "") or _CONTROL_NAMES.get(code, "")
    if not known:
        known = {"Cc": "CONTROL", "Cs": "LONE SURROGATE", "Co": "PRIVATE USE"}.get(unicodedata.category(letter), "")
    return f"U+{code:04X} {known or 'UNASSIGNED'}"


def is_invisible(letter: str) -> bool:
    """Whether people cannot see which character it is: anything but a plain space and visible glyphs."""
    return letter != " " and (ord(letter) in SHOWN or ord(letter) in JOINERS or unicodedata.category(letter) in _NO_INK)


_NO_INK = ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp")


def names_of(text: str, most: int = 12) -> list[str]:
    """The names of a text's invisible characters, each once, in order."""
    found = dict.fromkeys(letter for letter in text if is_invisible(letter))
    names = [name(letter) for letter in list(found)[:most]]
    return [*names, tr("and {number} more", number=len(found) - most)] if len(found) > most else names


_CONTROL_NAMES = {
    0x00: "NULL", 0x01: "START OF HEADING", 0x02: "START OF TEXT", 0x03: "END OF TEXT", 0x04: "END OF TRANSMISSION",
    0x05: "ENQUIRY", 0x06: "ACKNOWLEDGE", 0x07: "BELL", 0x08: "BACKSPACE", 0x09: "CHARACTER TABULATION",
    0x0A: "LINE FEED", 0x0B: "LINE TABULATION", 0x0C: "FORM FEED", 0x0D: "CARRIAGE RETURN", 0x0E: "SHIFT OUT",
    0x0F: "SHIFT IN", 0x1A: "SUBSTITUTE", 0x1B: "ESCAPE", 0x7F: "DELETE", 0x85: "NEXT LINE",
}  # fmt: skip
