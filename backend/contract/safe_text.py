"""Reads and shows untrusted text: whole characters, bounded JSON, visible control characters (stdlib only)."""

import json
import re
from typing import Any

from backend.contract.messages import message

_HALVES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff]")
"""What steers a terminal, or turns the letters around, and what no encoding can write. Tabs and line ends stay."""

_LINE_ENDS = re.compile("[\t\n\u2028\u2029]")


def join_surrogates(text: str) -> str:
    """The text with surrogate pairs, as JSON writes them (`\\ud83d\\ude00`), joined into one character.

    Raises ValueError for a lone surrogate, and for NUL, which no path or setting can contain.
    """
    if "\0" in text:
        raise ValueError(message("it contains a NUL character; remove it"))
    if _HALVES.search(text) is None:
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ValueError(message("it contains half a character (a lone surrogate); enter it again")) from None


def escape_controls(text: str) -> str:
    """The text made safe for a terminal: control characters are written as `\\u001b`, as in JSON."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """The text on a single line: line breaks and tabs are escaped as `\\u000a` too."""
    return _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", escape_controls(text))


def parse_json(content: str | bytes) -> Any:
    """Parse JSON text. Raises ValueError, also if it is nested too deeply for the library."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError(message("it is nested too deeply")) from None
