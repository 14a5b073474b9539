"""Answers `catalog`, `demo_spec`, `devices` and `doctor`: what can be chosen and used here."""

from typing import Any

from backend.contract.resources import resource
from backend.contract.rpc.plan import DeviceList
from backend.contract.rpc.protocol import Progress
from backend.helper.query import Arguments, Query, ReportProgress


def _catalog(arguments: Arguments, report: ReportProgress) -> Any:
    from backend import catalog  # loads the tasks

    return catalog.catalog()


def _demo_spec(arguments: Arguments, report: ReportProgress) -> Any:
    from backend.preflight import resolve  # loads the data room

    spec = resolve.read_spec(resource("demo", "sentiment.yaml"))
    return {"spec": spec.model_dump(mode="json")}


def _devices(arguments: Arguments, report: ReportProgress) -> DeviceList:
    from backend.hardware import devices

    return devices.query_devices(str(arguments.get("engine") or "torch"))


def _doctor(arguments: Arguments, report: ReportProgress) -> Any:
    from backend.hardware import doctor

    findings = []
    for finding in doctor.check_up():
        findings.append(finding)
        report(Progress(len(findings), 0, "checks", finding.text))
    return {"findings": findings}


QUERIES = (
    Query("catalog", _catalog),
    Query("demo_spec", _demo_spec),
    Query("devices", _devices),
    Query("doctor", _doctor),
)
