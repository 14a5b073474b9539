"""Answers what a run will cost and how long it takes here, and exports its curves and its model."""

from pathlib import Path

from backend.contract.output_file import output_errors
from backend.contract.rpc.plan import RunPlan
from backend.contract.rpc.protocol import ExportedFile
from backend.contract.run.cost import MeasuredTime
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import user_path
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
    from backend.training import timing_trial

    spec = resolve.resolve(require(arguments, "spec", dict), Path(str(arguments.get("folder") or Path.home())))
    available = devices.list_devices(spec.hardware.engine, environment=spec.hardware.environment)
    return timing_trial.measure(spec, available, report)


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


QUERIES = (
    Query("plan", _plan),
    Query("measure_time", _measure, trains=True),
    Query("export_curves", _export_curves),
    Query("export_model", _export_model),
)
