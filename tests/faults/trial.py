"""One run under faults: starts it with a launcher, strikes its processes, carries it to its end, and compares what it made."""

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from end_to_end.burnish_process import Burnish, events_of
from safetensors.numpy import load_file

from backend import process_tree
from backend.commands.runs import summary
from backend.contract.machines import Machine, write_machines
from backend.contract.processes import python_command
from backend.contract.run.events import CheckpointSaved, EvaluationFinished, RunResumed, StepFinished, decode_all
from backend.contract.run.folder import RunFolder, run_folders

MARKER = "BURNISH_FAULTS"
"""Environment variable that every process of a trial inherits."""
CLOCK = "BURNISH_TEST_CLOCK"
"""Environment variable with the seconds by which the clock of a process is wrong."""
STEPS = 40
KILLS = 5
"""Of each trial."""
SPEC: dict[str, Any] = {
    "training": {"max_steps": STEPS, "batch_size": 8, "learning_rate": 3e-4, "checkpoint_every": 4},
    "hardware": {"threads": 1, "micro_batch_size": 5},
    "evaluation": {"every": 10, "best_metric": "loss"},
}
"""Dropout on and two passes per step, so that much must come back for the same numbers."""
SECONDS = 240.0
MOST_RESUMES = 20


@dataclass
class Trial:
    """A run that is disturbed; `there` is the folder in which it computes."""

    burnish: Burnish
    launcher: "Launcher"
    is_followed: bool = False
    """Whether a command in a process of its own starts and follows the run, and can be killed."""
    folder: RunFolder = field(init=False)
    resumes: int = 0
    sentences: list[str] = field(default_factory=list)
    """How the run ended until somebody resumed it."""

    def __post_init__(self) -> None:
        self.launcher.prepare(self.burnish)
        self.burnish.environment[MARKER] = str(self.burnish.home)
        self._commands: list[subprocess.Popen[str]] = []

    def start(self, **sections: Any) -> None:
        """Start the run, and find its folder."""
        changed: dict[str, Any] = {
            name: {**SPEC.get(name, {}), **sections.get(name, {})} for name in {*SPEC, *sections}
        }
        spec = self.burnish.spec("spec.yaml", **changed)
        self._command("train", str(spec), *self.launcher.arguments)
        self.folder = self.until(lambda: next(iter(run_folders(self.burnish.runs)), None))
        self.until(lambda: self.folder.process_record() or self._has_no_command())

    def resume(self) -> None:
        """Continue the run as a person would."""
        self.resumes += 1
        assert self.resumes <= MOST_RESUMES, self.sentences
        self._command("resume", self.folder.name)

    @property
    def there(self) -> RunFolder:
        """The folder in which the run computes."""
        remote = self.folder.remote_run()
        return self.folder if remote is None else RunFolder(remote.run)

    def step(self) -> int:
        """The last step of the present attempt."""
        step = 0
        for event in events_of(self.there):
            if isinstance(event, StepFinished):
                step = event.step
            elif isinstance(event, RunResumed):
                step = event.from_step
        return step

    def reach(self, step: int) -> None:
        """Wait until it has taken this step; resume it if it has ended before."""

        def is_there() -> bool:
            self.resume_if_ended()
            return self.step() >= step

        self.until(is_there)

    def is_over(self) -> bool:
        """Whether it ended well."""
        return self.folder.life() != "alive" and summary(self.folder).state == "finished"

    def resume_if_ended(self) -> None:
        """Resume it if it ended otherwise than well, after one clear sentence."""
        if self.folder.life() == "alive" or self._is_commanded():
            return
        found = summary(self.folder)
        if found.state == "finished":
            return
        sentence = found.message
        assert sentence, found
        assert "\n" not in sentence, found
        self.sentences.append(f"{found.state}: {sentence}")
        self.resume()

    def carry_to_end(self) -> None:
        """Follow it, and resume it where it ended, until it has finished."""

        def is_over() -> bool:
            self.resume_if_ended()
            return self.is_over() and not self._is_commanded()

        self.until(is_over)

    def strike(self, victim: str, number: int = signal.SIGKILL) -> bool:
        """Kill the processes that play this part; False if there are none at the moment."""
        pids = [pid for pid in self.launcher.victims[victim](self) if pid]
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:  # it was just ending
                return False
        return bool(pids)

    def followers(self) -> list["subprocess.Popen[str]"]:
        """The commands that follow the run."""
        return [process for process in self._commands if process.poll() is None]

    def processes(self) -> dict[int, str]:
        """Every process of this trial that is alive, with its command line."""
        wanted = f"{MARKER}={self.burnish.home}".encode()
        found = {}
        for one in process_tree.processes():
            try:
                if one.pid != os.getpid() and wanted in Path(f"/proc/{one.pid}/environ").read_bytes().split(b"\0"):
                    found[one.pid] = " ".join(one.command)
            except OSError:  # it has ended
                continue
        return found

    def until(self, condition: Callable[[], Any], seconds: float = 0.0) -> Any:
        """Wait until `condition` holds, and return it."""
        deadline = time.monotonic() + (seconds or self.launcher.seconds)
        while not (found := condition()):
            assert time.monotonic() < deadline, (self.describe(), self.processes())
            time.sleep(0.02)
        return found

    def describe(self) -> str:
        """What is known of a trial that hangs."""
        if not hasattr(self, "folder"):
            return "it has no folder yet"
        return f"{self.folder.life()}, {summary(self.folder)}, {self.sentences}, {self.folder.log.read_text()[-2000:]}"

    def assert_nothing_is_left(self) -> None:
        """No process of the trial lives on."""
        self.until(lambda: not self.processes(), 20)

    def end(self) -> None:
        """Kill what is left."""
        process_tree.end_all(lambda: set(self.processes()))
        for process in self._commands:
            process.communicate()

    def _command(self, *arguments: str) -> None:
        if self.is_followed:
            self._commands.append(self.burnish.start(*arguments))
            return
        done = self.burnish(*arguments, "--detach")
        if done.returncode:
            self.sentences.append(done.stderr.strip().splitlines()[-1])

    def _is_commanded(self) -> bool:
        return bool(self.followers())

    def _has_no_command(self) -> bool:
        return bool(self._commands) and not self._is_commanded()


def numbers(folder: RunFolder) -> dict[str, Any]:
    """Losses and gradients by step, evaluations, the model's weights, and the predictions, all to the bit."""
    losses: dict[int, Any] = {}
    evaluations: dict[int, Any] = {}
    for event in events_of(folder):
        if isinstance(event, StepFinished):
            losses[event.step] = (event.loss, event.gradient_norm, event.learning_rate)
        elif isinstance(event, EvaluationFinished):
            evaluations[event.step] = event.metrics
        elif isinstance(event, RunResumed):
            losses = {step: one for step, one in losses.items() if step <= event.from_step}
            evaluations = {step: one for step, one in evaluations.items() if step <= event.from_step}
    weights = load_file(folder.model / "model.safetensors")
    return {
        "losses": losses,
        "evaluations": evaluations,
        "weights": {name: array.tobytes() for name, array in weights.items()},
        "predictions": folder.predictions().read_bytes(),
    }


def assert_nothing_was_repeated(folder: RunFolder) -> None:
    """Every attempt continued from the newest checkpoint that had been announced: an older one would give the same numbers, later."""
    saved = 0
    for event in events_of(folder):
        if isinstance(event, CheckpointSaved):
            saved = event.step
        elif isinstance(event, RunResumed):
            assert event.from_step >= saved, (
                f"attempt {event.attempt} repeats the steps after {event.from_step}, although {saved} was saved"
            )
            saved = event.from_step


def assert_copied(folder: RunFolder) -> None:
    """Of a run on another machine every line of its events is here, in order, and each line here can be read."""
    remote = folder.remote_run()
    if remote is None:
        return
    here, there = (one.events.read_bytes().splitlines() for one in (folder, RunFolder(remote.run)))
    assert len(list(decode_all(here))) == len(here)
    own = set(here) - set(there)
    assert [line for line in here if line not in own] == there


def assert_same(folder: RunFolder, undisturbed: dict[str, Any]) -> None:
    """The run ended with exactly the numbers of the undisturbed one, and took no way round."""
    remote = folder.remote_run()  # a copy also says where its mirrors continued
    assert_nothing_was_repeated(folder if remote is None else RunFolder(remote.run))
    assert_copied(folder)
    found = numbers(folder)
    assert found["losses"] == undisturbed["losses"]
    for name, values in undisturbed.items():
        assert found[name] == values, name


# Launchers: how a run is started, and who may be struck. Another one joins with an entry in LAUNCHERS.

Victims = dict[str, Callable[[Trial], list[int]]]


def engine_of(folder: RunFolder) -> list[int]:
    record = folder.process_record()
    return [record.engine_pid] if record and not folder.exit_record() else []


def supervisor_of(folder: RunFolder) -> list[int]:
    record = folder.process_record()
    return [record.supervisor_pid] if record and folder.life() == "alive" else []


def rank_of(folder: RunFolder, number: int) -> list[int]:
    launchers = engine_of(folder)
    return [
        one.pid for one in process_tree.processes() if one.parent in launchers and f"--rank {number}" in " ".join(one.command)
    ]  # fmt: skip


def _commands(trial: Trial) -> list[int]:
    return [process.pid for process in trial.followers()]


def processes_named(trial: Trial, word: str) -> list[int]:
    return [pid for pid, command in trial.processes().items() if word in command]


@dataclass(frozen=True)
class Launcher:
    """How runs are started, and the parts that are played in them: part → its processes."""

    name: str
    arguments: tuple[str, ...]
    prepare: Callable[[Burnish], None]
    victims: Victims
    trials: int
    """Runs that are disturbed in `make faults`, each with KILLS kills."""
    disks: dict[str, str]
    """Where the run's files are: which side → a folder of the home folder."""
    set_clock: Callable[[Burnish, float], None]
    """Makes the clock of the computer that computes go wrong by so many seconds, for processes that start from now on."""
    spec: dict[str, Any] = field(default_factory=dict)
    seconds: float = SECONDS
    """How long anything may take."""


def _prepare_nothing(burnish: Burnish) -> None:
    """The local launcher needs nothing."""


def _prepare_ssh(burnish: Burnish) -> None:
    """A machine `lab` that is this computer with another home, behind a program `ssh` of the test's own."""
    describe_machine(burnish, address="someone@lab")
    _write_program(
        burnish.home / "bin" / "ssh",
        f'[ -e "{burnish.home}/no-network" ] && exit 255',
        f'exec {shlex.join([sys.executable, "-S", "-E", str(Path(__file__).with_name("connection.py"))])} "$@"',
    )
    burnish.environment["PATH"] = f"{burnish.home / 'bin'}{os.pathsep}{os.environ['PATH']}"


def describe_machine(burnish: Burnish, **settings: object) -> None:
    """The machine `lab` with these settings, and a `burnish` of its own with another home."""
    far, programs = burnish.home / "far", burnish.home / "bin"
    programs.mkdir()
    _write_program(
        programs / "burnish",
        f"export HOME={shlex.quote(str(far))} BURNISH_CACHE={shlex.quote(str(far / 'cache'))} {MARKER}={shlex.quote(str(burnish.home))}",
        f'exec {shlex.join(python_command("backend"))} "$@"',
    )
    burnish.environment["BURNISH_CONFIG"] = str(burnish.home / "config")
    os.environ["BURNISH_CONFIG"] = burnish.environment["BURNISH_CONFIG"]  # undone by the fixture
    own = {"folder": str(far / "burnish"), "command": str(programs / "burnish"), **settings}
    write_machines({"lab": Machine.model_validate(own)})


def _set_clock(burnish: Burnish, offset: float) -> None:
    burnish.environment[CLOCK] = str(offset)


def _set_clock_there(burnish: Burnish, offset: float) -> None:
    (burnish.home / "clock").write_text(str(offset))


def _write_program(path: Path, *lines: str) -> None:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


LOCAL = Launcher(
    "local",
    (),
    _prepare_nothing,
    {
        "engine": lambda trial: engine_of(trial.folder),
        "supervisor": lambda trial: supervisor_of(trial.folder),
        "command": _commands,
    },
    5,
    {"here": "runs"},
    _set_clock,
)
PROCESSES = Launcher(
    "local, two processes",
    (),
    _prepare_nothing,
    {
        "rank 0": lambda trial: rank_of(trial.folder, 0),
        "rank 1": lambda trial: rank_of(trial.folder, 1),
        "engine": lambda trial: engine_of(trial.folder),
        "supervisor": lambda trial: supervisor_of(trial.folder),
    },
    5,
    {"here": "runs"},
    _set_clock,
    {"hardware": {"processes": 2}},
)
SSH = Launcher(
    "ssh",
    ("--on", "lab"),
    _prepare_ssh,
    {
        "engine there": lambda trial: engine_of(trial.there),
        "supervisor there": lambda trial: supervisor_of(trial.there),
        "agent": lambda trial: processes_named(trial, "_agent"),
        "connection": lambda trial: processes_named(trial, "connection.py"),
        "mirror": lambda trial: engine_of(trial.folder),
        "supervisor": lambda trial: supervisor_of(trial.folder),
        "command": _commands,
    },
    10,
    {"here": "runs", "there": "far"},
    _set_clock_there,
)
LAUNCHERS = {one.name: one for one in (LOCAL, PROCESSES, SSH)}


def draw_moments(chance: random.Random, count: int) -> list[int]:
    """Steps at which to strike, in order."""
    return sorted(chance.randrange(1, STEPS) for _ in range(count))
