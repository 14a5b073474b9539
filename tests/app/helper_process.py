"""Starts small helper processes as forks of one that has loaded their libraries; each on its own would load them for half a second."""

import atexit
import functools
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QProcess

from app.services import context
from app.services.backend_client import BackendClient
from tests.app import fork_server

_LAUNCHER = """
import _socket, array, os, sys
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect(sys.argv[1])
request = "\\0".join([sys.argv[2], os.getcwd(), *(f"{name}={value}" for name, value in os.environ.items())])
server.sendmsg([b"\\0"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
server.sendall(os.fsencode(request))
server.shutdown(_socket.SHUT_WR)
for standard in (0, 1, 2):
    os.close(standard)
os._exit((server.recv(1) or b"\\1")[0])
"""
"""Hands its standard streams, folder and environment to the fork, and ends as that does; with nothing loaded it starts at once."""


def forked_helper(module: str, parent: QObject) -> QProcess:
    """The process of a module with a function `main`, not started yet."""
    process = QProcess(parent)
    process.setProgram(sys.executable)
    process.setArguments(["-I", "-S", "-c", _LAUNCHER, _address(), module])
    return process


def small_helper(parent: QObject) -> QProcess:
    """The small helper of the pages."""
    return forked_helper("tests.app.pages.small_helper", parent)


def helper_of_its_own(parent: QObject) -> QProcess:
    """The small helper in a process that finds other packages than this one: no fork."""
    process = QProcess(parent)
    process.setProgram(sys.executable)
    process.setArguments(["-c", "from tests.app.pages.small_helper import main; main()"])
    return process


def help_windows(patch: pytest.MonkeyPatch, module: str = "tests.app.pages.small_helper") -> None:
    """A main window asks such a process instead of the real backend."""
    make = functools.partial(forked_helper, module)
    patch.setattr(context, "BackendClient", lambda _, parent: BackendClient(parent=parent, make_process=make))


@functools.cache
def _address() -> str:
    """Where the server listens; it ends with this process, however that ends."""
    folder = tempfile.mkdtemp(prefix="burnish-")
    address = str(Path(folder) / "fork")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        server = subprocess.Popen(
            [sys.executable, "-P", fork_server.__file__, str(listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.communicate)
    return address
