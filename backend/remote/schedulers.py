"""Jobs of a cluster, whichever scheduler it has: a run is submitted, followed and cancelled through these functions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.machines import Machine
from backend.contract.run.folder import RunFolder
from backend.contract.safe_text import one_line
from backend.remote import plugin_jobs, protocol, ray_jobs, slurm
from backend.remote.job import Job


def check_known(name: str) -> None:
    """Raises InputError if there is no such scheduler here."""
    if name not in ("", "slurm", "ray"):
        plugin_jobs.find(name)


def script_of(machine: Machine, spec: Mapping[str, Any]) -> str:
    """What is submitted for a run on the machine, by the values of its spec: a batch script of Slurm, other jobs as JSON.

    Empty if the machine's runs are started directly. Raises InputError for a scheduler that is not there.
    """
    match machine.scheduler:
        case "":
            return ""
        case "slurm":
            return slurm.batch_script(machine, spec)
        case "ray":
            return ray_jobs.describe_job(machine)
        case _:
            return plugin_jobs.describe_job(machine, spec)


def submit(folder: RunFolder, script: str, options: Sequence[str]) -> None:
    """Submit a job for the run; `options` are those of `burnish resume`. Raises InputError with the scheduler's reason."""
    if (described := plugin_jobs.read(script)) is not None:
        plugin_jobs.submit(folder, described, options)
    else:
        (ray_jobs if ray_jobs.is_job(script) else slurm).submit(folder, script, options)


def check(script: str, folder: Path) -> protocol.Devices:
    """What the cluster offers. Raises InputError if it would refuse such a job."""
    if (described := plugin_jobs.read(script)) is not None:
        return plugin_jobs.check(described)
    return ray_jobs.check(script, folder) if ray_jobs.is_job(script) else slurm.check(script)


def job_of(folder: RunFolder, script: str) -> Job | None:
    """The job that was submitted last for the run; None if it was started without a scheduler.

    The address of a cluster and the name of a launcher come from the user's machine (`script`), never from the run's folder, which may
    be a stranger's.
    """
    record = folder.job_record()
    if record is None or record.scheduler == "slurm":
        return slurm.job_of(folder)
    if (described := plugin_jobs.read(script)) is not None:
        return plugin_jobs.job_of(record, described)
    if record.scheduler != "ray":
        raise InputError(
            "{name} is a job of {scheduler}; give the machine that scheduler: burnish machines add NAME --scheduler {scheduler}",
            name=folder.name,
            scheduler=one_line(record.scheduler)[:40],
        )
    if not ray_jobs.is_job(script):
        raise InputError(
            "{name} is a job of a Ray cluster; give the address of its dashboard, with --scheduler ray and --dashboard",
            name=folder.name,
        )
    return ray_jobs.job_of(record, script)
