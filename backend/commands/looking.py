"""Owns how commands that look at a training's data name it: a spec file or a run, and a split."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from backend.commands.named_run import named_run
from backend.commands.screen import Screen
from backend.contract.errors import InputError

if TYPE_CHECKING:
    from backend.inspect.batch_preview import Look

SPLITS = ("train", "validation", "test")


def add_subject(parser: ArgumentParser) -> None:
    """The spec or run, and which of its splits."""
    parser.add_argument("subject", metavar="SPEC|RUN", help="a spec file (YAML), or the name or folder of a run")
    parser.add_argument("--split", choices=SPLITS, default="train", help="which of its data (train)")


def look_of(arguments: Namespace, screen: Screen) -> "Look":
    """Open what `add_subject` named. Raises InputError."""
    from backend.inspect import batch_preview
    from backend.preflight import resolve  # load the data room

    path = Path(arguments.subject)
    if path.suffix in (".yaml", ".yml") and not path.is_dir():
        return batch_preview.look(resolve.read_spec(path, arguments.changes), screen.report, arguments.split)
    if arguments.changes:
        raise InputError(
            f"--set: {arguments.subject} is a run, whose steps are those of its own settings; name its spec.yaml instead"
        )
    return batch_preview.look_at_run(named_run(arguments.subject), screen.report, arguments.split)
