"""Starts Python processes of Burnish from a checkout or a wheel, and notices when the system ends them (stdlib only).

It is also the program that these processes run: `python -P processes.py MODULE …` is `python -m MODULE …` with our
packages first on that process's path. `python -P -m` would find an `app` or `backend` that another package
installed, and PYTHONPATH would be inherited by whatever our processes start, such as a file manager or a compiler.
"""

import runpy
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

OPEN_AGAIN = 75
"""The exit code with which the window asks its launcher to restart it, for example in another language."""

INTERRUPTIONS = ("SIGTERM", "SIGUSR1")
"""What a log-out, a shutdown, a container or a cluster sends; SIGUSR1 is a scheduler's warning before a time limit."""
CONSOLE_ENDS = (2, 5, 6)
"""Windows' CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT and CTRL_SHUTDOWN_EVENT."""

STARTED_BY_AGENT = "BURNISH_STARTED_BY_AGENT"
"""The variable of commands that another computer's Burnish starts here; it follows the run itself."""

_THIS_FILE = Path(__file__).resolve()


def python_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of Burnish; `-P` keeps the modules beside this file off its path."""
    return [sys.executable, "-P", str(_THIS_FILE), module, *arguments]


def on_interruption(call: Callable[[int], object]) -> Callable[[], None]:
    """From now on, call `call` with the signal's number when this process is asked to end.

    On Windows this includes a closed console, a logout and a shutdown. Returns a function that
    restores the previous handlers. Call it in the main thread; on Windows, `call` may run in another thread, where no
    signal handler can be set.
    """
    numbers = [getattr(signal, name) for name in INTERRUPTIONS if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda number, _: call(number)) for number in numbers}
    forget_console = _on_console_end(lambda: call(signal.SIGTERM))

    def restore() -> None:
        forget_console()
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore


def _on_console_end(call: Callable[[], object]) -> Callable[[], None]:
    if sys.platform != "win32":
        return lambda: None
    import ctypes  # only Windows has the call
    from ctypes import wintypes

    def handle(event: int) -> bool:
        if event not in CONSOLE_ENDS:
            return False
        call()
        time.sleep(60)  # Windows ends the process when this returns, and after 5 to 20 s in any case
        return True

    handler = ctypes.WINFUNCTYPE(wintypes.BOOL, wintypes.DWORD)(handle)
    ctypes.windll.kernel32.SetConsoleCtrlHandler(handler, True)
    return lambda: ctypes.windll.kernel32.SetConsoleCtrlHandler(handler, False)


def _run_module() -> None:
    sys.path.insert(0, str(_THIS_FILE.parents[2]))
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _run_module()
