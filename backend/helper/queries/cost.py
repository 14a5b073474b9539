"""Owns `plan`: what a spec would cost on the devices that are here."""

from pathlib import Path

from backend.contract.rpc.queries import RunPlan
from backend.helper.query import Arguments, Query, Tell, needed, reporting


def _plan(arguments: Arguments, tell: Tell) -> RunPlan:
    from backend.hardware import devices  # these load the data room
    from backend.preflight import cost, resolve

    spec = resolve.resolve(needed(arguments, "spec", dict), Path(str(arguments.get("folder") or Path.home())))
    return cost.plan(
        spec, devices.list_devices(spec.hardware.engine, environment=spec.hardware.environment), reporting(tell)
    )


QUERIES = (Query("plan", _plan),)
