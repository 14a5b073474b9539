"""Jobs of a cluster, whichever scheduler it has: a run is submitted, followed and cancelled through these functions."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.machines import Machine
from backend.contract.run.folder import RunFolder
from backend.remote import protocol, ray_jobs, slurm
from backend.remote.job import Job


def script_of(machine: Machine, spec: Mapping[str, Any]) -> str:
    """What is submitted for a run on the machine, by the values of its spec: a batch script of Slurm, a job of Ray as JSON.

    Empty if the machine's runs are started directly.
    """
    if machine.scheduler == "ray":
        return ray_jobs.describe_job(machine)
    return slurm.batch_script(machine, spec) if machine.scheduler == "slurm" else ""


def submit(folder: RunFolder, script: str, options: Sequence[str]) -> None:
    """Submit a job for the run; `options` are those of `burnish resume`. Raises InputError with the scheduler's reason."""
    (ray_jobs if ray_jobs.is_job(script) else slurm).submit(folder, script, options)


def check(script: str, folder: Path, beat: Callable[[], object]) -> protocol.Devices:
    """What the cluster offers. Raises InputError if it would refuse such a job. `beat` is called while it is waited for."""
    return ray_jobs.check(script, folder, beat) if ray_jobs.is_job(script) else slurm.check(script)


def job_of(folder: RunFolder, script: str) -> Job | None:
    """The job that was submitted last for the run; None if it was started without a scheduler.

    The address of a cluster comes from the user's machine (`script`), never from the run's folder, which may be a stranger's.
    """
    record = folder.job_record()
    if record is None or record.scheduler != "ray":
        return slurm.job_of(folder)
    if not ray_jobs.is_job(script):
        raise InputError(
            "{name} is a job of a Ray cluster; give the address of its dashboard, with --scheduler ray and --dashboard",
            name=folder.name,
        )
    return ray_jobs.job_of(record, script)
