"""Answers queries about other machines: which are described, and whether one answers."""

from backend.contract import machines
from backend.contract.rpc.machines import MachineConsent, MachineList, MachineState
from backend.contract.rpc.protocol import Progress
from backend.contract.spec.section import validate
from backend.helper.query import Arguments, Query, ReportProgress, reporting, require
from backend.remote import connection, host_key, installation, plugin_jobs, schedulers


def _machines(arguments: Arguments, report: ReportProgress) -> MachineList:
    described = {name: machine.model_dump() for name, machine in machines.read_machines().items()}
    return MachineList(described, {name: plugin_jobs.find(name).title for name in plugin_jobs.names()})


def _save(arguments: Arguments, report: ReportProgress) -> MachineList:
    name = require(arguments, "name")
    machines.check_name(name)
    machine = validate(machines.Machine, require(arguments, "settings", dict))
    schedulers.check_known(machine.scheduler)
    machines.write_machines({**machines.read_machines(), name: machine})
    return _machines(arguments, report)


def _remove(arguments: Arguments, report: ReportProgress) -> MachineList:
    name = require(arguments, "name")
    machines.write_machines({other: one for other, one in machines.read_machines().items() if other != name})
    return _machines(arguments, report)


def _check(arguments: Arguments, report: ReportProgress) -> MachineState:
    return host_key.check(require(arguments, "name"))


def _trust(arguments: Arguments, report: ReportProgress) -> MachineState:
    name = require(arguments, "name")
    host_key.trust(name, require(arguments, "fingerprint"))
    return host_key.check(name)


def _install(arguments: Arguments, report: ReportProgress) -> MachineState:
    name = require(arguments, "name")
    installation.install(name, lambda part, done, total, unit: report(Progress(done, total, unit, part=part)))
    return connection.check(name)


def _consent(arguments: Arguments, report: ReportProgress) -> MachineConsent:
    from backend.inference import code_consent  # loads the hub library

    name = require(arguments, "name")
    target, revision = require(arguments, "target"), str(arguments.get("revision") or "main")
    found = code_consent.code_of(target, revision, reporting(report))
    files = [file for one in found for file in one.files]
    return MachineConsent(files, not found or connection.is_approved(name, {one.code for one in found}))


QUERIES = (
    Query("machines", _machines),
    Query("save_machine", _save),
    Query("remove_machine", _remove),
    Query("check_machine", _check),
    Query("trust_machine", _trust),
    Query("machine_consent", _consent),
    Query("install_machine", _install),
)
