"""Owns the commands that make the same tokenizers as the window does."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from app.core.draft.draft import as_yaml
from backend.contract.catalog import SourceEntry

_SWITCHES = ("lowercase", "strip_accents", "split_digits")


def train_command(
    source: SourceEntry | None,
    data: Mapping[str, Any],
    columns: Sequence[str],
    settings: Mapping[str, Any],
    output: str,
    compare_with: str = "",
) -> str:
    """`burnish tokenizer train …` with what differs from the defaults."""
    words = ["burnish tokenizer train", *_data(source, data, columns)]
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if name == "special_tokens":
            words += ["--special", *map(shlex.quote, value)] if value else []
        elif name in _SWITCHES:
            words += [option] if value else []
        elif value is not None:
            words += [option, shlex.quote(str(value))]
    words += ["--compare", shlex.quote(compare_with)] if compare_with else []
    return " ".join([*words, "--output", shlex.quote(output)])


def extend_command(tokenizer: str, add: Sequence[str], special: Sequence[str], whole_words: bool, output: str) -> str:
    """`burnish tokenizer extend …`."""
    words = ["burnish tokenizer extend", shlex.quote(tokenizer)]
    words += ["--add", *map(shlex.quote, add)] if add else []
    words += ["--add-special", *map(shlex.quote, special)] if special else []
    words += ["--whole-words"] if whole_words else []
    return " ".join([*words, "--output", shlex.quote(output)])


def _data(source: SourceEntry | None, data: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """The option `--data` means what the source needs first; everything else is a setting of the `data` section."""
    left = {name: value for name, value in data.items() if name != "source" and value not in (None, "", [], {})}
    first = _first(source)
    given = left.pop(first, "")
    if first == "name" and left.get("train") == "train":
        left.pop("train")
    words = ["--data", *map(shlex.quote, given if isinstance(given, list) else [str(given)])]
    words += ["--source", shlex.quote(source.name)] if source is not None and source.name != "files" else []
    for name, value in left.items():
        words += ["--set", shlex.quote(f"data.{name}={as_yaml(value)}")]
    return words + (["--column", *map(shlex.quote, columns)] if columns else [])


def _first(source: SourceEntry | None) -> str:
    if source is None or "train" in source.path_fields:
        return "train"
    return source.path_fields[0] if source.path_fields else "name"
