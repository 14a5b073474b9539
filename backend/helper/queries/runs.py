"""Answers what a run will cost and how long it takes here, and exports its curves and its model."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.output_file import output_errors
from backend.contract.rpc.models import OnnxExport
from backend.contract.rpc.plan import RunPlan
from backend.contract.rpc.predictions import ComparedRuns, DifferingRows
from backend.contract.rpc.protocol import ExportedFile
from backend.contract.rpc.search import SearchReport
from backend.contract.run.comparison import facts_of
from backend.contract.run.cost import MeasuredTime
from backend.contract.run.curves import Curves, parting_step
from backend.contract.run.event_summary import landmarks
from backend.contract.run.folder import RunFolder
from backend.contract.run.group import RunGroup
from backend.contract.safe_files import user_path
from backend.contract.spec.search import SEARCH
from backend.helper.query import Arguments, Query, ReportProgress, reporting, require
from backend.mirrors import tensorboard

if TYPE_CHECKING:
    from backend.contract.spec import RunSpec

MOST_ROWS = 500
"""Rows on which two runs differ that are shown."""


def _plan(arguments: Arguments, report: ReportProgress) -> RunPlan:
    from backend.preflight import resolve  # loads the data room

    values, base = dict(require(arguments, "spec", dict)), Path(str(arguments.get("folder") or Path.home()))
    section = values.pop(SEARCH, None)
    if section is None:
        return _plan_run(resolve.resolve(values, base), report)
    from backend.search import plan as plans

    search = plans.make_plan(values, section, base)
    found = _plan_run(search.middle(), report)
    others = [_plan_run(spec, report) for spec in search.others()]
    return msgspec.structs.replace(found, search=plans.estimate(search, [found, *others]))


def _plan_run(spec: "RunSpec", report: ReportProgress) -> RunPlan:
    from backend.hardware import devices
    from backend.preflight import cost

    available = devices.list_devices(spec.hardware.engine, environment=spec.hardware.environment)
    return cost.plan(spec, available, reporting(report))


def _measure(arguments: Arguments, report: ReportProgress) -> MeasuredTime:
    from backend.hardware import devices  # these load the data room
    from backend.preflight import resolve
    from backend.training import timing_trial

    spec = resolve.resolve(require(arguments, "spec", dict), Path(str(arguments.get("folder") or Path.home())))
    available = devices.list_devices(spec.hardware.engine, environment=spec.hardware.environment)
    return timing_trial.measure(spec, available, report)


def compare_runs(compared: Sequence[RunFolder | RunGroup], names: Sequence[str]) -> ComparedRuns:
    """What differs between runs and groups that are shown under these names, and whether by more than chance.

    A group's losses and what it found are those of its first run. Raises InputError.
    """
    from backend.helper.queries.predictions import read
    from backend.inspect.run_comparison import compare  # loads scipy

    runs = [one if isinstance(one, RunFolder) else first_run(one) for one in compared]
    losses = [_compare_losses(run, name, runs[0], names[0]) for run, name in zip(runs[1:], names[1:], strict=True)]
    facts = [facts_of(landmarks(run.events)) for run in runs]
    return msgspec.structs.replace(compare(compared, names, read), losses=losses, facts=facts)


def first_run(group: RunGroup) -> RunFolder:
    """The first run that a group has. Raises InputError if it has none."""
    run = next(iter(group.made_runs()), None)
    if run is None:
        raise InputError("{name}: none of this group's runs is there; burnish resume makes them", name=group.name)
    return run


def run_or_group(path: str) -> RunFolder | RunGroup:
    """What is in this folder."""
    group = RunGroup(path)
    return group if group.exists() else RunFolder(path)


def _compare_losses(folder: RunFolder, name: str, first: RunFolder, first_name: str) -> str:
    try:
        step, differs = parting_step(first.events, folder.events)
    except InputError:  # no steps yet
        return ""
    words = {"a": first_name, "b": name, "step": step}
    if differs:
        return message("the losses of {a} and {b} part at step {step:,}", **words)
    if not step:
        return message("{a} and {b} have no step in common", a=first_name, b=name)
    return message(
        "{a} and {b} have exactly the same losses up to step {step:,}, so what differs between them had no effect so far",
        **words,
    )


def _compare_runs(arguments: Arguments, report: ReportProgress) -> ComparedRuns:
    paths, names = require(arguments, "runs", list), require(arguments, "names", list)
    return compare_runs([run_or_group(path) for path in paths], [str(name) for name in names])


def _differing_rows(arguments: Arguments, report: ReportProgress) -> DifferingRows:
    from backend.helper.queries.predictions import read
    from backend.inspect.run_comparison import find_differing  # loads scipy

    paths, names = require(arguments, "runs", list), require(arguments, "names", list)
    return find_differing([run_or_group(path) for path in paths], [str(name) for name in names], read, MOST_ROWS)


def _export_curves(arguments: Arguments, report: ReportProgress) -> ExportedFile:
    run, folder = RunFolder(require(arguments, "run")), Path(require(arguments, "folder"))
    run.check()
    curves = Curves(run.events)
    with output_errors(folder):
        written = tensorboard.write(curves, folder)
    return ExportedFile(str(written.path), written.records)


def _export_model(arguments: Arguments, report: ReportProgress) -> ExportedFile:
    from backend.inference.model_export import export_merged, export_saved

    run, folder = RunFolder(require(arguments, "run")), user_path(require(arguments, "folder")).absolute()
    run.check()
    if arguments.get("merged"):
        export_merged(str(run.path), folder)
    else:
        export_saved(run, folder, "float16" if arguments.get("dtype") == "float16" else "float32")
    return ExportedFile(str(folder), 0)


def _export_onnx(arguments: Arguments, report: ReportProgress) -> OnnxExport:
    from backend.inference.onnx_export import export_onnx  # loads the framework

    run, folder = RunFolder(require(arguments, "run")), user_path(require(arguments, "folder")).absolute()
    run.check()
    return export_onnx(run, folder, int8=bool(arguments.get("int8")), report=reporting(report))


def _search_report(arguments: Arguments, report: ReportProgress) -> SearchReport:
    from backend.helper.queries.predictions import read
    from backend.search.report import report as report_search  # loads the data room

    folder, whole = RunFolder(require(arguments, "search")), bool(arguments.get("importance"))
    return report_search(folder, importance=whole, read=read if whole else None)


QUERIES = (
    Query("search_report", _search_report),
    Query("compare_runs", _compare_runs),
    Query("differing_rows", _differing_rows),
    Query("plan", _plan),
    Query("measure_time", _measure, trains=True),
    Query("export_curves", _export_curves),
    Query("export_model", _export_model),
    Query("export_onnx", _export_onnx),
)
