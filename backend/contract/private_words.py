"""Owns the taking out of what tells who somebody is, or opens somebody's doors, from a text that is given away (stdlib only)."""

import re
from pathlib import Path

from backend.contract.redaction import redacted

HIDDEN = "[hidden]"
ADDRESS = "[e-mail address]"
_ADDRESS = re.compile(r"\b[\w.+%-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b")
_HOME = re.compile(r"(?:/home/|/Users/|[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/))[^/\\\s\"':,;<>]+")
_KEY = re.compile(r"\b(?:sk|gh[pousr]|github_pat|glpat|xox[abprs]|AKIA)[-_]?[A-Za-z0-9_-]{16,}\b")
_NAMED = re.compile(
    r"(?i)([\w-]*(?:api[_-]?key|secret|passw(?:or)?d|passphrase|access[_-]?token|auth[_-]?token|bearer)[\w-]*)"
    r"([\"']?\s*[:=]\s*[\"']?|\s+)(?!\[)([^\s\"',;}]{6,})"
)


def without_private_words(text: str) -> str:
    """`text` without hub tokens and other keys, what URLs carry, e-mail addresses, and anybody's home folder."""
    home = Path.home()
    shown = redacted(text)
    if home != Path(home.anchor):
        shown = shown.replace(str(home), "~").replace(str(home).replace("\\", "\\\\"), "~")
    shown = _HOME.sub("~", _ADDRESS.sub(ADDRESS, shown))
    return _NAMED.sub(_hidden, _KEY.sub(HIDDEN, shown))


def _hidden(found: re.Match[str]) -> str:
    """`api_key: abc` keeps its name; a name that is merely followed by a word is prose, unless it is `Bearer`."""
    name, between, _ = found.groups()
    is_prose = not between.strip(" \t\n\"'") and not name.lower().endswith("bearer")
    return found.group() if is_prose else f"{name}{between}{HIDDEN}"
