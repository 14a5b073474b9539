"""The job of a run on a cluster: what is known of it, and what people are told while it waits (stdlib only)."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from backend.contract.messages import message

PENDING, RUNNING = "pending", "running"
SUBMITTING = "submitting"
"""On the cluster: whether the scheduler has taken the job is not known yet, or never came to be known."""
MAX_LETTERS = 100
"""Of a scheduler's words."""
_REASONS = {
    "Resources": message("no free resources yet"),
    "Priority": message("other jobs have a higher priority"),
    "BeginTime": message("it was queued again and cannot start yet"),
    "Dependency": message("it depends on another job"),
    "JobHeldUser": message("it is on hold; release it with scontrol"),
    "JobHeldAdmin": message("an administrator put it on hold"),
    "PartitionDown": message("its partition is down"),
    "PartitionInactive": message("its partition is inactive"),
    "PartitionTimeLimit": message("its time is longer than its partition allows"),
    "PartitionNodeLimit": message("it needs more nodes than its partition allows"),
    "ReqNodeNotAvail": message("the nodes that it needs are not available"),
    "NodeDown": message("the nodes that it needs are down"),
    "Pending": message("the cluster has not started it yet"),
}
"""Slurm's job reason codes that are frequent, and Ray's only one, as clauses; others are shown as they are."""


@dataclass(frozen=True)
class JobRecord:
    """`job.json`: on the cluster the job that was submitted last; in a run's copy here what the mirror knows of it."""

    job: str
    """The scheduler's number for it, or the name that we gave it; empty while it is being submitted to Slurm."""
    state: str = ""
    reason: str = ""
    """The scheduler's word for why it is pending."""
    starts: float = 0.0
    """When it started or is expected to, in seconds since the epoch; 0 if unknown."""
    ends: float = 0.0
    """When it reaches its time limit; 0 if it has none, or has not started."""
    scheduler: str = "slurm"
    """Whose job it is: `slurm`, `ray`, or the launcher of an installed package."""

    def describe_waiting(self) -> str:
        """`waits in Slurm (job 12): no free resources yet; expected to start at 2026-11-27 15:30`."""
        reason = _REASONS.get(self.reason.split(",")[0], self.reason[:MAX_LETTERS]) or message("no reason given")
        values = {"job": self.job[:MAX_LETTERS], "reason": reason}
        if self.scheduler == "ray":
            return message("waits in Ray (job {job}): {reason}", **values)
        if self.scheduler != "slurm":
            return message("waits in {name} (job {job}): {reason}", **values, name=self.scheduler[:MAX_LETTERS])
        if time := _local_time(self.starts):
            return message("waits in Slurm (job {job}): {reason}; expected to start at {time}", **values, time=time)
        return message("waits in Slurm (job {job}): {reason}", **values)

    def describe_running(self) -> str:
        """`Slurm job 12, until 2026-11-27 18:40`."""
        job = self.job[:MAX_LETTERS]
        if self.scheduler == "ray":
            return message("Ray job {job}", job=job)
        if self.scheduler != "slurm":
            return message("{name} job {job}", name=self.scheduler[:MAX_LETTERS], job=job)
        if time := _local_time(self.ends):
            return message("Slurm job {job}, until {time}", job=job, time=time)
        return message("Slurm job {job}", job=job)


def _local_time(seconds: float) -> str:
    """Empty for 0, and for what is no time: the record may be a stranger's."""
    with suppress(ValueError, OverflowError, OSError):
        return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}" if seconds else ""
    return ""
