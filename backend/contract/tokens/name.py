"""Owns the one text by which questions and people call a tokenizer: its name alone, or with options as a JSON object."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

MAIN = "main"


class TokenizerName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A folder, file, hub id or run, and how it is to be opened."""

    tokenizer: str
    revision: str = MAIN
    options: dict[str, Any] = {}
    """As in `model.tokenizer_options`."""


def written(tokenizer: str, revision: str = MAIN, options: Mapping[str, Any] | None = None) -> str:
    """The name itself where nothing else is to be said, else a JSON object whose text is always the same."""
    given = {name: value for name, value in (options or {}).items() if value is not None}
    if not given and revision == MAIN:
        return tokenizer
    whole = {"tokenizer": tokenizer} | ({} if revision == MAIN else {"revision": revision})
    return json.dumps(whole | ({"options": given} if given else {}), sort_keys=True, ensure_ascii=False)


def read(text: str) -> TokenizerName:
    """What was written; any other text is a name."""
    if not text.startswith("{"):
        return TokenizerName(text)
    try:
        return msgspec.json.decode(text, type=TokenizerName)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):  # a name may begin like this too
        return TokenizerName(text)
