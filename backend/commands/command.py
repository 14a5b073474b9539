"""What a command is, and what several commands share: arguments, and finding the requested run."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.places import runs_folder
from backend.contract.run.folder import RunFolder, find_run, run_folders
from backend.contract.run.group import RunGroup, find_group
from backend.contract.safe_files import MAX_TEXT, read_regular
from backend.contract.safe_text import one_line

CTRL_C_EXIT_CODE = 130
"""Of a command that its user interrupts: what a shell reports of SIGINT."""
SHOWN_RUNS = 5
"""Names of the newest runs in the refusal of one that is not there."""


@dataclass(frozen=True)
class Command:
    """One subcommand of `burnish`; `execute` returns the exit code. Without `help` it is not listed."""

    name: str
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    execute: Callable[[Namespace], int]


def add_action(actions: Any, name: str, words: str) -> ArgumentParser:
    """The word after a command's own, such as `train` in `burnish tokenizer train`; its page opens with the same words."""
    return actions.add_parser(name, help=words, description=words, allow_abbrev=False)


def add_json(parser: ArgumentParser) -> None:
    """`--json`: the result as one JSON object on the last line of stdout, progress on stderr."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def add_changes(parser: ArgumentParser, example: str = "training.learning_rate=3e-5") -> None:
    """Add `--set KEY=VALUE`, which can be repeated."""
    parser.add_argument(
        "--set",
        dest="changes",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help=f"change a setting, for example {example} (may be repeated)",
    )


def add_conversion(parser: ArgumentParser) -> None:
    """Add the options that only the user can approve, including weight conversion."""
    parser.add_argument(
        "--convert-weights",
        action="store_true",
        help="allow converting a model that has only pytorch_model.bin or flax_model.msgpack",
    )


def add_consents(parser: ArgumentParser) -> None:
    """Add the options that only the user can approve."""
    parser.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="approve the model's own Python code as it is now (revoke with burnish consents)",
    )


def read_text(path: Path, option: str) -> str:
    """The text of a file that an option names. Raises InputError."""
    try:
        return read_regular(path, MAX_TEXT).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text; convert it first"
        raise InputError(f"{option} {path}: {reason}") from None


def require_spec(path: Path) -> None:
    """Name a spec file that is not there (InputError) before half a second goes into imports."""
    with suppress(OSError):  # of which reading says more
        if path.exists():
            return
    from backend.contract import spec_file  # loads YAML

    spec_file.read_text(path)


def requested_run(name_or_path: str) -> RunFolder:
    """The requested run. Raises InputError that lists the newest runs, or those of a group."""
    found = find_run(name_or_path, runs_folder())
    if found:
        return found.main_folder()  # a host's folder is not a run
    if group := find_group(name_or_path, runs_folder()):
        own = ", ".join(one_line(run.name) for run in group.made_runs()[:SHOWN_RUNS])
        raise InputError(f"{name_or_path}: this is a group of runs; name one of them: {own}")
    names = [one_line(folder.name) for folder in run_folders(runs_folder())[:SHOWN_RUNS]]
    there = f"the newest runs are {', '.join(names)}" if names else f"there are no runs in {runs_folder()} yet"
    raise InputError(f"{name_or_path}: there is no such run; {there}")


def requested_group(name_or_path: str) -> RunGroup | None:
    """The requested group; None if the name is that of a run, or of nothing. Raises InputError if it is damaged."""
    return None if find_run(name_or_path, runs_folder()) else find_group(name_or_path, runs_folder())
