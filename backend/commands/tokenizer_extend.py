"""Owns `burnish tokenizer extend`: a tokenizer with more tokens, and what these replace."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.commands.command import add_json
from backend.commands.screen import Screen
from backend.commands.tokenizer_train import OUTPUT, add_data, texts_of
from backend.contract.errors import InputError
from backend.contract.places import is_offline
from backend.contract.safe_files import MAX_TEXT, read_regular

if TYPE_CHECKING:
    from backend.contract.tokens.training import ProposedToken
    from backend.tokenizers.added_tokens import Counted, Extension

_WIDTH = 24


def add_extend(actions: Any) -> None:
    """The words after `burnish tokenizer extend`."""
    extend = actions.add_parser("extend", help="add tokens to a tokenizer", allow_abbrev=False)
    extend.add_argument("tokenizer", metavar="TOKENIZER", help="folder, tokenizer.json, hub id or run")
    extend.add_argument("--revision", default="main", help="branch, tag or commit of a hub id")
    extend.add_argument("--add", metavar="TOKEN", nargs="+", default=[], help="tokens to add")
    extend.add_argument("--add-special", metavar="TOKEN", nargs="+", default=[], help="special tokens to add")
    extend.add_argument("--tokens", metavar="FILE", type=Path, help="a UTF-8 file with one token to add on each line")
    extend.add_argument("--whole-words", action="store_true", help="find added tokens only as whole words")
    extend.add_argument(OUTPUT, metavar="DIR", type=Path, help="the new folder; without it the tokens are only shown")
    add_data(extend, required=False)
    add_json(extend)
    extend.set_defaults(execute_action=_extend)


def _extend(arguments: Namespace) -> int:
    from backend.tokenizers import saving
    from backend.tokenizers.added_tokens import Extension, extend, propose  # loads transformers
    from backend.tokenizers.loading import open_named

    extension = Extension([*arguments.add, *_lines(arguments.tokens)], arguments.add_special, arguments.whole_words)
    if arguments.output is not None:
        saving.check_free(arguments.output, OUTPUT)
    before, after = (open_named(arguments.tokenizer, arguments.revision, is_offline()) for _ in range(2))
    tokens = propose(before, extension).tokens
    added = extend(after, extension)
    counted = _counted(arguments, before, after, extension) if arguments.data else None
    if arguments.output is not None:
        saving.save(after, arguments.output, OUTPUT)
    path = str(arguments.output.absolute()) if arguments.output is not None else None
    print(_as_json(tokens, counted, added, len(after), path) if arguments.json else _in_words(tokens, counted))
    if not arguments.json:
        print(f"{added:,} tokens added, {len(after):,} in all{f': {path}' if path else '; give --output to save it'}")
    return 0


def _lines(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        return [line for line in read_regular(file, MAX_TEXT).decode("utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text; convert it first"
        raise InputError(f"--tokens {file}: {reason}") from None


def _counted(arguments: Namespace, before: Any, after: Any, extension: "Extension") -> "Counted":
    from backend.tokenizers.added_tokens import count

    screen = Screen()
    try:
        texts = texts_of(arguments, screen)
        screen.begin("counting", len(texts), "rows", announce=False)
        wanted = [*extension.add, *extension.special]
        return count(before, after, texts, wanted, lambda done: screen.advance(done, len(texts)))
    finally:
        screen.close()


def _as_json(
    tokens: "list[ProposedToken]", counted: "Counted | None", added: int, vocabulary: int, path: str | None
) -> str:
    import msgspec

    entries = [msgspec.to_builtins(token) for token in tokens]
    values: dict[str, Any] = {"tokens": entries, "added": added, "vocabulary": vocabulary, "path": path}
    if counted is not None:
        for entry in entries:
            entry["count"] = counted.counts.get(entry["text"], 0)
        values |= {"rows": counted.rows, "tokens_before": counted.before, "tokens_after": counted.after}
    return msgspec.json.encode(values).decode()


def _in_words(tokens: "list[ProposedToken]", counted: "Counted | None") -> str:
    lines = []
    for token in tokens:
        often = f"{counted.counts.get(token.text, 0):>8,}x  " if counted is not None else ""
        now = token.problem or (" ".join(token.pieces) if token.pieces else "nothing that it knows")
        lines.append(f"{token.text:<{_WIDTH}}{often}{'special  ' if token.special else ''}{now}")
    if counted is not None and counted.before:
        less = 1 - counted.after / counted.before
        lines.append(f"{counted.before:,} tokens of {counted.rows:,} texts become {counted.after:,} ({less:.1%} fewer)")
    return "\n".join(lines)
