"""Opens the window as a separate process, since neither package imports the other."""

import importlib.util
import os
import subprocess
from argparse import ArgumentParser, Namespace

from backend.commands.command import Command
from backend.contract.errors import RunFailed
from backend.contract.processes import OPEN_AGAIN, python_command
from backend.hardware.display import has_display

MISSING = "the window needs PySide6 and pyqtgraph; install them with: pip install 'burnish[window]'"


def can_show() -> bool:
    """Whether there is a display and the window's libraries are installed."""
    return has_display() and is_installed()


def is_installed() -> bool:
    """Whether the window's libraries are installed; imports nothing."""
    return all(importlib.util.find_spec(name) for name in ("PySide6", "pyqtgraph", "app"))


def show(*arguments: str) -> int:
    """Open the window, reopen it on request, and wait; returns its exit code. Raises RunFailed that says what to do."""
    if not is_installed():
        raise RunFailed(MISSING, "window_missing")
    code = OPEN_AGAIN
    try:
        while code == OPEN_AGAIN:
            code = subprocess.call(python_command("app", *arguments))
    except KeyboardInterrupt:
        return 0  # the same Ctrl-C has reached the window
    if code < 0 or code == 1:
        raise RunFailed("the window could not be opened or crashed; burnish doctor says what is missing", "window")
    return code


def open_window(arguments: Namespace) -> int:
    """`burnish` without a command."""
    if not has_display() and not os.environ.get("QT_QPA_PLATFORM"):
        raise RunFailed(
            "there is no display to open the window on; burnish train SPEC.yaml works without one", "no_display"
        )
    return show(*(["--run", arguments.run] if arguments.run else []))


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--run", metavar="RUN", help="show this run first")


COMMANDS = (Command("window", "open the window", _arguments, open_window),)
