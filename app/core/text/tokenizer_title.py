"""Owns how tokenizers are called on screen: by the last folder of their name, however they are opened."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.core import formatting
from app.core.i18n import tr
from backend.contract.tokens import options as tokenizer_name


def short_title(tokenizer: str) -> str:
    """The last part of a path or hub id."""
    return formatting.name_of_path(tokenizer_name.parse_name(tokenizer).tokenizer)


def path_of(tokenizer: str) -> str:
    """The folder, file, hub id or run by itself."""
    return tokenizer_name.parse_name(tokenizer).tokenizer


def titles(tokenizers: Sequence[str]) -> list[str]:
    """What tells them apart: the last folder, or two where it alone would not, and whether it has options of its own."""
    paths = [path_of(each) for each in tokenizers]
    short = [formatting.short_path(path, 1).removeprefix("…/") for path in paths]
    longer = [formatting.short_path(path) for path in paths]
    plain = [one if short.count(one) == 1 else two for one, two in zip(short, longer, strict=True)]
    return [
        tr("{title} with options", title=title)
        if plain.count(title) > 1 and tokenizer_name.parse_name(each).options
        else title
        for title, each in zip(plain, tokenizers, strict=True)
    ]


def of_draft(model: Mapping[str, Any]) -> tuple[str, str]:
    """The tokenizer of a spec's `model` section and what it is called in a choice; both empty where there is none."""
    name = str(model.get("tokenizer") or model.get("name_or_path") or "")
    if not name:
        return "", ""
    options = {key: value for key, value in (model.get("tokenizer_options") or {}).items() if value is not None}
    # The revision is the model's; a tokenizer from elsewhere has its own newest one, as in a run.
    revision = "main" if model.get("tokenizer") else str(model.get("revision") or "main")
    title = formatting.name_of_path(name)
    words = tr("New run · {title}, with its options", title=title) if options else tr("New run · {title}", title=title)
    return tokenizer_name.format_name(name, revision, options), words
