"""Defines launchers: a launcher starts a run's supervisor somewhere."""

import subprocess
from typing import ClassVar, Protocol

from backend.contract.run.folder import DeviceRequest, RunFolder
from backend.contract.spec import HardwareSection


class Launcher(Protocol):
    """One way to start a run; a module of `backend.launchers` exports its class as `LAUNCHER`."""

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
