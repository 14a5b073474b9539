"""The tokenizers to choose from: their names, those made here, and what a dropped file is."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core import formatting
from app.core.i18n import tr
from app.core.preferences import Preferences
from app.core.table_rows import TableRows
from backend.contract.tokens import options as tokenizer_name
from backend.contract.tokens.training import TrainedTokenizer


def short_title(tokenizer: str) -> str:
    """The last part of a path or hub id."""
    return formatting.name_of_path(tokenizer_name.parse_name(tokenizer).tokenizer)


def path_of(tokenizer: str) -> str:
    """Only the folder, file, hub id or run."""
    return tokenizer_name.parse_name(tokenizer).tokenizer


def titles(tokenizers: Sequence[str]) -> list[str]:
    """Distinct names: the last folder, or two if one is ambiguous, and whether it has its own options."""
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
    """The tokenizer of a spec's `model` section and its name in a choice; both empty if there is none."""
    name = str(model.get("tokenizer") or model.get("name_or_path") or "")
    if not name:
        return "", ""
    options = {key: value for key, value in (model.get("tokenizer_options") or {}).items() if value is not None}
    # The revision is the model's; a tokenizer from elsewhere has its own newest one, as in a run.
    revision = "main" if model.get("tokenizer") else str(model.get("revision") or "main")
    title = formatting.name_of_path(name)
    words = tr("New run · {title}, with its options", title=title) if options else tr("New run · {title}", title=title)
    return tokenizer_name.format_name(name, revision, options), words


MOST = 100
"""That are remembered."""


@dataclass(frozen=True)
class MadeBefore:
    """A tokenizer made here."""

    path: str
    pieces: int = 0
    when: float = 0
    """Seconds since 1970."""

    @property
    def is_there(self) -> bool:
        """Whether its folder still has files."""
        folder = Path(self.path)
        return folder.is_dir() and any(folder.iterdir())

    @property
    def title(self) -> str:
        """Its display text in a choice: the name and when it was made."""
        return tr("{path} · created {when}", path=formatting.name_of_path(self.path), when=formatting.moment(self.when))


def made_tokenizers(preferences: Preferences) -> list[MadeBefore]:
    """Newest first; invalid entries in the settings file are left out."""
    entries = [entry for entry in preferences.made_tokenizers if _is_entry(entry)]
    return [
        MadeBefore(path, int(_number(entry, "pieces")), _number(entry, "when"))
        for entry in entries
        if isinstance(path := entry.get("path"), str) and path
    ]


def remember(preferences: Preferences, made: TrainedTokenizer) -> None:
    """Put it at the top of the list."""
    entry = {"path": made.path, "pieces": made.vocabulary, "when": time.time()}
    preferences.change("made_tokenizers", lambda kept: [entry, *_without(kept, made.path)][:MOST])


def forget(preferences: Preferences, path: str) -> None:
    """Remove it from the list; its folder is kept."""
    preferences.change("made_tokenizers", lambda kept: _without(kept, path))


def _without(entries: Sequence[Any], path: str) -> list[dict]:
    return [entry for entry in entries if _is_entry(entry) and entry.get("path") != path]


def _number(entry: dict, name: str) -> float:
    value = entry.get(name)
    return value if isinstance(value, int | float) else 0


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict)


COLUMNS = ("name", "pieces", "made", "folder")


def made_rows(tokenizers: Sequence[MadeBefore]) -> TableRows:
    """The tokenizers as table rows, and which of them no longer exist."""
    is_there = [one.is_there for one in tokenizers]
    rows = [
        (
            formatting.name_of_path(one.path),
            formatting.group_digits(one.pieces) if one.pieces else "–",
            formatting.moment(one.when or None),
            one.path if there else tr("Not found: {path}", path=one.path),
        )
        for one, there in zip(tokenizers, is_there, strict=True)
    ]
    return TableRows(
        COLUMNS, rows, lambda row, column: "" if is_there[row] else "warning" if column == "folder" else "faint"
    )


TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt")
ENDINGS = (".model", ".spm", ".tiktoken")
PATTERNS = tr("Tokenizers (tokenizer.json *.json *.model *.spm vocab.txt *.tiktoken);;All files (*)")
"""What a dialog offers that looks for a tokenizer's file."""


def is_tokenizer(path: Path) -> bool:
    """Whether the path is a tokenizer rather than a text; a tokenizer's file means its folder."""
    name = path.name.lower()
    if path.is_dir() or name in TOKENIZER_FILES or name.endswith(ENDINGS):
        return True
    return name.endswith(".json") and "tokenizer" in name


def tokenizer_of(path: Path) -> Path:
    """The path to open: the file itself, or the folder of files that are useless alone."""
    return path.parent if path.name.lower() in ("tokenizer_config.json", "merges.txt") else path
