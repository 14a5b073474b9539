"""Owns what a command is, and the arguments that several commands share."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

CTRL_C_EXIT_CODE = 130
"""Of a command that its user interrupts: what a shell reports of SIGINT."""


@dataclass(frozen=True)
class Command:
    """One word after `burnish`; `execute` returns the exit code. Without `help` it is not listed."""

    name: str
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    execute: Callable[[Namespace], int]


def add_json(parser: ArgumentParser) -> None:
    """`--json`: the result as one JSON object on the last line of stdout, progress on stderr."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def add_changes(parser: ArgumentParser) -> None:
    """`--set KEY=VALUE`, as often as wanted."""
    parser.add_argument(
        "--set",
        dest="changes",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change a setting, for example training.learning_rate=3e-5 (may be repeated)",
    )


def add_conversion(parser: ArgumentParser) -> None:
    """What only the person at the keyboard may allow, too."""
    parser.add_argument("--convert-weights", action="store_true", help="agree to convert pytorch_model.bin once")


def add_consents(parser: ArgumentParser) -> None:
    """What only the person at the keyboard may allow."""
    parser.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="agree to run the model's own Python code as it is now (burnish consents withdraws it)",
    )
