"""Starts the mirror of a run on another machine, under a supervisor like that of any other run."""

import subprocess

from backend.contract.machines import find_machine
from backend.contract.run.folder import DeviceRequest, RunFolder
from backend.contract.spec import HardwareSection
from backend.launchers.local import Local
from backend.remote import connection, mirror, protocol, schedulers


class Remote:
    """Mirrors runs that were started on another machine."""

    title = "Another machine"
    description = "The run is on another machine, and a process on this computer copies what it writes."

    def start(
        self, folder: RunFolder, hardware: HardwareSection, *, queue: DeviceRequest | None = None
    ) -> "subprocess.Popen[bytes]":
        """See `Launcher.start`. The mirror needs no device, so it neither waits nor takes the run's environment."""
        return Local().start(folder, HardwareSection())

    def run(self, folder: RunFolder) -> int:
        """See `Launcher.run`."""
        return mirror.run(folder)

    def end_now(self, folder: RunFolder) -> None:
        """See `Launcher.end_now`."""
        remote = folder.remote_run()
        assert remote
        script = schedulers.script_of(find_machine(remote.machine), {})  # only to say which cluster it is
        with connection.connect_by_name(remote.machine) as (machine, _):
            machine.ask(protocol.EndNow(run=remote.run, script=script), protocol.Done)


LAUNCHER = Remote
