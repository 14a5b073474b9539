"""Says what a launcher is: it starts the supervisor of a run somewhere."""

import subprocess
from typing import ClassVar, Protocol

from backend.contract.run.folder import RunFolder
from backend.contract.spec import HardwareSection


class Launcher(Protocol):
    """One way to start a run; a module of `backend.launchers` exports its class as `LAUNCHER`."""

    title: ClassVar[str]
    description: ClassVar[str]

    def start(self, folder: RunFolder, hardware: HardwareSection, *, queue: bool = False) -> "subprocess.Popen[bytes]":
        """Start the run's next attempt, with the environment variables of its `hardware` section; its supervisor.

        With `queue` it waits its turn. Returns once `process.json` names the engine, or the run waits. Raises InputError
        where the run is already running, RunFailed where it cannot be started; both in one sentence.
        """
        ...
