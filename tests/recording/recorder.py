"""Call `burnish` as people do and write down what it says and what it leaves in the run folders."""

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tests.recording.cases import ROOT, TASKS, Case, all_cases, write_data, write_spec
from tests.recording.facts import event_lines, flatten, loss_lines, metric_lines, steady

BURNISH = [sys.executable, str(ROOT / "burnish")]
"""The program of this tree; the installed one may belong to another checkout."""
AT_ONCE = 2
SECONDS = 600
POLL_SECONDS = 0.01
JAX_STATE = "state"
"""The folder in which Orbax keeps a checkpoint's arrays, in files of its own."""
ELSEWHERE = "/home/ada/burnish"
"""The place that copied run folders name instead of this one."""
COMMAND = re.compile(r"^    ([a-z]\S*)(?:  |$)", re.MULTILINE)
SETTLED = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_backend_optimization_level=0",  # models this small are compiled for longer than they run
    "HF_HUB_OFFLINE": "1",
    "COLUMNS": "100",
    "LC_ALL": "C.UTF-8",
}


class Incomplete(Exception):
    """A command did not do what a recording needs."""


@dataclass(frozen=True)
class Recorder:
    """Writes a recording into `folder`; `home` holds specs, data and runs meanwhile."""

    folder: Path
    home: Path

    def record(self, only: str) -> list[str]:
        """Everything whose name matches `only`, two at a time; what could not be recorded, a sentence each."""
        write_data(self.home)
        tasks: list[tuple[str, Callable[[], None]]] = [
            *((f"runs/{case.title}", lambda case=case: self._record_run(case)) for case in all_cases()),
            ("help", self._record_help),
            ("describe", self._record_catalog),
            ("settings", self._record_settings),
        ]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            done = [(name, pool.submit(task)) for name, task in tasks if fnmatch(name, only)]
        return [f"{name}: {error}" for name, future in done if (error := future.exception())]

    def _record_run(self, case: Case) -> None:
        run = self.home / "runs" / case.title
        spec = write_spec(case, self.home)
        cache = {"BURNISH_CACHE": str(self.home / "cache" / case.title)}
        if case.is_paused:
            self._pause(self._start(["train", str(spec), "--run-folder", str(run)], cache), run)
            self._burnish("resume", str(run), **cache)
        else:
            self._burnish("train", str(spec), "--run-folder", str(run), **cache)
        events = [json.loads(line) for line in (run / "events.jsonl").read_text(encoding="utf-8").splitlines()]
        name = f"runs/{case.title}"
        self._write(f"{name}/losses.txt", loss_lines(events))
        if case.name in TASKS:
            plan = json.loads(self._burnish("plan", str(spec), "--json", **cache))
            self._write(f"{name}/plan.txt", flatten(steady(plan)))
        self._write(f"{name}/predictions.csv", (run / "predictions.csv").read_text(encoding="utf-8").splitlines())
        if not case.is_paused:
            self._write(f"{name}/events.txt", event_lines(events))
            self._write(f"{name}/metrics.txt", metric_lines(events))
        self._write(f"{name}/files.txt", _file_lines(run / "model" if case.is_paused else run))
        self._write(f"{name}/spec.yaml", (run / "spec.yaml").read_text(encoding="utf-8").splitlines())

    def _pause(self, process: subprocess.Popen[str], run: Path) -> None:
        events, deadline = run / "events.jsonl", time.monotonic() + SECONDS
        while process.poll() is None and not (events.exists() and b"StepFinished" in events.read_bytes()):
            if time.monotonic() > deadline:
                process.kill()
            time.sleep(POLL_SECONDS)
        if process.poll() is None:
            (run / "pause").touch()
        _, words = process.communicate()
        if process.returncode or b'"state":"paused"' not in events.read_bytes():
            raise Incomplete(f"was over before it could be paused: {_last_line(words)}")

    def _record_help(self) -> None:
        for path, text in self._helps(()):
            self._write(f"help/{'-'.join(('burnish', *path))}.txt", text.splitlines())

    def _helps(self, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
        text = self._burnish(*path, "--help")
        yield path, text
        listed = re.split(r"^(?:commands|positional arguments):\n  (?:COMMAND|ACTION)\b.*\n", text, flags=re.MULTILINE)
        for name in COMMAND.findall(listed[1].split("\n\n")[0]) if len(listed) > 1 else ():
            yield from self._helps((*path, name))

    def _record_catalog(self) -> None:
        catalog = json.loads(self._burnish("describe", "--json"))
        catalog |= {"devices": "…", "versions": "…"}
        self._write("describe.txt", flatten(catalog))

    def _record_settings(self) -> None:
        self._write("settings.md", (ROOT / "docs" / "settings.md").read_text(encoding="utf-8").splitlines())

    def _write(self, name: str, lines: Any) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line}\n" for line in lines)
        path.write_text(text.replace(str(self.home), "<home>").replace(str(ROOT), "<tree>"), encoding="utf-8")

    def _burnish(self, *arguments: str, **environment: str) -> str:
        process = self._start(list(arguments), environment)
        try:
            out, words = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Incomplete(f"burnish {arguments[0]} took longer than {SECONDS} s") from None
        if process.returncode:
            raise Incomplete(f"burnish {arguments[0]} ended with {process.returncode}: {_last_line(words)}")
        return out

    def _start(self, arguments: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        own = {
            name: str(self.home / name.lower())
            for name in ("BURNISH_RUNS", "BURNISH_CACHE", "BURNISH_CONFIG", "HF_HOME")
        }
        return subprocess.Popen(
            [*BURNISH, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, encoding="utf-8", cwd=self.home, env={**os.environ, **SETTLED, **own, **environment},
        )  # fmt: skip


def _file_lines(folder: Path) -> Iterator[str]:
    """Every file's name; of weights also what is in them. JAX's checkpoints hold files with names of chance."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file() or path.name == JAX_STATE):
        name = path.relative_to(folder).as_posix()
        if JAX_STATE not in path.parts[:-1]:
            yield f"{name} {_weights_digest(path.read_bytes())}" if path.suffix == ".safetensors" else name


def _weights_digest(content: bytes) -> str:
    """Of a safetensors file: names, shapes and numbers; the library writes the keys of its metadata in any order."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True).encode()
    return hashlib.sha256(header + content[end:]).hexdigest()


def _last_line(words: str) -> str:
    return (words.strip().splitlines() or [""])[-1]


def record(folder: Path, only: str = "*", runs: Path | None = None) -> list[str]:
    """Make a recording in `folder`, and copy the run folders to `runs`; what could not be recorded."""
    with tempfile.TemporaryDirectory(prefix="burnish-recording-") as name:
        home = Path(name).resolve()
        failures = Recorder(folder, home).record(only)
        if runs:
            copy_runs(
                home / "runs", runs, {str(home): ELSEWHERE, str(ROOT): ELSEWHERE, f'"{socket.gethostname()}"': '"host"'}
            )
    return failures


def copy_runs(runs: Path, target: Path, places: dict[str, str]) -> None:
    """Run folders small enough to be kept with the tests: without weights and vocabularies, and naming other places."""
    shutil.copytree(
        runs, target, ignore=shutil.ignore_patterns("*.safetensors", "tokenizer.json", "run.lock", JAX_STATE)
    )
    for path in target.rglob("*"):
        if path.is_file() and path.suffix != ".parquet":
            text = path.read_text(encoding="utf-8")
            for place, other in places.items():
                text = text.replace(place, other)
            path.write_text(text, encoding="utf-8")
