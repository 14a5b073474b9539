"""Runs as jobs of a launcher that an installed package adds, through the entry point `burnish.launchers`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

import msgspec

from backend import registry
from backend.contract.errors import InputError, first_line
from backend.contract.machines import Machine
from backend.contract.messages import message
from backend.contract.redaction import redact
from backend.contract.run.folder import RunFolder
from backend.contract.run.job import PENDING, RUNNING, SUBMITTING, JobRecord
from backend.contract.safe_text import one_line
from backend.remote import protocol
from backend.remote.job import Job, entrypoint, new_job_name

KIND = "launcher"
POLL_SECONDS = 5.0
MAX_LETTERS = 200
"""Of the number or name of a job."""
PENDING_STATE, RUNNING_STATE, ENDED, FAILED, STOPPED, UNKNOWN = STATES = (
    "pending", "running", "ended", "failed", "stopped", "unknown"
)  # fmt: skip


class JobLauncher(Protocol):
    """How another package starts runs as jobs; its entry point names such an object.

    Burnish calls it on the computer that sees the run's folder. What goes wrong is raised as any exception, whose first line people see.
    """

    title: ClassVar[str]
    description: ClassVar[str]

    def check(self, script: str) -> list[str]:
        """What is there, a line each, such as devices or queues; raises if such a job could not be started."""
        ...

    def script(self, machine: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
        """What `submit` gets: text that people can print. `machine` has the settings of `Machine`, `spec` is not checked yet."""
        ...

    def submit(self, script: str, folder: str, command: str, name: str) -> str:
        """Start a job of this name that runs this command of the shell, and return its number, or the name.

        The run's folder must be there under this path. If nobody hears the answer, the job is looked up by its name.
        """
        ...

    def look_up(self, job: str) -> tuple[str, str]:
        """One of STATES, and why it is pending or has failed, as far as that is known."""
        ...

    def stop(self, job: str) -> None:
        """End it with SIGTERM, and half a minute later for good; one that has ended stays as it is."""
        ...


class PluginJob(msgspec.Struct, frozen=True):
    """What is submitted for a run: whose job it is, its own script, and what runs in it."""

    launcher: str
    script: str = ""
    setup: str = ""
    command: str = "burnish"


def names() -> list[str]:
    """The launchers of installed packages that can be used."""
    return [name for name in registry.all_of(KIND) if registry.is_plugin(KIND, name)]


def find(name: str) -> JobLauncher:
    """Raises InputError if there is no such launcher, or if it cannot be loaded."""
    if not registry.is_plugin(KIND, name):
        raise InputError(
            "there is no scheduler {name}; choose slurm, ray, or one of an installed package: {known}",
            "scheduler",
            name=one_line(name),
            known=", ".join(names()) or message("none is installed"),
        )
    return registry.find(KIND, name, "scheduler")


def describe_job(machine: Machine, spec: Mapping[str, Any]) -> str:
    """What a run's job is made of, as JSON. Raises InputError."""
    with _calling(machine.scheduler) as launcher:
        script = launcher.script(machine.model_dump(), spec)
        description = PluginJob(machine.scheduler, str(script), machine.setup, machine.command)
    return msgspec.json.format(msgspec.json.encode(description), indent=1).decode()


def read(script: str) -> PluginJob | None:
    """The description that `describe_job` made; None if the script is another scheduler's."""
    try:
        return msgspec.json.decode(script, type=PluginJob)
    except (msgspec.DecodeError, RecursionError):
        return None


def submit(folder: RunFolder, description: PluginJob, options: Sequence[str]) -> None:
    """Submit a job for the run. Raises InputError with what its launcher says."""
    before, name = folder.job_record(), new_job_name()
    if before is not None and before.state == SUBMITTING and before.scheduler == description.launcher:
        try:
            state = _look_up(before)[0]
        except InputError as error:
            raise _unheard(folder, before, error) from None
        if state in (PENDING_STATE, RUNNING_STATE):
            folder.write_job_record(JobRecord(before.job, scheduler=before.scheduler))
            return
        name = before.job if state == UNKNOWN else name  # a scheduler whose names are unique takes it once at most
    record = JobRecord(name, SUBMITTING, scheduler=description.launcher)
    folder.write_job_record(record)  # before the job could start
    try:
        with _calling(description.launcher) as launcher:
            command = entrypoint(description.setup, description.command, folder.path, options)
            job = str(launcher.submit(description.script, str(folder.path), command, name))
            if not _is_job(job):
                raise ValueError(message("it gave no number for its job"))
    except InputError as refusal:  # the job may have been started all the same
        try:
            state = _look_up(record)[0]
        except InputError:
            if before is None:  # the new folder is removed, without which the job ends at once
                raise refusal from None
            raise _unheard(folder, record, refusal) from None
        if state == UNKNOWN:
            if before is not None:
                folder.write_job_record(before)
            raise
        job = name
    folder.write_job_record(JobRecord(job, scheduler=description.launcher))


def _unheard(folder: RunFolder, record: JobRecord, error: InputError) -> InputError:
    """Nobody has heard whether the job was started, and its launcher does not say."""
    return InputError(
        "it is not known whether job {job} of {name} was started ({error}); look for it there, and if there is none, delete {path} and "
        "try again",
        job=record.job,
        name=folder.name,
        error=error,
        path=folder.job,
    )


def _look_up(record: JobRecord) -> tuple[str, str]:
    """One of STATES, and the reason. Raises InputError."""
    with _calling(record.scheduler) as launcher:
        state, reason = launcher.look_up(record.job)
        if state not in STATES:
            raise ValueError(message("it knows no state {state}", state=repr(state)))
        return state, one_line(str(reason))


def check(description: PluginJob) -> protocol.Devices:
    """What the launcher says is there. Raises InputError."""
    with _calling(description.launcher) as launcher:
        lines = [one_line(str(line)) for line in launcher.check(description.script)]
        return protocol.Devices(devices=lines, note=one_line(str(launcher.description)))


class LauncherJob(Job):
    """The job of a run, as the package's launcher knows it."""

    PENDING_STATES = (PENDING_STATE,)

    def __init__(self, record: JobRecord) -> None:
        super().__init__(record, POLL_SECONDS)
        self._reason = ""

    def _look_up(self) -> None:
        if self.state in (ENDED, FAILED, STOPPED, UNKNOWN):
            return
        try:
            self.state, self._reason = _look_up(self.record)
        except InputError as error:
            self.trouble = str(error)
            return
        self.trouble = ""
        known = {PENDING_STATE: PENDING, RUNNING_STATE: RUNNING}
        if self.state in known:
            self.record = JobRecord(
                self.record.job,
                known[self.state],
                self._reason if self.is_pending else "",
                scheduler=self.record.scheduler,
            )

    def life(self, folder: RunFolder) -> str:
        """As `RunFolder.life`. A run whose job has ended without a record of how is lost."""
        self.poll()
        if not folder.exists():
            return "ended"
        if self.state in (PENDING_STATE, RUNNING_STATE, "") or folder.is_carried():
            return "alive"
        return "lost" if folder.process_record() and not folder.exit_record() else "ended"

    def stop(self) -> None:
        """See `Job.stop`."""
        with _calling(self.record.scheduler) as launcher:
            launcher.stop(self.record.job)

    def end(self, folder: RunFolder) -> tuple[str, str]:
        """See `Job.end`."""
        title = find(self.record.scheduler).title
        if self.state == STOPPED and self._end_state:
            return self._end_state, ""
        if self.state == STOPPED:
            return "interrupted", message("its job was stopped in {title}", title=title)
        if self.state == UNKNOWN:
            return "interrupted", message(
                "{title} does not know its job any longer; resume it to continue from its last checkpoint", title=title
            )
        return "", self._reason or (message("no reason given") if self.state == FAILED else "")


def job_of(record: JobRecord, description: PluginJob) -> LauncherJob | None:
    """The job of that record; None if it is none, or another launcher's: the record may be a stranger's."""
    return LauncherJob(record) if record.scheduler == description.launcher and _is_job(record.job) else None


def _is_job(text: str) -> bool:
    """Whether it can be a job's number or name; it may become an argument of a program."""
    return bool(text) and len(text) <= MAX_LETTERS and text.isprintable() and text.isascii() and text[0].isalnum()


@contextmanager
def _calling(name: str) -> Iterator[JobLauncher]:
    """The launcher; whatever it raises becomes an InputError with its first line."""
    launcher = find(name)
    try:
        yield launcher
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # another's code may raise anything
        raise InputError(
            "{title}: {reason}", title=one_line(str(launcher.title)), reason=redact(one_line(first_line(error)))
        ) from error
