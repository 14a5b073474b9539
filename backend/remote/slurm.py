"""Runs as jobs of Slurm: the batch script, and what `sbatch`, `squeue`, `sacct`, `sinfo` and `scancel` say."""

import getpass
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.machines import Machine
from backend.contract.messages import message, plural
from backend.contract.run.folder import RunFolder, slug
from backend.contract.run.job import PENDING, RUNNING, JobRecord
from backend.contract.safe_files import MAX_TEXT, read_unlinked, write_whole
from backend.contract.safe_text import one_line
from backend.remote import protocol
from backend.remote.job import Job

SCRIPT, LOG = "job.sh", "job-{job}.log"
WARNING_SECONDS = 120
"""Slurm warns a job this long before its time limit, which leaves time for a checkpoint."""
POLL_SECONDS = 5.0
"""How often Slurm is asked about a job; its administrators do not like more."""
CALL_SECONDS = 30.0
_PENDING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")
_ACTIVE = ("RUNNING", "CONFIGURING", "SUSPENDED")
_INTERRUPTED = ("CANCELLED", "PREEMPTED", "TIMEOUT", "DEADLINE", "NODE_FAIL", "BOOT_FAIL")
_ENDS = {
    "CANCELLED": message("its job was cancelled in Slurm"),
    "PREEMPTED": message("another job took its place in Slurm"),
    "TIMEOUT": message("Slurm ended its job at the time limit"),
    "DEADLINE": message("Slurm ended its job at the deadline"),
    "OUT_OF_MEMORY": message("its job needed more memory than Slurm gave it; add a line such as #SBATCH --mem=32G to the machine"),
    "NODE_FAIL": message("the node of its job failed"),
    "BOOT_FAIL": message("the node of its job did not start"),
    "FAILED": "",
    "COMPLETED": "",
    "REVOKED": "",
    "GONE": message("Slurm does not know its job any longer; resume it to continue from its last checkpoint"),
}  # fmt: skip
"""State of a job that has ended → what people are told if the run itself could not say how; empty if the job's log knows."""

_NO_PROGRESS = message(
    "the time limit came before a new checkpoint; give the machine's jobs more time, then resume the run"
)
_SCRIPT = """\
#!/bin/bash
{options}

run=$PWD
{setup}
# Slurm sends USR1 before the time limit. Then the run saves a checkpoint, burnish exits with 75, and the job is queued again.
trap 'warned=yes; kill -USR1 "$burnish"' USR1
before=$(ls "$run/checkpoints" 2> /dev/null)
# The options of a job that is queued again have changed the run already, once it has started after they were given.
[ "${{SLURM_RESTART_COUNT:-0}}" != 0 ] && [ "$run/process.json" -nt "$run/{script}" ] && set --
{command} resume "$run" "$@" &
burnish=$!
wait "$burnish"; code=$?
while kill -0 "$burnish" 2> /dev/null; do wait "$burnish"; code=$?; done
if [ "$code" = 75 ] && [ "$warned" = yes ] && [ ! -e "$run/stop" ] && [ ! -e "$run/pause" ]; then
  if [ "$(ls "$run/checkpoints" 2> /dev/null)" != "$before" ]; then
    scontrol requeue "$SLURM_JOB_ID"
  else
    echo "{no_progress}" >&2
  fi
fi
exit "$code"
"""


def batch_script(machine: Machine, spec: Mapping[str, Any]) -> str:
    """The script of a job, which is submitted in the run's folder; its arguments are options of `burnish resume`.

    Each host of a run is a task on a node of its own. They find each other through Slurm.
    """
    hardware = spec.get("hardware")
    hosts = hardware.get("hosts") if isinstance(hardware, dict) else None
    hosts = hosts if isinstance(hosts, int) else 1  # a copy's spec may be a stranger's
    asked = {
        "partition": machine.partition,
        "account": machine.account,
        "time": machine.time,
        "gpus-per-node": machine.gpus,
    }
    options = [
        f"--job-name={slug(str(spec.get('name') or 'run'))}",
        f"--output={LOG.format(job='%j')}",
        "--open-mode=append",
        "--requeue",
        f"--nodes={hosts}",
        "--ntasks-per-node=1",
        f"--signal=B:USR1@{WARNING_SECONDS}",
        *(f"--{option}={value}" for option, value in asked.items() if value),
    ]
    own = machine.script_lines.splitlines()
    headers = [line for line in own if line.startswith("#SBATCH")]
    commands = [line for line in own if not line.startswith("#SBATCH")]
    return _SCRIPT.format(
        options="\n".join([*(f"#SBATCH {option}" for option in options), *headers]),
        setup="".join(f"{line}\n" for line in [*commands, *machine.setup.splitlines()]),
        command=("srun " if hosts != 1 else "") + shlex.quote(machine.command),
        no_progress=_NO_PROGRESS,
        script=SCRIPT,
    )


def submit(folder: RunFolder, script: str, options: Sequence[str]) -> None:
    """Submit a job for the run. Raises InputError with what Slurm says."""
    write_whole(folder.path / SCRIPT, script.encode())
    is_new = folder.job_record() is None
    if is_new:
        folder.write_job_record(JobRecord(""))  # before the job could start
    number = "" if is_new else _find_other(folder)  # an answer of Slurm may have been lost
    if not number:
        answer = _call("sbatch", "--parsable", SCRIPT, *options, folder=folder.path)
        number = _last_line(answer.stdout).partition(";")[0]
        if answer.returncode or not _is_job(number):
            number = _find_other(folder)
        if not number:
            raise _refusal(answer)
    folder.write_job_record(JobRecord(number))


def _find_other(folder: RunFolder) -> str:
    """The number of a job that was submitted for the run without anybody recording it; empty if there is none.

    Raises InputError if Slurm does not say.
    """
    answer = _call("squeue", "--noheader", f"--user={getpass.getuser()}", "--format=%i|%T|%Z", folder=folder.path)
    if answer.returncode:
        raise InputError(
            "Slurm does not say whether a job of {name} is in its queue already ({reason}); look with squeue --me, and try again",
            name=folder.name,
            reason=_last_line(answer.stderr),
        )
    record = folder.job_record()
    for line in answer.stdout.splitlines():
        job, state, place = [*line.split("|", 2), "", ""][:3]
        is_other = _is_job(job) and job != (record.job if record else "")
        if is_other and state in (*_PENDING, *_ACTIVE) and place == str(folder.path):
            return job
    return ""


def check(script: str) -> protocol.Devices:
    """The partitions, and when such a job could start. Raises InputError if Slurm would refuse it."""
    answer = _call("sbatch", "--test-only", "/dev/stdin", said=script)
    if answer.returncode:
        raise _refusal(answer)
    return protocol.Devices(devices=[], partitions=_list_partitions(), note=_last_line(answer.stderr))


class SlurmJob(Job):
    """The job of a run, as Slurm knows it."""

    PENDING_STATES = _PENDING

    def __init__(self, record: JobRecord) -> None:
        super().__init__(record, POLL_SECONDS)

    def _look_up(self) -> None:
        self.state, self.record = _look_up(self.record.job) or (self.state, self.record)

    def life(self, folder: RunFolder) -> str:
        """`alive` or `ended`."""
        self.poll()
        return "ended" if self.has_ended or not folder.exists() else "alive"

    def stop(self) -> None:
        """See `Job.stop`."""
        answer = _call("scancel", self.record.job)
        if answer.returncode:
            raise InputError("Slurm did not cancel the job: {reason}", reason=_last_line(answer.stderr))

    @property
    def has_ended(self) -> bool:
        """Whether it will not run any more."""
        return self.state in _ENDS

    def end(self, folder: RunFolder) -> tuple[str, str]:
        """See `Job.end`."""
        if self._end_state and self.state == "CANCELLED":
            return self._end_state, ""
        reason = _ENDS.get(self.state) or _read_log(folder.path / LOG.format(job=self.record.job))
        is_interrupted = self.state in _INTERRUPTED or reason == _NO_PROGRESS
        return "interrupted" if is_interrupted else "", reason


def job_of(folder: RunFolder) -> SlurmJob | None:
    """The job that was submitted last for the run; None if it was started without Slurm."""
    record = folder.job_record()
    return SlurmJob(record) if record is not None and _is_job(record.job) else None


def _is_job(text: str) -> bool:
    """Whether it is the number of a job; the record may be a stranger's, and becomes an argument of programs."""
    return text.isascii() and text.isdecimal()


def _look_up(job: str) -> tuple[str, JobRecord] | None:
    """The state and what people are told; None if Slurm does not answer."""
    answer = _call("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T|%r|%S|%e")
    found = [line.split("|") for line in answer.stdout.splitlines() if line.count("|") == 3]
    if answer.returncode == 0 and found:
        state, reason, starts, ends = found[0]
        is_pending = state in _PENDING
        return state, JobRecord(
            job=job,
            state=PENDING if is_pending else RUNNING,
            reason=reason if is_pending else "",
            starts=_seconds(starts),
            ends=0.0 if is_pending else _seconds(ends),
        )
    if answer.stdout.strip() or (answer.returncode and "Invalid job id" not in answer.stderr):
        return None
    # Slurm forgets a job some minutes after its end; its accounting, where there is one, does not.
    words = list[str]()
    with suppress(InputError):  # not every cluster has the program
        words = _call("sacct", "--noheader", "--allocations", f"--jobs={job}", "--format=State%20").stdout.split()
    return (words[0] if words and words[0] in _ENDS else "GONE"), JobRecord(job)


def _seconds(text: str) -> float:
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:  # N/A, NONE, Unknown
        return 0.0


def _call(
    program: str, *arguments: str, folder: Path | None = None, said: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Raises InputError if there is no such program."""
    command = [program, *arguments]
    try:
        return subprocess.run(
            command, cwd=folder, input=said, capture_output=True, text=True, errors="replace", timeout=CALL_SECONDS, check=False
        )  # fmt: skip
    except FileNotFoundError:
        raise InputError(
            "there is no {program} there; choose a login node of the Slurm cluster, or add what makes it available to "
            "the set-up commands",
            program=program,
        ) from None
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "Slurm does not answer")


def _refusal(answer: "subprocess.CompletedProcess[str]") -> InputError:
    reason = _last_line(answer.stderr) or _last_line(answer.stdout) or message("no reason given")
    if "invalid partition" not in answer.stderr.lower():
        return InputError("Slurm refuses the job: {reason}", reason=reason)
    known = [partition.split(",")[0] for partition in _list_partitions()]
    named = next((line.rpartition(": ")[2] for line in answer.stderr.splitlines() if "partition specified" in line), "")
    return InputError("Slurm has no partition {name}; it has {known}", name=named, known=", ".join(known))


def _list_partitions() -> list[str]:
    """`gpu, 4 nodes, gpu:a100:2, up to 1-00:00:00`."""
    lines = _call("sinfo", "--noheader", "--format=%R|%D|%G|%l").stdout.splitlines()
    found = [line.split("|") for line in lines if line.count("|") == 3]
    return [
        ", ".join([name, _count_nodes(nodes), *([devices] if devices != "(null)" else []), f"up to {limit}"])
        for name, nodes, devices, limit in found
    ]


def _count_nodes(nodes: str) -> str:
    return plural("{count} node", "{count} nodes", int(nodes)) if nodes.isdecimal() else nodes


def _read_log(path: Path) -> str:
    with suppress(OSError, InputError):
        return _last_line(read_unlinked(path, MAX_TEXT).decode(errors="replace"))
    return ""


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return one_line(lines[-1].removeprefix("sbatch: ").removeprefix("error: ").strip()) if lines else ""
