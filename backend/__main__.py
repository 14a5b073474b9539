"""The command line of `burnish`; the one place where an exception becomes an exit code and a sentence."""

import functools
import os
import sys
import traceback
from argparse import ArgumentParser, Namespace
from typing import NoReturn

from backend.commands import (
    consents,
    data,
    doctor,
    export,
    importing,
    internal,
    machines,
    models,
    plan,
    predict,
    requests,
    runs,
    search,
    tokenize,
    tokenizer,
    train,
    window,
)
from backend.commands.command import CTRL_C_EXIT_CODE, Command
from backend.commands.screen import plain_streams
from backend.contract import offline
from backend.contract.errors import NO_ROOM, InputError, RunFailed, describe_system_error, panics_as_errors
from backend.contract.places import cache_folder
from backend.contract.redaction import redact

COMMANDS: tuple[Command, ...] = (
    *window.COMMANDS,
    *train.COMMANDS,
    *search.COMMANDS,
    *requests.COMMANDS,
    *runs.COMMANDS,
    *predict.COMMANDS,
    *tokenize.COMMANDS,
    *tokenizer.COMMANDS,
    *data.COMMANDS,
    *export.COMMANDS,
    *plan.COMMANDS,
    *importing.COMMANDS,
    *models.COMMANDS,
    *consents.COMMANDS,
    *machines.COMMANDS,
    *doctor.COMMANDS,
    *internal.COMMANDS,
)
LONGEST = 1000
"""Characters of a sentence; a stranger's name may have any number."""
DEBUG = "BURNISH_DEBUG"
"""With this variable set to 1 an unexpected exception is shown in full."""


class Parser(ArgumentParser):
    """Reports an invalid argument in one sentence."""

    def error(self, message: str) -> NoReturn:
        """Exit with code 2, as for any other bad input."""
        for own in (command.name for command in COMMANDS if not command.help):
            message = message.replace(f"'{own}', ", "").replace(f", '{own}'", "")
        sys.stderr.write(f"{self.prog}: {message} (see {self.prog} --help)\n")
        sys.exit(2)


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Exit code 0 on success, 1 on failure, 2 for unusable input."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with plain_streams():
        if problem := _unusable(arguments):
            sys.stderr.write(f"burnish: {problem}\n")
            return 2
        return _execute(_parser(_named(arguments)).parse_args(arguments))


def _named(arguments: list[str]) -> tuple[Command, ...]:
    """The command that the arguments start with; all commands if they start with none, for the help and for errors."""
    return tuple(command for command in COMMANDS if arguments[:1] == [command.name]) or COMMANDS


def _unusable(arguments: list[str]) -> str:
    """Why an argument cannot be used by any command; empty if all are fine."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            return f"{argument!r} is not UTF-8 text; rename the file, or use a terminal with UTF-8"
    return ""


def _execute(chosen: Namespace) -> int:
    offline.enforce()
    os.environ.update(_transformers_environment())
    try:
        with panics_as_errors():
            code = chosen.execute(chosen)
        sys.stdout.flush()  # at interpreter exit a full disk could no longer be reported
        return code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return CTRL_C_EXIT_CODE
    except BrokenPipeError:
        # The reader of our output has exited; without this the interpreter prints another error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        code = _report_error(error, chosen)
        if getattr(error, "errno", None) in NO_ROOM:  # it may be our output that has no room, and will have none
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return code


def _transformers_environment() -> dict[str, str]:
    """Environment for transformers, set before its import: a private folder for approved code, no Hub kernels."""
    return {"HF_MODULES_CACHE": str(cache_folder() / "code" / "modules"), "USE_HUB_KERNELS": "NO"}


def _report_error(error: Exception, arguments: Namespace) -> int:
    if os.environ.get(DEBUG) == "1":
        sys.stderr.write(redact(traceback.format_exc()))
    if isinstance(error, InputError):
        sys.stderr.write(f"{_shorten_names(redact(str(error)))}\n")
        return 2
    if isinstance(error, RunFailed):
        sys.stderr.write(f"{redact(str(error))}{f'. {error.hint}' if error.hint else ''}\n")
        return 1
    if reason := describe_system_error(error):
        sys.stderr.write(f"{redact(reason)}\n")
        return 1 if isinstance(error, MemoryError | ImportError) else 2
    first = next(iter(str(error).splitlines()), "it has no message")
    sys.stderr.write(
        f"burnish {arguments.command or ''} failed unexpectedly: {type(error).__name__}: {redact(first)} "
        f"(set {DEBUG}=1 to see everything)\n".replace("  ", " ")
    )
    return 1


def _shorten_names(sentence: str) -> str:
    """Cut the middle out of a very long message, such as one with a name of thousands of letters."""
    return sentence if len(sentence) <= LONGEST else f"{sentence[: LONGEST // 2]}…{sentence[-LONGEST // 2 :]}"


@functools.cache
def _parser(known: tuple[Command, ...]) -> Parser:
    parser = Parser(
        prog="burnish",
        description="Fine-tune transformer models. Without a command, the window opens.",
        epilog="burnish COMMAND --help explains a command.",
    )
    parser.set_defaults(execute=window.open_window, command="", run=None)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    for command in known:
        if command.help:
            child = commands.add_parser(command.name, help=command.help, description=command.help, allow_abbrev=False)
        else:  # Burnish's own business, which is not listed
            child = commands.add_parser(command.name, allow_abbrev=False)
        command.add_arguments(child)
        child.set_defaults(execute=command.execute)
    return parser


if __name__ == "__main__":
    sys.exit(main())
