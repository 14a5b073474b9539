"""Owns `burnish data recognise`: what files and folders are by their content, as the `data` section of a spec."""

import json
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backend.contract.rpc.data import RecognisedData


def add_recognise(actions: Any) -> None:
    """The action `recognise` beside the others of `burnish data`."""
    parser: ArgumentParser = actions.add_parser(
        "recognise", help="what files or a folder are, and the data section that reads them", allow_abbrev=False
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a file, several files, a folder, or a hub address")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(execute_action=_recognise)


def _recognise(arguments: Namespace) -> int:
    import msgspec

    from backend.inspect.recognition import recognise  # loads every source

    found = recognise(arguments.paths)
    print(msgspec.json.encode(found).decode() if arguments.json else _in_words(found))
    for one in found.unreadable:
        print(one, file=sys.stderr)
    return 2 if found.unreadable else 0


def _in_words(found: "RecognisedData") -> str:
    """The sentence as a comment, then what a spec needs."""
    lines = [f"# {found.words}", *(f"# left out: {one.name} ({one.reason})" for one in found.left_out)]
    lines += [f"# careful: {one}" for one in found.warnings]
    if found.task:
        lines.append(f"task: {{type: {found.task}}}")
    lines.append("data:")
    lines += [f"  {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in found.data.items()]
    return "\n".join(lines)
