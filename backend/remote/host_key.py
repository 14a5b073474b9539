"""The host key of a machine that ssh does not know yet: its fingerprint, and the user's consent to it."""

import re
import subprocess

from backend.contract.errors import InputError
from backend.contract.machines import Machine, find_machine
from backend.contract.messages import message
from backend.contract.rpc.machines import FINGERPRINT, MachineState
from backend.remote import connection
from backend.remote.connection import CONNECT_SECONDS, UnknownKey, remote_command

_SAID = re.compile(rf"Server host key: (\S+) ({FINGERPRINT.pattern})")


def check(name: str) -> MachineState:
    """As `connection.check`; the error for an unknown host key has its fingerprint, and how to accept it."""
    try:
        return connection.check(name)
    except UnknownKey:
        if not (found := read_fingerprint(find_machine(name))):
            raise
        raise UnknownKey(
            message(
                "no connection to {name}: its host key is unknown ({found}); if whoever runs it names the same fingerprint, accept "
                "it with: burnish machines trust {name} --fingerprint {fingerprint}",
                name=name,
                found=found,
                fingerprint=found.split(" ")[1],
            )
        ) from None


def read_fingerprint(machine: Machine) -> str:
    """The kind and the fingerprint of the last host key on the way there, as `ssh-ed25519 SHA256:…`; empty if ssh says none.

    With jump hosts, ssh ends at the first one that it does not know. Raises InputError if there is no ssh here.
    """
    found = _SAID.findall(_try(machine, "yes"))
    return " ".join(found[-1]) if found else ""


def trust(name: str, fingerprint: str) -> None:
    """Add the machine's host key to ssh's known hosts, if it has this fingerprint.

    Raises InputError if it has another one, or if ssh does not add it, for example because a known key has changed.
    """
    machine = find_machine(name)
    if not FINGERPRINT.fullmatch(fingerprint):
        raise InputError("--fingerprint {given}: write it as SHA256: and 43 characters", given=fingerprint)
    found = read_fingerprint(machine)
    if not found.endswith(fingerprint):
        raise InputError(
            "{name} shows another host key ({found}), so nothing was accepted; ask who runs it",
            name=name,
            found=found or "?",
        )
    said = _try(machine, "accept-new")
    if _SAID.findall(said)[-1:] != [tuple(found.split(" "))] or "Host key verification failed" in said:
        raise InputError(
            "{name}: ssh did not accept the host key; remove what it knows with ssh-keygen -R, and try again", name=name
        )


def _try(machine: Machine, checking: str) -> str:
    """What ssh prints of a connection with this `StrictHostKeyChecking`."""
    command, environment = remote_command(machine, "true")
    verbose = [command[0], "-v", "-o", f"StrictHostKeyChecking={checking}", *command[1:]]
    try:
        done = subprocess.run(
            verbose, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=3 * CONNECT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stderr.decode(errors="replace")
