"""A program `ssh` that starts the agent on this computer; as with the real one, the agent loses its input when this is killed."""

import os
import subprocess
import sys
import threading


def _pump(source: int, target: int) -> None:
    try:
        while data := os.read(source, 1 << 16):
            while data:
                data = data[os.write(target, data) :]
    except OSError:  # the other side is gone
        pass
    os.close(target)


def main() -> int:
    """Run the last argument in a shell, and pass input and output on until it ends."""
    process = subprocess.Popen(["sh", "-c", sys.argv[-1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    threading.Thread(target=_pump, args=(0, process.stdin.fileno()), daemon=True).start()
    _pump(process.stdout.fileno(), 1)
    return process.wait()


if __name__ == "__main__":
    os._exit(main())
