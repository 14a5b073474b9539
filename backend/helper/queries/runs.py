"""Answers `plan`, `measure_time` and `export_curves`: what a run will cost, how long it takes here, and its curves as a file."""

from pathlib import Path

from backend.contract.output_file import output_errors
from backend.contract.rpc.plan import RunPlan
from backend.contract.rpc.protocol import ExportedFile
from backend.contract.run.cost import MeasuredTime
from backend.contract.run.folder import RunFolder
from backend.helper.query import Arguments, Query, ReportProgress, reporting, require
from backend.mirrors import tensorboard
from backend.mirrors.curves import Curves


def _plan(arguments: Arguments, report: ReportProgress) -> RunPlan:
    from backend.hardware import devices  # these load the data room
    from backend.preflight import cost, resolve

    spec = resolve.resolve(require(arguments, "spec", dict), Path(str(arguments.get("folder") or Path.home())))
    return cost.plan(
        spec, devices.list_devices(spec.hardware.engine, environment=spec.hardware.environment), reporting(report)
    )


def _measure(arguments: Arguments, report: ReportProgress) -> MeasuredTime:
    from backend.hardware import devices  # these load the data room
    from backend.preflight import resolve
    from backend.training import timing_trial_process

    spec = resolve.resolve(require(arguments, "spec", dict), Path(str(arguments.get("folder") or Path.home())))
    available = devices.list_devices(spec.hardware.engine, environment=spec.hardware.environment)
    return timing_trial_process.measure_in_process(spec, available, report)


def _export_curves(arguments: Arguments, report: ReportProgress) -> ExportedFile:
    run, folder = RunFolder(require(arguments, "run")), Path(require(arguments, "folder"))
    run.check()
    curves = Curves(run.events)
    with output_errors(folder):
        written = tensorboard.write(curves, folder)
    return ExportedFile(str(written.path), written.records)


QUERIES = (
    Query("plan", _plan),
    Query("measure_time", _measure, trains=True),
    Query("export_curves", _export_curves),
)
