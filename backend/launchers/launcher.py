"""Defines launchers: how a run is started, carried and ended. Which one a run has is derived from its folder.

Whoever starts a run, be it a command or a search, calls `start`.
"""

import subprocess
from collections.abc import Callable
from typing import ClassVar, Protocol

from backend import registry
from backend.contract.rpc.plan import DeviceList
from backend.contract.run.folder import DeviceRequest, RunFolder
from backend.contract.spec import HardwareSection, RunSpec
from backend.mirrors import mirror


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


def start(
    folder: RunFolder, spec: RunSpec, *, pause: float | None = None, queue: bool = False,
    listed: DeviceList | None = None, report: Callable[[str], None] = lambda _: None,
) -> "subprocess.Popen[bytes]":  # fmt: skip
    """Start the run's next attempt with this spec, now or once its devices are free; returns the supervisor process.

    A trial of a search pauses after the fraction `pause` of its steps. `listed` are this computer's devices, if they are
    known. Raises InputError or RunFailed.
    """
    from backend.hardware.devices import device_request
    from backend.preflight import engine_choice  # these load pyarrow, which whoever ends a run does not need

    request = device_request(spec, listed) if queue else None
    folder.set_pause(pause)
    hardware = spec.hardware
    if engine_choice.position(spec, folder).count > 1:  # one host alone cannot start again
        hardware = hardware.model_copy(update={"max_restarts": 0})
    return launch(folder, hardware, request, report)


def launch(
    folder: RunFolder, hardware: HardwareSection, request: DeviceRequest | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> "subprocess.Popen[bytes]":  # fmt: skip
    """Start the run's next attempt by its launcher, and send its curves to the trackers that get every run.

    `report` is told in a sentence why they are not sent. Returns the supervisor process. Raises InputError or RunFailed.
    """
    supervisor = launcher_of(folder).start(folder, hardware, queue=request)
    for problem in mirror.start_sending(folder):
        report(problem)
    return supervisor
