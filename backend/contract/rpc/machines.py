"""Questions about other machines: `machines {}`, `save_machine {name, settings}`, `remove_machine {name}`, `check_machine {name}`,
`trust_machine {name, fingerprint}`, `machine_consent {name, target, revision}`, `install_machine {name}`."""

import re
from typing import Any

import msgspec

FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
"""A host key's, as ssh prints it; the sentence about an unknown key contains it."""


class MachineList(msgspec.Struct, frozen=True):
    """Every described machine: its name and its settings, as in `contract.machines.Machine`."""

    machines: dict[str, dict[str, Any]]
    launchers: dict[str, str] = {}
    """Schedulers that installed packages add: name and title."""


class MachineConsent(msgspec.Struct, frozen=True):
    """The code of a model that would run on a machine, and whether the user has approved it there."""

    files: list[str]
    agreed: bool


class MachineState(msgspec.Struct, frozen=True):
    """What a machine that answers says of itself."""

    versions: dict[str, str]
    folder: str
    free_bytes: int
    devices: list[str]
    note: str = ""
    """Why there are no other devices, or when a job could start."""
    partitions: list[str] = []
    """Of a cluster, instead of devices."""
