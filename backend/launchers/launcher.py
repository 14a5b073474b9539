"""Defines launchers: how a run is started, carried and ended. Which one a run has is derived from its folder."""

import subprocess
from typing import ClassVar, Protocol

from backend import registry
from backend.contract.run.folder import DeviceRequest, RunFolder
from backend.contract.spec import HardwareSection


class Launcher(Protocol):
    """One way to run; a module of `backend.launchers` exports its class as `LAUNCHER`."""

    title: ClassVar[str]
    description: ClassVar[str]

    def start(
        self, folder: RunFolder, hardware: HardwareSection, *, queue: DeviceRequest | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start the run's next attempt, with the environment variables of its `hardware` section.

        Returns its supervisor once `process.json` names the engine, or with `queue` once it waits for these devices. Raises InputError
        if the run is already running, RunFailed if it cannot be started; both in one sentence.
        """
        ...

    def run(self, folder: RunFolder) -> int:
        """Do the work of an attempt, in the process that the supervisor has started for it; returns its exit code."""
        ...

    def end_now(self, folder: RunFolder) -> None:
        """End the processes of a run without a checkpoint. Raises InputError."""
        ...


def launcher_of(folder: RunFolder) -> Launcher:
    """The launcher of a run: that of another machine if the folder is the copy of a run there, Ray in a job of Ray."""
    if folder.remote_run() is not None:
        name = "remote"
    else:
        job = folder.job_record()
        name = "ray" if job is not None and job.scheduler == "ray" else "local"
    return registry.find("launcher", name, "launcher")()
