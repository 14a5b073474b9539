"""Runs `burnish tokenizer train` and `extend`: a new tokenizer from a column of data, and one with more tokens."""

import os
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.commands.command import CTRL_C_EXIT_CODE, add_action, add_changes, add_json, read_text
from backend.commands.screen import ProgressScreen
from backend.contract.errors import InputError

if TYPE_CHECKING:
    from backend.contract.tokens.training import Compression, ProposedToken, TokenCounts, TrainedTokenizer
    from backend.inspect.column_texts import ColumnTexts
    from backend.inspect.tokenizer_training import LearnedTokenizer
    from backend.tokenizers.added_tokens import Extension

OUTPUT = "--output"
_SWITCHES = ("lowercase", "strip_accents", "split_digits")
_WORDS = {
    "kind": "byte_bpe, bpe, wordpiece or unigram (byte_bpe)",
    "use": "decoder, encoder or encoder_decoder (decoder)",
    "vocabulary": "maximum number of pieces (8000)",
    "min_frequency": "minimum frequency of a piece (2)",
    "normaliser": "usual, none, nfc or nfkc (usual)",
    "pre_tokenizer": "usual, whitespace, punctuation or none (usual)",
    "held_out": "share of the rows to measure on (0.05 with --compare, else 0)",
    "lowercase": "treat uppercase and lowercase alike",
    "strip_accents": "remove accents from letters",
    "split_digits": "make every digit a separate piece",
}
_NUMBERS = {"vocabulary": int, "min_frequency": int, "held_out": float}
_WIDTH = 24


def add_train(actions: Any) -> None:
    """The arguments of `burnish tokenizer train`."""
    train = add_action(actions, "train", "train a new tokenizer on texts")
    _add_data(train, required=True)
    train.add_argument(
        OUTPUT, metavar="DIR", type=Path, required=True, help="a new folder, or an existing one without a tokenizer"
    )
    for name, words in _WORDS.items():
        if name in _SWITCHES:
            train.add_argument(_option(name), action="store_true", default=None, help=words)
        else:
            train.add_argument(_option(name), metavar="VALUE", type=_NUMBERS.get(name, str), help=words)
    train.add_argument(
        "--special", metavar="TOKEN", nargs="+", help="additional special tokens, for example '<speaker>'"
    )
    train.add_argument(
        "--compare",
        metavar="TOKENIZER",
        help=("an existing tokenizer to compare with: a folder, tokenizer.json, Hub ID or run"),
    )
    add_json(train)
    train.set_defaults(execute_action=_train)


def _add_data(parser: Any, *, required: bool) -> None:
    """Add `--data`, `--source`, `--column` and `--set data.…`: any column of any data."""
    parser.add_argument(
        "--data",
        metavar="FILE",
        nargs="+",
        required=required,
        help="files, folders or patterns, or the dataset of the source",
    )
    parser.add_argument("--source", metavar="NAME", help="the data source (default: files)")
    parser.add_argument(
        "--column", metavar="NAME", nargs="+", help="the columns with texts (default: all text columns)"
    )
    add_changes(parser, "data.encoding=windows-1252")


def _read_texts(arguments: Namespace, screen: ProgressScreen) -> "ColumnTexts":
    """The texts named by the arguments of `_add_data`. Raises InputError."""
    from backend.contract import spec_file
    from backend.inspect.column_texts import read_column_texts  # loads the data room
    from backend.inspect.data_report import source_keys

    source, target = arguments.source or "files", arguments.data
    values: dict[str, Any] = {"data": {"source": source, **source_keys(source, target[0])}}
    if len(target) > 1:
        values["data"] |= dict.fromkeys(source_keys(source, target[0]), target)
    values = spec_file.apply_changes(values, arguments.changes)
    return read_column_texts(values["data"], arguments.column, Path.cwd(), screen.report("reading data"), "--column")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _train(arguments: Namespace) -> int:
    from backend.contract.spec import validate  # loads pydantic
    from backend.contract.spec.tokenizer_training import TokenizerTraining
    from backend.inspect import tokenizer_training  # loads the tokenizers library
    from backend.tokenizers import saving

    saving.check_free(arguments.output, OUTPUT)
    fields = TokenizerTraining.model_fields
    given = {name: value for name in _WORDS if (value := getattr(arguments, name)) is not None}
    with _name_option_in_errors(fields):
        settings = validate(TokenizerTraining, {**given, "special_tokens": arguments.special or []})
    screen = ProgressScreen()
    try:
        texts = _read_texts(arguments, screen)
        screen.line(f"{len(texts.rows):,} rows of {', '.join(texts.columns)}")
        with _name_option_in_errors(fields):
            learnt = _stoppable(
                lambda: tokenizer_training.learn(texts, settings, arguments.compare or None, _report_on(screen))
            )
        screen.close()
        made = learnt.save(arguments.output, OUTPUT)
    finally:
        screen.close()
    print(_print_json_line(made) if arguments.json else _describe_made(made))
    return 0


@contextmanager
def _name_option_in_errors(fields: Mapping[str, object]) -> Iterator[None]:
    """Make an error about a setting in `fields` name the command-line option instead."""
    try:
        yield
    except InputError as error:
        if error.field is None or error.field not in fields:
            raise
        option = "--special" if error.field == "special_tokens" else _option(error.field)
        raise InputError(option + str(error).removeprefix(error.field), option) from None


def _report_on(screen: ProgressScreen) -> Any:
    stages: list[str] = []

    def say(stage: str, done: int, total: int, unit: str) -> None:
        if stages[-1:] != [stage]:
            stages.append(stage)
            screen.start_stage(stage, total, unit, announce=False)
        screen.advance(done, total)

    return say


def _stoppable(learn: "Callable[[], LearnedTokenizer]") -> "LearnedTokenizer":
    """Train in a thread, because the library runs for minutes and only notices Ctrl-C at the end."""
    # Meanwhile 2 is a pipe (`trainer_progress`), whose reader would not live to pass the last sentence on.
    stderr = None if sys.stderr is None else os.dup(2)
    interrupted = threading.Event()

    def interrupt(*_: object) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    def check() -> None:
        # Python drops what is raised in a callback of its own, such as that of an import's lock.
        if interrupted.is_set():
            raise KeyboardInterrupt

    # A job in the background of a shell ignores Ctrl-C, and only the main thread has handlers.
    hears = threading.current_thread() is threading.main_thread()
    hears = hears and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if hears:
        signal.signal(signal.SIGINT, interrupt)
    try:
        from backend.training.background import run_beside  # within, as a Ctrl-C may come while it loads

        learnt = run_beside(learn, check, "learning")
        check()
        return learnt
    except KeyboardInterrupt:
        if stderr is not None:
            os.write(stderr, b"\nstopped; nothing was written\n")
        os._exit(CTRL_C_EXIT_CODE)  # the interpreter would wait for what still learns
    finally:
        if hears:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if stderr is not None:
            os.close(stderr)


def _print_json_line(made: "TrainedTokenizer") -> str:
    """Print the answer on one line, with the ratios derived from it."""
    import msgspec

    values = msgspec.to_builtins(made)
    for entry, measured in zip(values["compression"], made.compression, strict=True):
        entry |= {
            "tokens_per_word": round(measured.per_word, 4),
            "tokens_per_character": round(measured.per_character, 4),
            "bytes_per_token": round(measured.bytes_per_token, 4),
        }
    return msgspec.json.encode(values).decode()


def _describe_made(made: "TrainedTokenizer") -> str:
    """A table of the measurements, and finally the tokenizer's folder."""
    lines = []
    if made.compression:
        rows = f"{made.compression[0].rows:,} {'held-out ' if made.held_out else ''}texts"
        lines += [rows, f"{'':<28}{'pieces':>9}{'tokens':>11}{'per word':>10}{'per char.':>11}{'unknown':>9}"]
        lines += [_compression_line(each, made.path) for each in made.compression]
    return "\n".join([*lines, *made.notes, f"{made.vocabulary:,} pieces: {made.path}"])


def _compression_line(measured: "Compression", own: str) -> str:
    name = "new" if measured.tokenizer == own else measured.tokenizer
    short_name = name if len(name) <= 27 else f"…{name[-26:]}"
    return (
        f"{short_name:<28}{measured.vocabulary:>9,}{measured.tokens:>11,}{measured.per_word:>10.3f}"
        f"{measured.per_character:>11.4f}{measured.unknown:>9,}"
    )


def add_extend(actions: Any) -> None:
    """The arguments of `burnish tokenizer extend`."""
    extend = add_action(actions, "extend", "add tokens to a tokenizer")
    extend.add_argument("tokenizer", metavar="TOKENIZER", help="folder, tokenizer.json, Hub ID or run")
    extend.add_argument("--revision", default="main", help="branch, tag or commit of a Hub ID")
    extend.add_argument("--add", metavar="TOKEN", nargs="+", default=[], help="tokens to add")
    extend.add_argument("--add-special", metavar="TOKEN", nargs="+", default=[], help="special tokens to add")
    extend.add_argument("--tokens", metavar="FILE", type=Path, help="a UTF-8 file with one token to add per line")
    extend.add_argument("--whole-words", action="store_true", help="match added tokens only as whole words")
    extend.add_argument(OUTPUT, metavar="DIR", type=Path, help="the new folder (default: only show the tokens)")
    _add_data(extend, required=False)
    add_json(extend)
    extend.set_defaults(execute_action=_extend)


def _extend(arguments: Namespace) -> int:
    from backend.tokenizers import saving
    from backend.tokenizers.added_tokens import Extension, extend, propose  # loads transformers
    from backend.tokenizers.loading import open_named

    listed = read_text(arguments.tokens, "--tokens").splitlines() if arguments.tokens else []
    add = [*arguments.add, *(line for line in listed if line.strip())]
    extension = Extension(add, arguments.add_special, arguments.whole_words)
    if arguments.output is not None:
        saving.check_free(arguments.output, OUTPUT)
    before, after = (open_named(arguments.tokenizer, arguments.revision) for _ in range(2))
    tokens = propose(before, extension).tokens
    added = extend(after, extension)
    counted = _count(arguments, before, after, extension) if arguments.data else None
    if arguments.output is not None:
        saving.save(after, arguments.output, OUTPUT)
    path = str(arguments.output.absolute()) if arguments.output is not None else None
    print(
        _tokens_as_json(tokens, counted, added, len(after), path)
        if arguments.json
        else _describe_tokens(tokens, counted)
    )
    if not arguments.json:
        print(f"{added:,} tokens added, {len(after):,} in all{f': {path}' if path else '; give --output to save it'}")
    return 0


def _count(arguments: Namespace, before: Any, after: Any, extension: "Extension") -> "TokenCounts":
    from backend.tokenizers.added_tokens import count

    screen = ProgressScreen()
    try:
        texts = _read_texts(arguments, screen)
        screen.start_stage("counting", len(texts), "rows", announce=False)
        wanted = [*extension.add, *extension.special]
        return count(before, after, texts, wanted, lambda done: screen.advance(done, len(texts)))
    finally:
        screen.close()


def _tokens_as_json(
    tokens: "list[ProposedToken]", counted: "TokenCounts | None", added: int, vocabulary: int, path: str | None
) -> str:
    import msgspec

    entries = [msgspec.to_builtins(token) for token in tokens]
    values: dict[str, Any] = {"tokens": entries, "added": added, "vocabulary": vocabulary, "path": path}
    if counted is not None:
        for entry in entries:
            entry["count"] = counted.counts.get(entry["text"], 0)
        values |= {"rows": counted.rows, "tokens_before": counted.tokens_before, "tokens_after": counted.tokens_after}
    return msgspec.json.encode(values).decode()


def _describe_tokens(tokens: "list[ProposedToken]", counted: "TokenCounts | None") -> str:
    lines = []
    for token in tokens:
        often = f"{counted.counts.get(token.text, 0):>8,}x  " if counted is not None else ""
        now = token.problem or (" ".join(token.pieces) if token.pieces else "nothing it knows")
        lines.append(f"{token.text:<{_WIDTH}}{often}{'special  ' if token.special else ''}{now}")
    if counted is not None and (before := counted.tokens_before):
        after, less = counted.tokens_after, 1 - counted.tokens_after / before
        lines.append(f"{before:,} tokens of {counted.rows:,} texts become {after:,} ({less:.1%} fewer)")
    return "\n".join(lines)
