"""Switches a backend process offline, so that nothing leaves the machine (stdlib only).

Libraries are asked to stay offline by their variables; any that tries the network anyway, or forgets to ask
whether it may, is blocked by Python's audit hook before it opens a socket or looks up a name. Sockets that native code
opens itself bypass the hook: in Burnish these are only the hosts of a multi-host run, which are wanted.
"""

import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from backend.contract.messages import message
from backend.contract.places import is_offline

TOLD = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_XET": "1",  # its downloads are opened by native code
    "DO_NOT_TRACK": "1",
}
"""The environment variables that keep libraries offline."""
_LOOKED_UP = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
_SENT = {"socket.connect", "socket.sendto", "socket.sendmsg"}
_state = threading.local()
_installed: list[bool] = []


class OfflineError(ConnectionError):
    """Something tried to use the network while offline mode is on."""


def enforce() -> None:
    """In offline mode, block anything that would leave this machine from now on; cannot be undone."""
    if not is_offline() or _installed:
        return
    os.environ.update(TOLD)
    _installed.append(True)
    own = {"", "localhost", socket.gethostname().lower()}
    watched = _LOOKED_UP | _SENT  # Python tells of every import, open file and looked-at frame

    def hook(event: str, arguments: tuple) -> None:
        if event in watched:
            _refuse(event, arguments, own)

    sys.addaudithook(hook)


@contextmanager
def allow_network() -> Iterator[None]:
    """Allow this thread to use the network inside the block, for example to reach another host of the same run."""
    _state.permitted = True
    try:
        yield
    finally:
        _state.permitted = False


def _refuse(event: str, arguments: tuple, own: set[str]) -> None:
    if getattr(_state, "permitted", False):
        return
    if event in _LOOKED_UP:
        host = arguments[0]
    elif isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return  # a socket of the machine's own, which has a file's name
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")
    if name.lower() not in own and not _is_here(name):
        raise OfflineError(
            message("offline mode is on, so {name} was not looked up; network access is not allowed", name=name)
        )


def _is_here(name: str) -> bool:
    try:
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_public(host: str) -> bool:
    """Whether a host can be reached from everywhere; one whose name is unknown is not reached at all."""
    return any(ipaddress.ip_address(one).is_global for one in find_addresses(host))


def find_addresses(host: str) -> list[str]:
    """The addresses of a host, which may be one itself; none if its name is unknown."""
    with suppress(OSError, ValueError), allow_network():  # the user named it
        found = [str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(host, None)]
        return [*dict.fromkeys(one for one in found if ipaddress.ip_address(one))]
    return []
