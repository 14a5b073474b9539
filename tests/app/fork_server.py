"""The process whose forks are the small helpers of tests: it loads what they need once (`helper_process.py` starts it)."""

import gc
import importlib
import os
import select
import signal
import socket
import sys
from types import ModuleType


def _serve(listener: socket.socket) -> None:
    """Fork once for each launcher, until nobody holds the other end of stdin."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    while listener in select.select([listener, 0], [], [])[0]:
        launcher, _ = listener.accept()
        with launcher:
            _, streams, _, _ = socket.recv_fds(launcher, 1, 3)
            request = b"".join(iter(lambda: launcher.recv(1 << 16), b""))  # noqa: B023 (called at once)
            if request:  # a launcher may be ended before it has asked
                _fork(launcher, streams, *os.fsdecode(request).split("\0"))
            for stream in streams:
                os.close(stream)


def _fork(launcher: socket.socket, streams: list[int], name: str, folder: str, *variables: str) -> None:
    module = importlib.import_module(name)
    module.load()
    gc.freeze()
    if os.fork() == 0:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variable.split("=", 1) for variable in variables)
        for standard, stream in enumerate(streams):
            os.dup2(stream, standard)
            os.close(stream)
        launcher.send(bytes([_code_of(module)]))
        os._exit(0)


def _code_of(module: ModuleType) -> int:
    """The exit code of its `main`."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        module.main()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
