"""Restores what an attempt inherits: earlier events, the rows per pass, the same data, the best result so far."""

import json
import os
import time
from typing import Any

from backend import restart
from backend.contract.errors import RunFailed
from backend.contract.messages import message
from backend.contract.run.events import (
    AnyEvent,
    CheckpointRemoved,
    CheckpointSaved,
    DataLoaded,
    RunResumed,
    RunStarted,
    StepFinished,
    Warned,
)
from backend.contract.run.folder import ProcessRecord, RunFolder, write_json
from backend.contract.safe_files import open_inside
from backend.contract.spec import RunSpec
from backend.contract.versions import CONTRACT_VERSION, PACKAGES_OF_A_RUN, installed_versions
from backend.hardware import devices, planner
from backend.preflight.datasets import Splits
from backend.training.early_stopping import BestEvaluation, evaluations
from backend.training.event_log import EventLog, missing_steps, missing_words, read_events
from backend.training.hosts import Hosts
from backend.training.stages import StageReporter

PLAN_BYTES = 10_000
"""A plan is much shorter; what is longer is none."""


def read_earlier(folder: RunFolder, hosts: Hosts) -> list[AnyEvent]:
    """The events of earlier attempts; the first host may already be writing again when another reads them."""
    if hosts.count == 1:
        return read_events(folder.events)
    size = hosts.agree(lambda: folder.events.stat().st_size if folder.events.exists() else 0)
    return read_events(folder.events, size)


def write_first_events(
    folder: RunFolder, spec: RunSpec, log: EventLog, stages: StageReporter, earlier: list[AnyEvent], from_step: int,
    choice: devices.DeviceChoice,
) -> None:  # fmt: skip
    """The first events of the attempt; for a resume also gaps in the file and changed library versions."""
    record = folder.process_record()
    attempt, versions = record.attempt if record else 1, installed_versions(PACKAGES_OF_A_RUN)
    first = next((event for event in earlier if isinstance(event, RunStarted)), None)
    reason = _restart_words(folder, record, from_step)
    if first is None:  # in the first attempt, or if the file or its beginning was deleted
        first = RunStarted(
            time=time.time(), name=spec.name, task=spec.task["type"], model=spec.model.name_or_path, attempt=attempt,
            contract_version=CONTRACT_VERSION, engine=spec.hardware.engine, device=choice.words, precision=choice.precision,
            versions=versions,
        )  # fmt: skip
        log.write(first)
        if not from_step and not any(isinstance(event, StepFinished) for event in earlier):
            if reason:
                stages.warn("restarted", reason)
            return
    log.remember(first)
    log.write(
        RunResumed(
            time=time.time(),
            attempt=attempt,
            from_step=from_step,
            versions=versions,
            device=choice.words,
            precision=choice.precision,
            engine=spec.hardware.engine,
        )
    )
    if reason:
        stages.warn("restarted", reason)
    _write_removed(folder, log, earlier, from_step)
    lacks = missing_words(missing_steps(earlier, from_step))
    if lacks and not any(isinstance(event, Warned) and event.message == lacks for event in earlier):
        stages.warn("missing_events", lacks)
    changed = [
        f"{name} {first.versions[name]} → {version}"
        for name, version in versions.items()
        if first.versions.get(name, version) != version
    ]
    if changed:
        stages.warn(
            "other_versions",
            message(
                "the run started with other library versions ({changed}); it continues, but later steps "
                "may not be bit-for-bit identical to those of an uninterrupted run",
                changed=", ".join(changed),
            ),
        )


def _restart_words(folder: RunFolder, record: ProcessRecord | None, from_step: int) -> str:
    """Why the supervisor has restarted the run; empty if somebody else started this attempt."""
    if record is None or not record.died_of:
        return ""
    values = {
        "reason": restart.death_words(record.died_of, record.killed_by, folder.log),
        "count": record.restarts,
        "most": record.max_restarts,
    }
    if record.killed_by == "preemption":
        return message(
            "{reason}. Restarted from step {step}, which does not count as one of its {most} restarts",
            **values,
            step=from_step,
        )
    if not from_step:
        return message("{reason}. Restarted from the beginning ({count} of {most})", **values)
    return message("{reason}. Restarted from step {step} ({count} of {most})", **values, step=from_step)


def _write_removed(folder: RunFolder, log: EventLog, earlier: list[AnyEvent], from_step: int) -> None:
    """Record the checkpoints that were deleted between two attempts, by a person or to make room."""
    saved: dict[int, str] = {}
    for event in earlier:
        if isinstance(event, CheckpointSaved):
            saved[event.step] = event.folder
        elif isinstance(event, CheckpointRemoved):
            saved.pop(event.step, None)
    for step, name in saved.items():
        if step <= from_step and not folder.checkpoint(step).exists():
            log.write(CheckpointRemoved(time=time.time(), step=step, folder=name))


def refuse_other_rows(splits: Splits, earlier: list[AnyEvent]) -> None:
    """Refuse to resume with different rows: the result would match no spec."""
    first = {event.split: event for event in reversed(earlier) if isinstance(event, DataLoaded)}
    for split, rows in splits.rows.items():
        if split in first and first[split].fingerprint not in ("", rows.fingerprint):
            raise RunFailed(
                "the {split} data ({files}) has changed since the run started",
                "data_changed",
                hint=message("Restore the old files and resume, or start a new run with the new ones."),
                split=split,
                files=", ".join(rows.files[:3]),
            )


def rows_of_a_pass(folder: RunFolder, work: planner.TrainingLoad, device: str, free_mb: float) -> tuple[int, str]:
    """Rows per pass on one device, and a sentence if earlier attempts used another number.

    Dropout differs by pass, so results would depend on the memory that happens to be free: the first attempt's
    number is stored in `plan.json` and reused, until the user changes the device or a setting that determines it.
    """
    hardware = work.spec.hardware
    decided_by = {
        "engine": hardware.engine,
        "device": device,
        "replicas": work.split.replicas,
        "hardware.micro_batch_size": hardware.micro_batch_size,
        "hardware.memory_limit": hardware.memory_limit,
    }
    kept = _read_plan(folder)
    rows = kept.get("micro_batch_size")
    if rows is not None and kept.get("decided_by") == decided_by:
        if rows == 1 or hardware.micro_batch_size is not None or work.fits(rows, free_mb):
            return rows, ""
        fewer = min(rows, work.micro_batch_size(free_mb))
        return fewer, _deviation(fewer, rows, message("because no more fit in the memory that is available now"))
    new = work.micro_batch_size(free_mb)
    write_json(folder.plan, {"micro_batch_size": new, "decided_by": decided_by})
    return new, _deviation(new, rows, message("because the device or a hardware setting was changed")) if rows not in (
        None,
        new,
    ) else ""


def _deviation(rows: int, before: int | None, why: str) -> str:
    return message(
        "this attempt reads {rows} rows at a time, while earlier ones read {before}, {why}; "
        "dropout uses different random numbers, so later steps may not be bit-for-bit identical "
        "to those of an uninterrupted run",
        rows=rows,
        before=before,
        why=why,
    )


def _read_plan(folder: RunFolder) -> dict[str, Any]:
    """The content of `plan.json`, empty if there is no valid one."""
    try:
        with os.fdopen(open_inside(folder.path, folder.plan.name, os.O_RDONLY), "rb") as file:
            found = json.loads(file.read(PLAN_BYTES))
    except (OSError, ValueError):
        return {}
    rows = found.get("micro_batch_size") if isinstance(found, dict) else None
    return found if isinstance(rows, int) and rows > 0 else {}


def best_so_far(spec: RunSpec, earlier: list[AnyEvent], from_step: int) -> BestEvaluation:
    """The best result so far, derived from evaluations, so that a resumed run makes the same decisions."""
    best = BestEvaluation(spec)
    for one in evaluations(earlier):
        if from_step > 0 and one.step <= from_step:  # from the very beginning everything is measured again
            best.apply(one.metrics, one.step)
    return best
