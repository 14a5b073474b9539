"""`burnish doctor` and `report`: what is missing on this machine and how to fix it; what to send about a failed run."""

import sys
from argparse import ArgumentParser, Namespace

from backend.commands.command import Command, add_json, requested_run

MARKS = {"fine": "✓", "note": "!", "missing": "✗"}
PLAIN_MARKS = {"fine": "ok", "note": "!", "missing": "x"}


def _arguments(parser: ArgumentParser) -> None:
    add_json(parser)


def _doctor(arguments: Namespace) -> int:
    import msgspec

    from backend.hardware import doctor

    marks = MARKS if (sys.stdout.encoding or "").lower().startswith("utf") else PLAIN_MARKS
    findings = []
    for finding in doctor.check_up():
        findings.append(finding)
        if not arguments.json:
            print(f"{marks[finding.state]} {finding.text}", flush=True)
            if finding.mend:
                print(f"  fix it with: {finding.mend}", flush=True)
    if arguments.json:
        print(msgspec.json.encode(findings).decode())
    return 1 if any(finding.state == "missing" for finding in findings) else 0


def _report_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or folder of a run")


def _report(arguments: Namespace) -> int:
    from backend.contract.run.report import report  # loads msgspec and the YAML reader

    print(report(requested_run(arguments.run)), end="")
    return 0


COMMANDS = (
    Command("doctor", "check this machine and show how to fix problems", _arguments, _doctor),
    Command("report", "make a report of a failed run: versions, settings and tracebacks, without names, paths or "
        "texts", _report_arguments, _report),
)  # fmt: skip
