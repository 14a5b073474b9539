"""Installs Burnish on the computer where it runs, which has only Python (stdlib only).

It is sent there as source and speaks lines of JSON: what this computer is, then the files come, then how far pip is.
"""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

GREETING_LINE = b"burnish installer 1\n"
PIECE = 1_000_000
FINISHED = "finished"
"""The last file of an environment: one without it was interrupted."""
KEPT = 2
"""Environments, the new one included: a run in progress still uses the one before."""


class Refused(Exception):
    """Why it cannot be installed, as a sentence."""


def say(**values: Any) -> None:
    """Send a line."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def describe(folder: Path) -> dict[str, Any]:
    """What decides which files are sent."""
    place = next(path for path in (folder, *folder.parents) if path.is_dir())
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "free": shutil.disk_usage(place).free,
        "gpu": shutil.which("nvidia-smi") is not None,
    }


def receive(stream: IO[bytes], files: list[dict[str, Any]], target: Path) -> None:
    """Write the files that follow, one after another; the other side knows how many have gone."""
    for file in files:
        with (target / Path(file["name"]).name).open("wb") as written:
            left = file["size"]
            while left:
                content = stream.read(min(PIECE, left))
                if not content:
                    raise Refused("the connection ended before all files had arrived")
                written.write(content)
                left -= len(content)


def make_environment(place: Path) -> Path:
    """A new virtual environment; returns its Python."""
    say(part="environment", done=0, total=0, unit="")
    made = subprocess.run([sys.executable, "-m", "venv", str(place)], capture_output=True, text=True, check=False)
    if made.returncode:
        shutil.rmtree(place, ignore_errors=True)
        if "ensurepip" in made.stdout + made.stderr or "No module named venv" in made.stderr:
            raise Refused("its Python has no pip and venv; install them (on Debian and Ubuntu: python3-venv)")
        raise Refused(last_line(made.stderr or made.stdout))
    return place / "bin" / "python"


def install(python: Path, options: list[str], packages: int) -> None:
    """Run pip, and report the packages that it has found."""
    command = [
        str(python),
        "-m",
        "pip",
        "install",
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar=off",
        *options,
    ]
    # Its own group, so that it ends as a whole if the other side goes.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    watch.group = process.pid
    assert process.stdout
    found, errors = 0, []
    for line in process.stdout:
        if line.startswith("Collecting "):
            found += 1
            say(part="packages", done=min(found, packages), total=packages, unit="packages")
        elif line.startswith("Installing collected"):
            say(part="install", done=0, total=0, unit="")
        elif line.startswith("ERROR:"):
            errors.append(line.removeprefix("ERROR:").strip())
    watch.group = 0
    if process.wait():
        reason = next((line for line in errors if "No space left" in line), errors[0] if errors else "pip failed")
        raise Refused("its disk is full" if "No space left" in reason else f"pip: {reason}")


def last_line(text: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


class Watch(threading.Thread):
    """Ends everything when the other side goes."""

    group = 0

    def run(self) -> None:
        """Wait until nothing can come any more."""
        sys.stdin.buffer.read(1)
        if self.group:
            os.killpg(self.group, signal.SIGKILL)
        os._exit(1)


watch = Watch(daemon=True)


def remove_others(environments: Path, present: Path) -> None:
    """Keep the newest KEPT environments, and those that a process of this computer uses (known on Linux only)."""
    others = sorted((path for path in environments.iterdir() if path != present), key=lambda path: path.stat().st_mtime)
    for path in others[: max(0, len(others) - KEPT + 1)]:
        if not is_used(path):
            shutil.rmtree(path, ignore_errors=True)


def is_used(environment: Path) -> bool:
    """Whether the command of a process names a file in it, as those of a run do."""
    inside = os.fsencode(environment) + b"/"
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if inside in command.read_bytes():
                return True
        except OSError:  # it has just ended
            continue
    return False


def main(folder_name: str) -> int:
    """Greet, receive, install, and say where the program is."""
    folder = Path.home() / Path(folder_name).expanduser()
    sys.stdout.write(GREETING_LINE.decode())
    say(**describe(folder))
    order = json.loads(sys.stdin.buffer.readline() or b"null")
    if order is None:
        return 0
    environments = folder / "environments"
    place = environments / Path(order["name"]).name
    incoming = folder / "installing"
    is_building = False
    try:
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir(parents=True, mode=0o700)
        environments.mkdir(exist_ok=True)
        receive(sys.stdin.buffer, order["files"], incoming)
        watch.start()
        if not (place / FINISHED).exists():
            is_building = True
            shutil.rmtree(place, ignore_errors=True)
            python = make_environment(place)
            source = ["--no-index", "--find-links", str(incoming)] if order["offline"] else order["index"]
            if order["packages"]:
                install(
                    python,
                    [*source, "--require-hashes", *order["options"], "-r", str(incoming / order["lock"])],
                    order["packages"],
                )
            install(python, ["--no-index", "--no-deps", str(incoming / order["wheel"])], 0)
            (place / FINISHED).touch()
            is_building = False
        remove_others(environments, place)
        say(program=str(place / "bin" / "burnish"))
    except Refused as error:
        say(error=str(error))
    except OSError as error:
        say(error="its disk is full" if error.errno == 28 else f"{error.filename or folder}: {error.strerror or error}")
    finally:
        if is_building:  # never one that was finished: runs may use it
            shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(incoming, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
