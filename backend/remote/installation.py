"""Installs or updates Burnish on another machine: this version, and the packages that its lock names, in an environment of its own."""

import hashlib
import json
import shlex
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any

from backend.contract.errors import InputError
from backend.contract.machines import Machine, find_machine, read_machines, write_machines
from backend.contract.messages import message
from backend.contract.resources import lock_file, wheel_files
from backend.contract.safe_files import MB, open_regular
from backend.contract.safe_text import one_line, parse_json
from backend.remote import installer
from backend.remote.connection import describe_failure, remote_command
from backend.remote.protocol import MAX_NOISE, PIECE

Report = Callable[[str, int, int, str], None]
"""Called with the part that is in progress, what is done, of how much, and the unit."""
NEEDED_MB = {"cpu": 2_500, "cuda": 9_000}
"""What an environment takes, by its lock."""
NO_PYTHON = 64
"""What the shell there exits with."""
LONGEST_LINE = 100_000
_FIND_PYTHON = """\
for python in python3.13 python3.12 python3.11 python3; do
  "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null && exec "$python" -c {start} {folder}
done
exit {code}"""
_START = "import sys; source = sys.stdin.buffer.read(int(sys.stdin.buffer.readline())); exec(compile(source, 'installer', 'exec'))"
_CPU_INDEX = ["--extra-index-url", "https://download.pytorch.org/whl/cpu"]
_FROM_SOURCE = ["--only-binary", ":all:", "--no-binary", "rouge-score,seqeval"]
"""As in packaging/Containerfile."""
_SYSTEMS = ("Linux", "x86_64")
"""For which there are locks."""


def install(name: str, report: Report, wheels: Path | None = None) -> str:
    """Install this version there, and let the machine use it; returns the program's path.

    With `wheels`, a folder of wheels here, nothing is downloaded there. Raises InputError in one sentence.
    """
    machine = find_machine(name)
    extra = [] if wheels is None else _wheels_in(wheels)
    with tempfile.TemporaryDirectory() as scratch, _connect(name, machine) as channel:
        lock = _choose_lock(name, machine, channel.read())
        own = _make_wheel(Path(scratch))
        files = [own, lock, *extra]
        pinned = [line for line in lock.read_text("utf-8").splitlines() if "==" in line and not line.startswith("#")]
        order = {
            "name": f"{own.stem.split('-')[1]}-{_digest(own, lock)}",
            "files": [{"name": path.name, "size": path.stat().st_size} for path in files],
            "wheel": own.name,
            "lock": lock.name,
            "packages": len(pinned),
            "offline": wheels is not None,
            "index": _CPU_INDEX if "cpu" in lock.name else [],
            "options": [] if wheels is not None else _FROM_SOURCE,
        }
        program = channel.carry_out(order, files, report)
    machines = read_machines()
    write_machines({**machines, name: machines[name].model_copy(update={"command": program})})
    return program


def _choose_lock(name: str, machine: Machine, there: dict[str, Any]) -> Path:
    """The lock for that computer. Raises InputError if there is none, or no room for its packages."""
    system = (str(there.get("system")), str(there.get("processor")))
    if system != _SYSTEMS:
        raise InputError(
            "{name}: there is no list of tested packages for {system}; install Burnish there yourself, with pip install 'burnish[torch]'",
            name=name,
            system=one_line(" ".join(system)),
        )
    kind = "cuda" if machine.gpus or there.get("gpu") is True else "cpu"  # a login node has none itself
    free = there.get("free")
    free_mb = free / MB if isinstance(free, int) else 0.0
    if free_mb < NEEDED_MB[kind]:
        raise InputError(
            "{name}: Burnish and its packages need {needed:,.0f} MB, but only {free:,.0f} MB are free there; free up "
            "some space, or choose another folder with: burnish machines add {name} --folder DIR",
            name=name,
            needed=NEEDED_MB[kind],
            free=free_mb,
        )
    return lock_file(kind)


def _wheels_in(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.whl")) if folder.is_dir() else []
    if not found:
        raise InputError("--wheels {folder}: there are no wheels in this folder", folder=folder)
    return found


def _digest(*files: Path) -> str:
    found = hashlib.sha256()
    for path in files:
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def _make_wheel(folder: Path) -> Path:
    """This Burnish as a wheel, from a checkout as well as from an installation."""
    try:
        number = version("burnish")
    except PackageNotFoundError:  # a checkout that is not installed
        number = "0"
    path, about = folder / f"burnish-{number}-py3-none-any.whl", f"burnish-{number}.dist-info"
    written = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: burnish\nVersion: {number}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: burnish\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\nburnish = burnish.__main__:main\n",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        contents = {name: file.read_bytes() for name, file in wheel_files().items()}
        contents |= {name: text.encode() for name, text in written.items()}
        for name, content in contents.items():
            _add(wheel, name, content)
        record = "".join(f"{name},,\n" for name in (*contents, f"{about}/RECORD"))
        _add(wheel, f"{about}/RECORD", record.encode())
    return path


def _add(wheel: zipfile.ZipFile, name: str, content: bytes) -> None:
    """With a time that is always the same, so that the same code is the same wheel."""
    wheel.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


@contextmanager
def _connect(name: str, machine: Machine) -> Iterator["_Channel"]:
    script = _FIND_PYTHON.format(start=shlex.quote(_START), folder=shlex.quote(machine.folder), code=NO_PYTHON)
    command, environment = remote_command(machine, script)
    process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment)
    channel = _Channel(name, process)
    try:
        channel.greet()
        yield channel
    except BaseException:
        process.kill()
        raise
    finally:
        channel.close()


class _Channel:
    """A connection to the installer."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._name, self._process = name, process
        self._writer: IO[bytes] = process.stdin
        self._reader: IO[bytes] = process.stdout
        self._errors: IO[bytes] = process.stderr

    def greet(self) -> None:
        """Send the installer, and skip what a login shell prints before it answers."""
        source = Path(installer.__file__).read_bytes()
        with suppress(OSError):  # the reason is read below
            self._writer.write(b"%d\n%s" % (len(source), source))
            self._writer.flush()
        skipped = 0
        while (line := self._reader.readline(MAX_NOISE)) != installer.GREETING_LINE:
            skipped += len(line)
            if not line or skipped > MAX_NOISE:
                raise self._lost()

    def read(self) -> dict[str, Any]:
        """The next line. Raises InputError if there is none."""
        line = self._reader.readline(LONGEST_LINE)
        try:
            found = parse_json(line)
        except ValueError:
            raise self._lost() from None
        if not isinstance(found, dict):
            raise self._lost()
        return found

    def carry_out(self, order: dict[str, Any], files: list[Path], report: Report) -> str:
        """Send everything, and follow until it is installed; returns the program's path. Raises InputError."""
        with suppress(BrokenPipeError):  # its last line says why
            self._send(order, files, report)
        while True:
            said = self.read()
            if "error" in said:
                raise InputError("{name}: {reason}", name=self._name, reason=one_line(str(said["error"])))
            if "program" in said:
                return one_line(str(said["program"]))
            with suppress(KeyError, TypeError, ValueError):
                report(one_line(str(said["part"])), int(said["done"]), int(said["total"]), str(said["unit"]))

    def _send(self, order: dict[str, Any], files: list[Path], report: Report) -> None:
        self._writer.write(json.dumps(order).encode() + b"\n")
        done, total = 0, sum(file["size"] for file in order["files"])
        for path in files:
            with open_regular(path) as file:
                while content := file.read(PIECE):
                    self._writer.write(content)
                    self._writer.flush()
                    done += len(content)
                    report("send", done, total, "bytes")

    def close(self) -> None:
        """End ssh; what runs there ends with it."""
        with suppress(OSError):
            self._writer.close()
        with self._reader, self._errors:
            self._process.wait()

    def _lost(self) -> InputError:
        """Why there is no installer, from how ssh and the shell ended."""
        with suppress(OSError):
            self._writer.close()
        printed = self._errors.read(LONGEST_LINE).decode(errors="replace")
        code = self._process.wait()
        if code == NO_PYTHON:
            return InputError(
                "{name} has no Python 3.11, 3.12 or 3.13; install one, or make it available with the set-up commands: "
                "burnish machines add {name} --setup COMMANDS",
                name=self._name,
            )
        reason = describe_failure(code, printed) or message("the connection ended")
        return InputError("no connection to {name}: {reason}", name=self._name, reason=reason)
