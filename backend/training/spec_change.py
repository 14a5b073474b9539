"""Says which settings a resumed run may change, and finds what somebody changed in its spec by hand."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.run.fixes import CHANGED_AT_RESUME
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import write_whole
from backend.contract.spec import RunSpec
from backend.preflight.resolve import SPLITS, read_run

_SAME_RESULT = {
    "name", *CHANGED_AT_RESUME,
    *(f"hardware.{name}" for name in (
        "device", "devices", "processes", "environment", "threads", "parallelism", "tensor_parallel", "hosts", "coordinator",
        "host_timeout",
    )),
}  # fmt: skip
"""Settings that may be edited between two attempts: they say what the run is called, or where and how it computes."""
_PATHS = {f"data.{split}" for split in SPLITS}
"""A file may lie elsewhere by now; the run itself refuses other rows."""
_SHOWN = 3


@dataclass(frozen=True)
class SpecChange:
    """The spec from now on, and the file in which the present one is to be kept."""

    spec: RunSpec
    kept: Path


def with_settings(folder: RunFolder, changes: list[str]) -> SpecChange:
    """The run's spec with `KEY=VALUE` changes. Raises InputError for a setting that would make it another run."""
    for change in changes:
        key = change.partition("=")[0].strip()
        if key not in CHANGED_AT_RESUME:
            raise InputError(
                f"--set {key}: a run that goes on may change {', '.join(CHANGED_AT_RESUME)} alone, which change nothing "
                f"but dropout's draws; start a new one with: burnish train {folder.spec} --set {change}",
                key,
            )
    return SpecChange(read_run(folder, changes), folder.path / f"spec.before-{folder.next_attempt()}.yaml")


def keep_started(folder: RunFolder, spec: RunSpec) -> None:
    """Keep the spec under which the run is trained, with which a later attempt compares its own."""
    write_whole(folder.started_spec, spec_file.dump(spec.model_dump(mode="json")).encode())


def compare_started(folder: RunFolder, spec: RunSpec, *, other_engine: bool = False) -> bool:
    """Whether the spec of the attempts before is kept. Raises InputError if this one would come to another result,
    or what is kept cannot be read.

    With `other_engine` the `hardware` section is about to change, as the person asked.
    """
    started = folder.started_spec
    if not os.path.lexists(started):  # an older run
        return False
    try:
        before = read_run(folder, kept=started)
    except InputError as error:
        raise InputError(
            f"{started} cannot be read, so nobody can tell whether the spec was changed since the run started ({error}); "
            "put it back, or delete it to continue with the spec as it is now"
        ) from None
    was, now = _dotted(before.model_dump(mode="json")), _dotted(spec.model_dump(mode="json"))
    changed = [key for key in sorted(was.keys() | now.keys()) if was.get(key) != now.get(key)]
    found = [
        key for key in changed if not (_is_harmless(key, was, now) or (other_engine and key.startswith("hardware.")))
    ]
    if found:
        shown = ", ".join(f"{key} (it was {was.get(key)!r:.60})" for key in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        way = "resume it with --engine, or" if "hardware.engine" in found else "put back what was there, or"
        raise InputError(
            f"{folder.spec}: {shown}{more} was changed since the run started; continuing would mix two specs in one curve; "
            f"{way} start a new run: burnish train {folder.spec}",
            found[0],
        )
    return True


def _is_harmless(key: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    if key in _PATHS:
        return all(isinstance(values.get(key), str | list) for values in (was, now))
    return key in _SAME_RESULT or key.startswith("hardware.environment.")


def _dotted(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_flat(values, ""))


def _flat(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
