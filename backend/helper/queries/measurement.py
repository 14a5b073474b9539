"""Owns `measure_time`: how long a spec trains here, found out by training a few steps of it."""

from pathlib import Path

from backend.contract.run.measurement import MeasuredTime
from backend.helper.query import Arguments, Query, Tell, needed


def _measure(arguments: Arguments, tell: Tell) -> MeasuredTime:
    from backend.hardware import devices  # these load the data room
    from backend.preflight import resolve
    from backend.training import trial_process

    spec = resolve.resolve(needed(arguments, "spec", dict), Path(str(arguments.get("folder") or Path.home())))
    here = devices.list_devices(spec.hardware.engine, environment=spec.hardware.environment)
    return trial_process.measured(spec, here, tell)


QUERIES = (Query("measure_time", _measure, trains=True),)
