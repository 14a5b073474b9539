"""RunSpec, the complete description of a run."""

from typing import Annotated, Any

from pydantic import Field, field_validator

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.spec.data import DataSection
from backend.contract.spec.evaluation import EvaluationSection
from backend.contract.spec.hardware import HardwareSection
from backend.contract.spec.model import ModelSection
from backend.contract.spec.search import SEARCH
from backend.contract.spec.section import Section, validate
from backend.contract.spec.training import TrainingSection
from backend.contract.versions import SPEC_VERSION


class RunSpec(Section):
    """Everything that defines a run. `task`, `adapter` and parts of `data` and `hardware` are open here.

    The task, source, engine and adapter that it names own those parts and validate them (`backend.registry`).
    """

    version: Annotated[int, Field(title="Version", ge=1)] = SPEC_VERSION
    """Version of the file format."""
    name: Annotated[str, Field(title="Name", min_length=1, max_length=100)] = "run"
    """The name of the run. It becomes part of the folder name."""
    task: Annotated[dict[str, Any], Field(title="Task")]
    """`type` and the settings of that task."""
    model: ModelSection
    data: DataSection
    training: TrainingSection = TrainingSection()
    evaluation: EvaluationSection = EvaluationSection()
    adapter: Annotated[dict[str, Any] | None, Field(title="Adapter")] = None
    """`type` and the settings of that adapter. Empty trains all weights."""
    hardware: HardwareSection = HardwareSection()

    @field_validator("task")
    @classmethod
    def _has_a_type(cls, task: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(task.get("type"), str):
            raise ValueError(message("it needs a type, for example {type: text_classification}"))
        return task


def run_spec(values: dict[str, Any]) -> RunSpec:
    """Build the spec from plain values. Raises InputError that names the key and what to do."""
    if SEARCH in values:
        raise InputError("search: this spec describes a search, not a run; start it with burnish search", SEARCH)
    version = values.get("version", SPEC_VERSION)
    if isinstance(version, int) and version > SPEC_VERSION:
        raise InputError(
            "version: this spec has version {version}, but this version of Burnish only reads specs "
            "up to version {spec_version}; update Burnish",
            "version",
            version=version,
            spec_version=SPEC_VERSION,
        )
    return validate(RunSpec, values)
