"""Owns a run that goes on with other settings: which may change at a resume, and the spec from then on."""

from dataclasses import dataclass
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.mending import CHANGED_AT_RESUME
from backend.contract.run_folder import RunFolder
from backend.contract.spec import RunSpec
from backend.run.resolving import read_spec


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
    return SpecChange(read_spec(folder.spec, changes), folder.path / f"spec.before-{folder.next_attempt()}.yaml")
