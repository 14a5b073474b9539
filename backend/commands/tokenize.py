"""`burnish tokenize`: tokenizes one or more texts, and decodes ids and pieces."""

import re
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.commands import consents
from backend.commands.command import Command, add_consents, add_json, read_text
from backend.contract.errors import InputError
from backend.contract.safe_files import MAX_TEXT, MB
from backend.contract.safe_text import parse_json
from backend.contract.tokens.tokens import LONG_TEXT, Message, TokenizeQuestion

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SWITCHES = ("pre_split", "windows", "generation_prompt")
_VALUES = ("pair", "max_length", "truncation", "truncation_side", "stride", "padding", "padding_side", "pad_to_multiple_of")  # fmt: skip
_OF_A_TEXT = {"pair", "max_length", "padding", "pre_split"}
"""What a file cannot be counted with unless it is read whole, as a text."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "tokenizer",
        metavar="TOKENIZER",
        help="folder, run, Hub ID, or file: tokenizer.json, .model, vocab.txt, vocab.json (with merges.txt), tiktoken",
    )
    _add_sources(parser)
    parser.add_argument("--revision", default="main", help="branch, tag or commit of a Hub ID")
    parser.add_argument(
        "--option", dest="options", metavar="NAME=VALUE", action="append", default=[],
        help="model.tokenizer_options, for example add_prefix_space=true (may be repeated)",
    )  # fmt: skip
    _add_encoding(parser)
    _add_output(parser)
    add_consents(parser)
    add_json(parser)


def _add_sources(parser: ArgumentParser) -> None:
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--text", metavar="TEXT", help="the text (default: read from stdin)")
    one.add_argument(
        "--file", metavar="FILE", type=Path, help="a UTF-8 text file, of any size with --counts or --lines"
    )
    one.add_argument("--stdin", action="store_true", help="read the text from stdin")
    one.add_argument("--messages", metavar="JSON", help="a chat: a file, or JSON of a list of {role, content}")
    one.add_argument("--ids", metavar="ID", nargs="+", action="append", help="ids to decode (repeat for several lists)")
    one.add_argument("--pieces", metavar="PIECE", nargs="+", help="pieces to convert to ids and text")
    parser.add_argument("--pair", metavar="TEXT", help="the second text")


def _add_encoding(parser: ArgumentParser) -> None:
    parser.add_argument("--no-special-tokens", action="store_true", help="do not add special tokens")
    parser.add_argument("--pre-split", action="store_true", help="split words at whitespace")
    parser.add_argument("--max-length", metavar="N", type=int, help="truncate to this many tokens")
    parser.add_argument("--truncation", metavar="HOW", choices=("longest_first", "only_first", "only_second"), help=(
        "which of two texts to truncate: longest_first, only_first or only_second"
    ))  # fmt: skip
    parser.add_argument("--truncation-side", metavar="SIDE", choices=("left", "right"), help="left or right")
    parser.add_argument("--windows", action="store_true", help="put what does not fit into further windows")
    parser.add_argument("--stride", metavar="N", type=int, help="number of tokens that windows share")
    parser.add_argument("--padding", metavar="HOW", choices=("longest", "max_length"), help="longest or max_length")
    parser.add_argument("--padding-side", metavar="SIDE", choices=("left", "right"), help="left or right")
    parser.add_argument("--pad-to-multiple-of", metavar="N", type=int, help="pad to a multiple of N")
    parser.add_argument(
        "--chat-template", metavar="FILE", type=Path, help="a Jinja template to use instead of the tokenizer's"
    )
    parser.add_argument("--generation-prompt", action="store_true", help="add the generation prompt")
    parser.add_argument("--skip-special", action="store_true", help="with --ids: skip special tokens in the text")
    parser.add_argument("--clean-up", action="store_true", help="with --ids: remove spaces before punctuation")


def _add_output(parser: ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--counts", action="store_true", help="print counts only; works for files of any size in constant memory"
    )
    what.add_argument(
        "--steps", action="store_true", help="print the steps through normalizer, pre-tokenizer and model"
    )
    parser.add_argument(
        "--part",
        metavar="N",
        type=int,
        help=("with --steps: number of a chat message, a word, or a text of a pair, from 1"),
    )
    what.add_argument("--lines", action="store_true", help="treat each line as a text and print the padded batch")
    parser.add_argument(
        "--output", metavar="FILE", type=Path,
        help="with --lines and --file: write ids, masks and offsets of every line to an Arrow file",
    )  # fmt: skip


def _execute(arguments: Namespace) -> int:
    from backend.commands import tokenize_output

    if arguments.output and not (arguments.lines and arguments.file):
        raise InputError("--output: it takes the lines of a file; give --lines and --file too")
    reads = not (arguments.messages or arguments.ids or arguments.pieces)
    streams = arguments.output or _goes_as_file(arguments)
    text = _text(arguments) if reads and not streams else ""
    tokenizer, notes = _open(arguments)
    if arguments.ids:
        return tokenize_output.print_decoded(tokenizer, [_ids(one) for one in arguments.ids], arguments)
    if arguments.pieces:
        return tokenize_output.print_pieces(tokenizer, arguments.pieces, arguments.json)
    if arguments.output:
        return tokenize_output.write_lines(tokenizer, _question(arguments, text), arguments)
    if arguments.lines:
        return tokenize_output.batch_of_lines(tokenizer, _question(arguments, text), arguments.json)
    if arguments.steps:
        part = None if arguments.part is None else arguments.part - 1
        return tokenize_output.steps(tokenizer, _question(arguments, text), part, arguments.json)
    return tokenize_output.tokens(tokenizer, _question(arguments, text), notes, arguments)


def _open(arguments: Namespace) -> tuple["PreTrainedTokenizerBase", tuple[str, ...]]:
    from backend.tokenizers import loading, resolve  # loads transformers

    found = resolve.resolve_name(arguments.tokenizer, arguments.revision, _options(arguments.options))
    consents.agree_if_asked(arguments, found.name_or_path, revision=found.revision)
    tokenizer = loading.open_tokenizer(found.name_or_path, found.revision, found.options)
    return tokenizer, (found.note,) if found.note else ()


def _goes_as_file(arguments: Namespace) -> bool:
    """Whether to count the file while reading it, which supports no pairs, words, limit or padding."""
    return bool(arguments.counts and arguments.file is not None and not _given_options(arguments).keys() & _OF_A_TEXT)


def _given_options(arguments: Namespace) -> dict[str, Any]:
    given = {name: value for name in _VALUES if (value := getattr(arguments, name)) is not None}
    return given | {name: True for name in _SWITCHES if getattr(arguments, name)}


def _question(arguments: Namespace, text: str) -> TokenizeQuestion:
    """The same query that the window sends."""
    template = arguments.chat_template
    source: dict[str, Any] = {"text": text}
    if arguments.messages:
        source = {"messages": _messages(arguments.messages)}
    elif _goes_as_file(arguments):
        source = {"file": str(arguments.file)}
    return TokenizeQuestion(
        tokenizer=arguments.tokenizer,
        special_tokens=not arguments.no_special_tokens,
        chat_template=read_text(template, "--chat-template") if template else None,
        **_given_options(arguments),
        **source,
    )


def _messages(given: str) -> list[Message]:
    path = Path(given)
    text = given if given.lstrip().startswith("[") else read_text(path, "--messages")
    try:
        values = parse_json(text)
        return [Message(role=str(one["role"]), content=str(one["content"])) for one in values]
    except (ValueError, KeyError, TypeError):
        raise InputError(
            '--messages: this is not a chat; give JSON such as [{"role": "user", "content": "Hello"}]'
        ) from None


def _options(given: list[str]) -> dict[str, Any]:
    from backend.contract import spec_file

    options: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise InputError(f"--option {one}: give NAME=VALUE, for example add_prefix_space=true")
        options[name] = spec_file.parse(value, f"--option {name}")
    return options


def _ids(given: list[str]) -> list[int]:
    words = [word for word in re.split(r"[\s,;\[\]]+", " ".join(given)) if word]
    try:
        return [int(word) for word in words]
    except ValueError:
        wrong = next(word for word in words if not re.fullmatch(r"[+-]?\d+", word))
        raise InputError(f"--ids: {wrong!r} is not an ID; give whole numbers, for example 101 7592 102") from None


def _text(arguments: Namespace) -> str:
    if arguments.text is not None:
        return arguments.text
    if arguments.file is None:
        return _read_stdin()
    text = read_text(arguments.file, "--file")
    if len(text) > LONG_TEXT and not arguments.lines and not arguments.steps:
        sys.stderr.write(f"{arguments.file} is long; --counts counts it in constant memory\n")
    return text


def _read_stdin() -> str:
    if sys.stdin.isatty():
        sys.stderr.write("Type the text, then press Ctrl-D.\n")
    try:
        content = sys.stdin.buffer.read(MAX_TEXT + 1)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("--stdin: what is piped in is not UTF-8 text; convert it first") from None
    if len(content) > MAX_TEXT:
        raise InputError(
            f"--stdin: what is piped in is too large (more than {MAX_TEXT / MB:,.0f} MB); give --file with --counts"
        )
    if text:
        return text
    raise InputError("--text: there is no text; give --text or --file, or pipe one in")


COMMANDS = (Command("tokenize", "tokenize a text, or decode ids", _arguments, _execute),)
