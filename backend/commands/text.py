"""Owns `burnish generate` and `burnish tokenize`: text in, text or tokens out."""

import json
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import fields
from pathlib import Path

from backend.commands.command import Command, add_changes, add_json
from backend.contract.errors import InputError
from backend.contract.generation import GenerationSettings
from backend.contract.places import is_offline, runs_folder
from backend.contract.run_folder import find_run

_DECODING = [one.name for one in fields(GenerationSettings) if one.name not in {"sample", "seed", "eos_token_id"}]
"""The settings of writing that the tasks have under the same name, but for the one that is a switch."""


def _generate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("target", metavar="RUN_OR_MODEL", help="name or folder of a run, or a model folder or hub id")
    parser.add_argument("--prompt", metavar="TEXT", required=True, help="the text to continue or to answer")
    parser.add_argument("--sample", action="store_true", help="draw tokens by chance instead of taking the likeliest")
    for name in _DECODING:
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="N", help=f"the task's setting {name}")
    parser.add_argument("--seed", metavar="N", type=int, help="makes sampling repeatable")
    add_changes(parser)


def _generate(arguments: Namespace) -> int:
    if not arguments.prompt.strip():
        raise InputError("--prompt: it is empty; write the text to continue or to answer")
    from backend import predict  # loads the framework

    changes = [f"task.{name}={value}" for name in _DECODING if (value := getattr(arguments, name)) is not None]
    if arguments.sample:
        changes.append("task.sample=true")
    pieces = predict.generate(
        arguments.target, arguments.prompt, changes=[*arguments.changes, *changes], seed=arguments.seed
    )
    for piece in pieces:
        print(piece, end="", flush=True)
    print()
    return 0


def _tokenize_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("tokenizer", metavar="TOKENIZER", help="folder, tokenizer.json, hub id or run")
    text = parser.add_mutually_exclusive_group()
    text.add_argument("--text", metavar="TEXT", help="the text; without --text and --file it is read from stdin")
    text.add_argument("--file", metavar="FILE", type=Path, help="a UTF-8 text file")
    parser.add_argument("--revision", default="main", help="branch, tag or commit of a hub id")
    parser.add_argument(
        "--no-special-tokens", action="store_true", help="leave out what the model expects around a text"
    )
    add_json(parser)


def _tokenize(arguments: Namespace) -> int:
    text = _text(arguments)
    from backend.tokenizers import inspect, loading  # loads transformers
    from backend.tokenizers.encoding import Options

    tokenizer = loading.open_tokenizer(tokenizer_of(arguments.tokenizer), arguments.revision, offline=is_offline())
    table = inspect.tokenize(tokenizer, text, Options(special_tokens=not arguments.no_special_tokens))
    if arguments.json:
        print(json.dumps(inspect.as_json(table), ensure_ascii=False))
        return 0
    told = inspect.as_json(table)
    for number, piece, (start, end) in zip(told["ids"], told["pieces"], told["offsets"], strict=True):
        print(f"{number:>8}  {start:>6}-{end:<6}  {piece}")
    rest = table.rest
    print(f"{rest.tokens} tokens, {rest.characters} characters, {rest.words} words, {rest.unknown} unknown")
    return 0


def tokenizer_of(target: str) -> str:
    """A folder, file or hub id as it is; of a run the folder of its model. Raises InputError where it has none yet."""
    run = find_run(target, runs_folder())
    if run is None:
        return target
    if not run.model.is_dir():
        raise InputError(f"{target}: this run has no model yet; let it finish, or stop it, first")
    return str(run.model)


def _text(arguments: Namespace) -> str:
    if arguments.text is not None:
        return arguments.text
    if arguments.file is None:
        return _piped()
    try:
        return arguments.file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text; convert it first"
        raise InputError(f"--file {arguments.file}: {reason}") from None


def _piped() -> str:
    if sys.stdin.isatty():
        sys.stderr.write("Type the text; Ctrl-D ends it.\n")
    if text := sys.stdin.read():
        return text
    raise InputError("--text: there is no text; give --text or --file, or pipe one in")


COMMANDS = (
    Command("generate", "continue or answer a text", _generate_arguments, _generate),
    Command("tokenize", "show what a tokenizer makes of a text", _tokenize_arguments, _tokenize),
)
