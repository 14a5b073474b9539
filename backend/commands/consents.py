"""`burnish consents`, and what `--trust-remote-code` means: the user approves the code as it is now."""

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from backend.commands.command import Command, add_json
from backend.contract import consents
from backend.contract.errors import InputError
from backend.contract.places import cache_folder, is_offline, runs_folder
from backend.contract.run.folder import find_run


def agree_if_asked(arguments: Namespace, *targets: str, revision: str = "main") -> dict[str, str]:
    """Record consent to the code of every target; returns name → version. Raises InputError."""
    if not arguments.trust_remote_code:
        return {}
    from backend.inference import code_consent  # loads the hub library

    found = [one for target in targets for one in code_consent.agree(target, revision)]
    for one in found:
        sys.stderr.write(f"you approve the code of {one.name}, version {one.version[:12]}: {', '.join(one.files)}\n")
    return {one.name: one.version for one in found}


def convert_if_asked(arguments: Namespace, target: str) -> None:
    """Convert a model folder's or hub id's old weights once, if the user asked for it. Raises InputError."""
    if not arguments.convert_weights or find_run(target, runs_folder()) is not None:
        return
    from backend.models import location  # loads the hub library

    location.locate(target, cache=cache_folder() / "weights", offline=is_offline(), consent_to_convert=True)


def _arguments(parser: ArgumentParser) -> None:
    change = parser.add_mutually_exclusive_group()
    change.add_argument(
        "--agree", metavar="MODEL", help="approve the code of a model folder, Hub ID or run as it is now"
    )
    change.add_argument("--withdraw", metavar="MODEL", help="revoke approval of all its versions")
    parser.add_argument(
        "--revision", metavar="NAME", default="main", help="with --agree: branch, tag or commit (default: main)"
    )
    add_json(parser)


def _consents(arguments: Namespace) -> int:
    if arguments.agree:
        _agree(arguments.agree, arguments.revision)
    if arguments.withdraw:
        _withdraw(arguments.withdraw)
    found = consents.read()
    if arguments.json:
        print(json.dumps({"consents": [asdict(one) for one in found]}, ensure_ascii=False))
    elif not found:
        print("you have not approved any model's own code")
    for one in [] if arguments.json else found:
        print(f"{one.name}  {one.version[:12]}  {time.strftime('%Y-%m-%d %H:%M', time.localtime(one.agreed))}")
        print("".join(f"    {name}\n" for name in one.files), end="")
    return 0


def _agree(target: str, revision: str) -> None:
    from backend.inference import code_consent

    if not code_consent.agree(target, revision):
        raise InputError(f"--agree {target}: it runs no code of its own, so there is nothing to approve")


def _withdraw(name: str) -> None:
    versions = [one.version for one in consents.read() if one.name == name]
    if not versions:
        raise InputError(
            f"--withdraw {name}: you have not approved its code; burnish consents lists what you have approved"
        )
    for version in versions:
        consents.withdraw(name, version)


COMMANDS = (Command("consents", "list, approve or revoke custom model code", _arguments, _consents),)
