"""Answers queries about other machines: which are described, and whether one answers."""

from backend.contract import machines
from backend.contract.rpc.machines import MachineList, MachineState
from backend.contract.spec.section import validate
from backend.helper.query import Arguments, Query, ReportProgress, require
from backend.remote import connection


def _machines(arguments: Arguments, report: ReportProgress) -> MachineList:
    return MachineList({name: machine.model_dump() for name, machine in machines.read_machines().items()})


def _save(arguments: Arguments, report: ReportProgress) -> MachineList:
    name = require(arguments, "name")
    machines.check_name(name)
    machine = validate(machines.Machine, require(arguments, "settings", dict))
    machines.write_machines({**machines.read_machines(), name: machine})
    return _machines(arguments, report)


def _remove(arguments: Arguments, report: ReportProgress) -> MachineList:
    name = require(arguments, "name")
    machines.write_machines({other: one for other, one in machines.read_machines().items() if other != name})
    return _machines(arguments, report)


def _check(arguments: Arguments, report: ReportProgress) -> MachineState:
    return connection.check(require(arguments, "name"))


QUERIES = (
    Query("machines", _machines),
    Query("save_machine", _save),
    Query("remove_machine", _remove),
    Query("check_machine", _check),
)
