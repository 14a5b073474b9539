"""Creating a tokenizer: tokens proposed for an existing one, the equivalent command, a free folder for the result."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.core import formatting
from app.core.backend_words import capitalize
from app.core.draft.draft import as_yaml
from app.core.i18n import tr, trn
from app.core.table_rows import TableRows
from backend.contract.catalog import SourceEntry
from backend.contract.tokens.training import ProposedToken, TokenCounts

COLUMNS = ("token", "pieces_now", "occurs", "note")


def proposed_rows(tokens: Sequence[ProposedToken], counts: Mapping[str, int] | None = None) -> TableRows:
    """One row per proposed token; `occurs` only if data was counted."""

    def color(row: int, column: str) -> str:
        if column == "note":
            return "warning" if tokens[row].problem else "muted"
        return "faint" if tokens[row].problem else ""

    columns = [name for name in COLUMNS if name != "occurs" or counts is not None]
    rows = []
    for token in tokens:
        occurs = [] if counts is None else ["" if token.problem else counts.get(token.text, 0)]
        rows.append([token.text, "  ".join(token.pieces), *occurs, note_of(token)])
    return TableRows(columns, rows, color)


def note_of(token: ProposedToken) -> str:
    """What the user should know about a proposed token."""
    if token.problem and token.known is not None:
        return tr("Already a token: ID {known}", known=token.known)
    if token.problem:
        return capitalize(token.problem)
    if token.known is not None:
        return tr("Already exists (ID {known}); will become special", known=token.known)
    if token.special:
        return tr("Special") if token.ids else tr("Special, currently unknown")
    return "" if token.ids else tr("Currently unknown")


def line_of(token: ProposedToken) -> str:
    """Everything known about a proposed token."""
    pieces = (
        tr("{text} is now {pieces}", text=token.text, pieces="  ".join(token.pieces)) if token.pieces else token.text
    )
    return " · ".join(filter(None, (pieces, note_of(token))))


def new_tokens(tokens: Sequence[ProposedToken]) -> list[ProposedToken]:
    """The tokens that can be added."""
    return [token for token in tokens if not token.problem]


def tokens_of(text: str) -> list[str]:
    """One token per line; surrounding spaces are ignored."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def saved_words(counts: TokenCounts) -> str:
    """The effect of adding the tokens on the counted texts."""
    less = 1 - counts.tokens_after / counts.tokens_before if counts.tokens_before else 0.0
    if abs(less) >= 0.0005:
        change = tr("{less:.1%} fewer", less=less) if less > 0 else tr("{value:.1%} more", value=-less)
    else:
        change = tr("slightly fewer") if less > 0 else tr("slightly more") if less < 0 else tr("no change")
    before, after = formatting.group_digits(counts.tokens_before), formatting.group_digits(counts.tokens_after)
    return tr(
        "{count}: {before} tokens become {after} ({change})",
        count=trn("{count} text", "{count} texts", counts.rows),
        before=before,
        after=after,
        change=change,
    )


_SWITCHES = ("lowercase", "strip_accents", "split_digits")


def train_command(
    source: SourceEntry | None,
    data: Mapping[str, Any],
    columns: Sequence[str],
    settings: Mapping[str, Any],
    output: str,
    compare_with: str = "",
) -> str:
    """`burnish tokenizer train …` with the non-default options."""
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
    """`--data` means the source's main setting; everything else is a setting of the `data` section."""
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


def free_folder(above: Path, name: str) -> Path:
    """`above/name`, or with -2, -3 … if that exists; characters that file systems reject become dashes."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "tokenizer"
    path, number = above / plain, 2
    while path.exists():
        path, number = above / f"{plain}-{number}", number + 1
    return path
