"""Owns `burnish doctor`: what is missing here and the exact command that mends it."""

import sys
from argparse import ArgumentParser, Namespace

from backend.commands.command import Command, add_json

MARKS = {"fine": "✓", "note": "!", "missing": "✗"}
PLAIN_MARKS = {"fine": "ok", "note": "!", "missing": "x"}


def _arguments(parser: ArgumentParser) -> None:
    add_json(parser)


def _doctor(arguments: Namespace) -> int:
    import msgspec

    from backend.hardware import checkup

    marks = MARKS if (sys.stdout.encoding or "").lower().startswith("utf") else PLAIN_MARKS
    findings = []
    for finding in checkup.check_up():
        findings.append(finding)
        if not arguments.json:
            print(f"{marks[finding.state]} {finding.text}", flush=True)
            if finding.mend:
                print(f"  mend it with: {finding.mend}", flush=True)
    if arguments.json:
        print(msgspec.json.encode(findings).decode())
    return 1 if any(finding.state == "missing" for finding in findings) else 0


COMMANDS = (Command("doctor", "what is missing on this machine and what mends it", _arguments, _doctor),)
