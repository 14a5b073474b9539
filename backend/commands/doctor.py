"""`burnish describe`, `doctor` and `report`: what can be chosen, what is missing and how to fix it, what to send about a failed run."""

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from backend.commands.command import Command, add_json, requested_run

if TYPE_CHECKING:
    from backend.contract.catalog import Catalog, MetricEntry

MARKS = {"fine": "✓", "note": "!", "missing": "✗"}
PLAIN_MARKS = {"fine": "ok", "note": "!", "missing": "x"}


def _describe_arguments(parser: ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument("--no-devices", action="store_true", help="skip the devices, which take a few seconds to query")


def _describe(arguments: Namespace) -> int:
    import msgspec

    from backend import catalog as catalogue

    devices_found = None
    if not arguments.no_devices:
        from backend.hardware import devices  # loads pydantic

        devices_found = devices.list_all()
    catalog = catalogue.catalog(devices_found)
    print(msgspec.json.encode(catalog).decode() if arguments.json else _format_catalog(catalog))
    return 0


def _format_catalog(catalog: "Catalog") -> str:
    lines = ["tasks"]
    lines += [f"  {task.name:<22} {task.description}" for task in catalog.tasks]
    lines += ["sources", *(f"  {source.name:<22} {source.description}" for source in catalog.sources)]
    lines += ["engines"]
    lines += [f"  {one.name:<22} {one.missing or one.description}" for one in catalog.engines]
    lines += ["optimizers", *(f"  {one.name:<22} {one.description}" for one in catalog.optimizers)]
    lines += ["adapters", *(f"  {one.name:<22} {one.description}" for one in catalog.adapters)]
    lines += ["trackers", *(f"  {one.name:<22} {one.description}" for one in catalog.mirrors)]
    lines += ["metrics", *(f"  {one.name:<22} {_direction(one)}" for one in catalog.metrics)]
    if catalog.problems:
        lines += ["left out", *(f"  {problem}" for problem in catalog.problems)]
    if catalog.devices is not None:
        lines += ["devices"]
        lines += [
            f"  {f'{one.engine} {one.kind} {one.index}':<22} {one.name}, {one.free_mb / 1000:.1f} of {one.memory_mb / 1000:.1f} GB free"
            for one in catalog.devices
        ]
    lines += ["versions", *(f"  {name:<22} {version}" for name, version in catalog.versions.items())]
    return "\n".join([*lines, "Every setting with its bounds: burnish describe --json"])


def _direction(metric: "MetricEntry") -> str:
    least, greatest = ("" if limit is None else f"{limit:g}" for limit in metric.range)
    limits = f", {least} to {greatest}" if least and greatest else f", {least} or more" if least else ""
    if metric.greater_is_better is None:
        return f"{metric.title}{limits}; not declared whether greater is better"
    return f"{metric.title}{limits}; {'greater' if metric.greater_is_better else 'smaller'} is better"


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
    Command("describe", "list tasks, sources, engines and devices", _describe_arguments, _describe),
    Command("doctor", "check this machine and show how to fix problems", _arguments, _doctor),
    Command("report", "make a report of a failed run: versions, settings and tracebacks, without names, paths or "
        "texts", _report_arguments, _report),
)  # fmt: skip
