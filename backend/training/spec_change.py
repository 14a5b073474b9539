"""What a resumed run may change (settings or engine), and how manual changes to its spec are detected."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend import registry
from backend.contract import spec_file
from backend.contract.catalog import DEVICES_OF_EVERY_ENGINE
from backend.contract.errors import InputError
from backend.contract.lengths import FITTED
from backend.contract.messages import join, message
from backend.contract.run.event_summary import landmarks
from backend.contract.run.fixes import CHANGED_AT_RESUME
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import write_whole
from backend.contract.spec import HardwareSection, RunSpec
from backend.contract.spec.auto import AUTO
from backend.preflight.datasets import make_task
from backend.preflight.resolve import SPLITS, read_run, resolve
from backend.training.checkpoints import Checkpoints
from backend.training.resume import best_so_far

_SAME_RESULT = {
    "name", *CHANGED_AT_RESUME,
    *(f"hardware.{name}" for name in (
        "threads", "parallelism", "tensor_parallel", "hosts", "coordinator",
        "host_timeout", "max_restarts",
    )),
}  # fmt: skip
"""Settings that may be edited between two attempts: they say what the run is called, or where and how it computes."""
_VARIABLES = "hardware.environment."
_PATHS = {f"data.{split}" for split in SPLITS}
"""A file may lie elsewhere by now; the run itself refuses other rows."""
_SHOWN = 3


@dataclass(frozen=True)
class SpecChange:
    """The new spec, and the file in which to keep the current one."""

    spec: RunSpec
    kept: Path


def with_settings(folder: RunFolder, spec: RunSpec, changes: list[str]) -> SpecChange:
    """The run's spec with `KEY=VALUE` changes. Raises InputError for a setting that would make it a different run."""
    for change in changes:
        key = change.partition("=")[0].strip()
        if key not in CHANGED_AT_RESUME and not key.startswith(_VARIABLES):
            raise InputError(
                "--set {key}: a resumed run can only change {changed_at_resume}, which affect only rounding "
                "and dropout; start a new one with: burnish train {spec} --set {change}",
                key,
                key=key,
                changed_at_resume=", ".join(CHANGED_AT_RESUME),
                spec=folder.spec,
                change=change,
            )
    changed = resolve(spec_file.apply_changes(spec.model_dump(mode="json"), changes), folder.path)
    return SpecChange(changed, folder.path / f"spec.before-{folder.next_attempt()}.yaml")


def remove_unneeded(folder: RunFolder, before: RunSpec, now: RunSpec) -> None:
    """Delete the checkpoints that the changed spec no longer keeps: a full disk has no room for that spec before."""
    checkpoints, keep = Checkpoints(folder), now.training.keep_checkpoints
    if keep >= before.training.keep_checkpoints or (latest := checkpoints.latest()) is None:
        return
    best = best_so_far(now, landmarks(folder.events), latest)
    checkpoints.remove_older(latest, keep, best.step if best.keeps_checkpoint else None)


def with_engine(
    folder: RunFolder, spec: RunSpec, checkpoints: Checkpoints, engine: str, *, new_optimizer: bool
) -> SpecChange | None:
    """The change to that engine, or None if the run already uses it.

    Raises InputError if the engine cannot continue from the run's last checkpoint, or if it would only take its weights
    and this has not been approved (`new_optimizer`).
    """
    kind = registry.find("engine", engine, "--engine")
    if engine == spec.hardware.engine:
        if new_optimizer:
            raise InputError(
                "--new-optimizer: this run already trains with {title}, which keeps its optimizer; remove this option",
                title=kind.title,
            )
        return None
    step = checkpoints.latest()
    if step is not None:
        writer = checkpoints.engine_of(step) or spec.hardware.engine
        if writer not in (engine, *kind.continues):
            raise InputError(
                "--engine: {title} cannot read the checkpoint of step {step}, which another engine wrote; "
                "resume without --engine, or train a new run",
                title=kind.title,
                step=step,
            )
        if writer != engine and not new_optimizer:
            raise InputError(
                "--engine: {title} can continue the model from step {step}, but not the optimizer state, "
                "which another engine wrote; add --new-optimizer to start with a fresh optimizer, or "
                "resume without --engine",
                title=kind.title,
                step=step,
            )
    earlier = _spec_copy(folder, engine)
    hardware = read_run(folder, kept=earlier).hardware if earlier.is_file() else _for_engine(spec, engine)
    changed = {**spec.model_dump(mode="json"), "hardware": hardware.model_dump(mode="json")}
    return SpecChange(resolve(changed, folder.path), _spec_copy(folder, spec.hardware.engine))


def _spec_copy(folder: RunFolder, engine: str) -> Path:
    """Where the run's spec for an engine is kept: with its hardware settings the run can return to it exactly."""
    return folder.path / f"spec.{engine}.yaml"


def _for_engine(spec: RunSpec, engine: str) -> HardwareSection:
    kind, hardware = registry.find("engine", engine, "--engine"), spec.hardware.model_dump(mode="json")
    known = HardwareSection.model_fields.keys() | kind.Settings.model_fields.keys()
    kept = {key: value for key, value in hardware.items() if key in known} | {"engine": engine}
    if kept["device"] not in DEVICES_OF_EVERY_ENGINE:
        kept["device"] = "auto"
    if not kind.several_processes:
        kept["processes"] = AUTO
    return HardwareSection.model_validate(kept)


def keep_started(folder: RunFolder, spec: RunSpec) -> None:
    """Keep the spec of the running attempt, to compare with that of a later attempt."""
    write_whole(folder.started_spec, spec_file.dump(spec.model_dump(mode="json")).encode())


def compare_started(folder: RunFolder, spec: RunSpec, *, other_engine: bool = False) -> bool:
    """Whether the earlier attempts' spec was kept. Raises InputError if this one would lead to a different result,
    or if the kept one cannot be read.

    With `other_engine` the `hardware` section is about to change, as the person asked.
    """
    started = folder.started_spec
    if not os.path.lexists(started):  # an older run
        return False
    try:
        before = read_run(folder, kept=started)
    except InputError as error:
        raise InputError(
            "{started} cannot be read, so it is unknown whether the spec was changed since the run started "
            "({error}); restore it, or delete it to continue with the spec as it is now",
            started=started,
            error=error,
        ) from None
    was, now = (_flatten({**one.model_dump(mode="json"), "task": _with_lengths(one)}) for one in (before, spec))
    changed = [key for key in sorted(was.keys() | now.keys()) if was.get(key) != now.get(key)]
    found = [
        key for key in changed if not (_is_harmless(key, was, now) or (other_engine and key.startswith("hardware.")))
    ]
    if found:
        changes = join(
            ", ", (message("{key} (it was {was})", key=key, was=f"{was.get(key)!r:.60}") for key in found[:_SHOWN])
        )
        if len(found) > _SHOWN:
            changes = message("{names} and {count} more", names=changes, count=len(found) - _SHOWN)
        hint = (
            message("resume it with --engine, or")
            if "hardware.engine" in found
            else message("restore the original, or")
        )
        raise InputError(
            "{spec}: {changes} was changed since the run started; continuing would mix two specs in "
            "one curve; {way} start a new run: burnish train {spec}",
            found[0],
            spec=folder.spec,
            changes=changes,
            way=hint,
        )
    return True


def _with_lengths(spec: RunSpec) -> dict[str, Any]:
    """The task's settings with the lengths that are its defaults, which a start writes into the spec."""
    defaults = type(make_task(spec).settings)(type=spec.task["type"]).model_dump()
    return {**{name: defaults[name] for name in FITTED & defaults.keys()}, **spec.task}


def _is_harmless(key: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    if key in _PATHS:
        return all(isinstance(values.get(key), str | list) for values in (was, now))
    return key in _SAME_RESULT or key.startswith(_VARIABLES)


def _flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_flat(values, ""))


def _flat(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
